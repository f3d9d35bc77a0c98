package writetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
)

func namespacedFeed(kind vedette.Kind, namespace string) vedette.Feed {
	return vedette.Feed{Kind: kind, Namespace: namespace}
}

// severalRemovals is a number of objects that are removed in three transactions: the store removes
// 2000 in each.
const severalRemovals = 4100

// Feeds are tests that declare feeds and read their state.
var Feeds = map[string]func(*testing.T, *store.Store){
	"feeds and objects are counted by state": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod", storetest.FeedOf(storetest.Deployments), storetest.FeedOf(storetest.Pods))
		w.Put(storetest.Object(storetest.Pods, "n", "a", "1"), storetest.Object(storetest.Pods, "n", "b", "1"))
		storetest.NewWriter(t, s, "other", storetest.FeedOf(storetest.Pods))
		storetest.Retire(t, storetest.NewWriter(t, s, "retired", storetest.FeedOf(storetest.Pods))) // no reader sees its feeds
		mark := vedette.Mark("7")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive}}})
		counts, err := s.FeedCounts(t.Context())
		want := map[vedette.FeedState]read.FeedCount{vedette.FeedLive: {Feeds: 1, Objects: 2}, vedette.FeedPending: {Feeds: 2}}
		if err != nil || !reflect.DeepEqual(counts, want) {
			t.Errorf("got %v, %v, want %v", counts, err, want)
		}
		byAccount, err := s.FeedCountsByAccount(t.Context())
		wantByAccount := map[vedette.AccountName]map[vedette.FeedState]read.FeedCount{
			"prod": {vedette.FeedLive: {Feeds: 1, Objects: 2}, vedette.FeedPending: {Feeds: 1}}, "other": {vedette.FeedPending: {Feeds: 1}}}
		if err != nil || !reflect.DeepEqual(byAccount, wantByAccount) {
			t.Errorf("got %v, %v, want %v", byAccount, err, wantByAccount)
		}
	},
	"a declared feed is pending, with its resource": func(t *testing.T, s *store.Store) {
		storetest.NewWriter(t, s, "prod", storetest.FeedOf(storetest.Deployments), storetest.FeedOf(storetest.Pods))
		feeds, err := s.Marks(t.Context(), "prod")
		if err != nil || len(feeds) != 2 {
			t.Fatalf("got feeds %v, %v, want 2", feeds, err)
		}
		for i, kind := range []vedette.Kind{storetest.Deployments, storetest.Pods} {
			want := read.FeedStatus{Account: "prod", Feed: storetest.FeedOf(kind), Resource: storetest.Resources[kind], State: vedette.FeedPending}
			if !reflect.DeepEqual(feeds[i], want) {
				t.Errorf("got %+v\nwant %+v", feeds[i], want)
			}
		}
	},
	"declaring again keeps the mark and replaces the resource": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		mark := vedette.Mark("7")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive}}})
		newer := storetest.Resources[storetest.Pods]
		newer.Version = "v2"
		if _, err := s.Declare(t.Context(), "prod", w.Term, []commit.DeclaredFeed{{Feed: storetest.FeedOf(storetest.Pods), Resource: newer}},
			nil); err != nil {
			t.Fatal(err)
		}
		if f := storetest.FeedStatus(t, s, "prod",
			storetest.FeedOf(storetest.Pods)); f.Mark != mark || f.State != vedette.FeedLive || f.Resource.Version != "v2" {
			t.Errorf("got %+v, want the mark and the new resource", f)
		}
	},
	"a feed that is no longer declared is removed with its objects": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		w.Put(storetest.Object(storetest.Pods, "n", "a", "1"), storetest.Object(storetest.Services, "n", "b", "1"),
			storetest.Object(storetest.Roles, "", "c", "1"))
		other := storetest.NewWriter(t, s, "other")
		other.Put(storetest.Object(storetest.Services, "n", "b", "1"))
		storetest.Equal(t, "changes", storetest.ChangeNames(w.Declare(storetest.FeedOf(storetest.Pods))),
			[]string{"deleted ClusterRole.rbac.authorization.k8s.io c", "deleted Service n/b"})
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), []string{"other Service n/b@1",
			"prod Pod n/a@1"})
		if feeds, err := s.Marks(t.Context(), "prod"); err != nil || len(feeds) != 1 {
			t.Errorf("got feeds %v, %v, want 1", feeds, err)
		}
	},
	"many objects are removed in several transactions": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		var objects []vedette.Object
		for i := range severalRemovals {
			objects = append(objects, storetest.Object(storetest.Pods, fmt.Sprint("n", i%3), fmt.Sprint("pod-", i), "1"))
		}
		w.Put(objects...)
		if changes := w.Declare(storetest.FeedOf(storetest.Services)); len(changes) != len(objects) {
			t.Errorf("got %d changes, want %d", len(changes), len(objects))
		}
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), nil)
	},
	"feeds of groups that the agent could not discover are kept": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		w.Put(storetest.Object(storetest.Deployments, "n", "a", "1"), storetest.Object(storetest.Services, "n", "b", "1"))
		changes, err := s.Declare(t.Context(), "prod", w.Term, storetest.DeclaredFeeds(storetest.FeedOf(storetest.Pods)), []string{"apps"})
		if err != nil {
			t.Fatal(err)
		}
		storetest.Equal(t, "changes", storetest.ChangeNames(changes), []string{"deleted Service n/b"})
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), []string{"prod Deployment.apps n/a@1"})
	},
	"from all namespaces to some and back": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		w.Put(storetest.Object(storetest.Pods, "a", "1", "1"), storetest.Object(storetest.Pods, "b", "2", "1"),
			storetest.Object(storetest.Pods, "c", "3", "1"))
		mark := vedette.Mark("9")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark}}})
		storetest.Equal(t, "narrowed", storetest.ChangeNames(w.Declare(namespacedFeed(storetest.Pods, "a"), namespacedFeed(storetest.Pods,
			"b"))), []string{"deleted Pod c/3"})
		for _, ns := range []string{"a", "b"} {
			if f := storetest.FeedStatus(t, s, "prod", namespacedFeed(storetest.Pods, ns)); f.Objects != 1 || f.Mark != "" {
				t.Errorf("namespace %s: got %+v, want one object and no mark", ns, f)
			}
		}
		w.Put(storetest.Object(storetest.Pods, "a", "4", "1"))
		if _, err := s.Commit(t.Context(),
			commit.Batch{Account: "prod", Term: w.Term,
				Upserts: []vedette.Object{storetest.Object(storetest.Pods, "c", "5", "1")}}); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("object of a namespace that is not declared: got %v, want an error of kind %s", err, vedette.Invalid)
		}
		storetest.Equal(t, "widened", storetest.ChangeNames(w.Declare(storetest.FeedOf(storetest.Pods))), nil)
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.Objects != 3 || f.Mark != "" {
			t.Errorf("got %+v, want the objects of all namespaces", f)
		}
	},
	"a kind declared for all namespaces and for one is rejected": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		if _, err := s.Declare(t.Context(), "prod", w.Term, storetest.DeclaredFeeds(storetest.FeedOf(storetest.Pods),
			namespacedFeed(storetest.Pods, "a")),
			nil); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("got %v, want an error of kind %s", err, vedette.Invalid)
		}
	},
	"beginning a snapshot clears the mark": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		mark := vedette.Mark("9")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive},
			{Feed: storetest.FeedOf(storetest.Services), Mark: &mark}}})
		if err := s.BeginSnapshot(t.Context(), "prod", w.Term, storetest.FeedOf(storetest.Pods)); err != nil {
			t.Fatal(err)
		}
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.Mark != "" || f.State != vedette.FeedSyncing {
			t.Errorf("got %+v, want a syncing feed without a mark", f)
		}
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Services)); f.Mark != mark {
			t.Errorf("another feed: got %+v, want it unchanged", f)
		}
		if err := s.BeginSnapshot(t.Context(), "prod", w.Term, namespacedFeed(storetest.Pods, "a")); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("feed that is not declared: got %v, want an error of kind %s", err, vedette.Invalid)
		}
	},
	"a feed that is invalidated is reported completely, also from an earlier state": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		same := storetest.Object(storetest.Pods, "n", "web", "1000")
		mark := vedette.Mark("1200")
		w.Commit(commit.Batch{Upserts: []vedette.Object{same, storetest.Object(storetest.Services, "n", "web", "7")},
			Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive}}})
		if err := s.InvalidateFeed(t.Context(), "prod", w.Term, storetest.FeedOf(storetest.Pods)); err != nil {
			t.Fatal(err)
		}
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.Mark != "" {
			t.Errorf("got mark %s, want none", f.Mark)
		}
		storetest.BeginSnapshot(t, w)
		storetest.Equal(t, "index", readIndex(t, s, storetest.FeedOf(storetest.Pods)), []uint64{vedette.Digest(same.Namespace, same.Name,
			same.UID, "")})
		storetest.Equal(t, "index of another feed", readIndex(t, s, storetest.FeedOf(storetest.Services)),
			sortedDigests(storetest.Object(storetest.Services, "n", "web", "7")))
		same.Body = []byte(`{"other":"content"}`)
		listed := vedette.Mark("950")
		w.Commit(commit.Batch{Upserts: []vedette.Object{same},
			Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &listed, SnapshotMark: listed, State: vedette.FeedLive}}})
		rows := storetest.QueryAll(t, s, read.Query{Kinds: []vedette.Kind{storetest.Pods}, Bodies: true})
		if len(rows) != 1 || string(rows[0].Body) != string(same.Body) {
			t.Errorf("got body %s, want other content under the same version", rows[0].Body)
		}
		if err := s.InvalidateFeed(t.Context(), "prod", w.Term-1, storetest.FeedOf(storetest.Pods)); !errors.Is(err, registry.ErrTerm) {
			t.Errorf("an earlier term: got %v, want %v", err, registry.ErrTerm)
		}
	},
	"verifications are recorded, and their drift is added up": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		at := time.UnixMicro(1_700_000_000_000_000)
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Verified: at, Drift: 3}}})
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Verified: at.Add(time.Hour), Drift: 4}}})
		mark := vedette.Mark("7")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive}}})
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); !f.Verified.Equal(at.Add(time.Hour)) || f.Drift != 7 {
			t.Errorf("got %v and %d drifted objects, want %v and 7", f.Verified, f.Drift, at.Add(time.Hour))
		}
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Services)); !f.Verified.IsZero() || f.Drift != 0 {
			t.Errorf("another feed: got %v and %d, want none", f.Verified, f.Drift)
		}
	},
	"a scan has all objects of a feed and no others": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		var all []vedette.Object
		var want []commit.StoredObject
		for i := range severalRemovals { // more than one portion
			o := storetest.Object(storetest.Pods, "n", fmt.Sprintf("p%05d", i), "1")
			all = append(all, o)
			want = append(want, commit.StoredObject{Digest: vedette.Digest(o.Namespace, o.Name, o.UID, o.ResourceVersion), Namespace: "n",
				Name: o.Name})
		}
		w.Put(append(all, storetest.Object(storetest.Services, "n", "other", "1"))...)
		var got []commit.StoredObject
		err := s.ScanObjects(t.Context(), "prod", storetest.FeedOf(storetest.Pods), func(portion []commit.StoredObject) error {
			got = append(got, portion...)
			return nil
		})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %d objects, %v, want %d", len(got), err, len(want))
		}
		if err := s.ScanObjects(t.Context(), "none", storetest.FeedOf(storetest.Pods), nil); !errors.Is(err, registry.ErrNoAccount) {
			t.Errorf("an unknown account: got %v, want %v", err, registry.ErrNoAccount)
		}
	},
	"a cluster that goes back to an earlier state is listed again": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		changed := storetest.Object(storetest.Pods, "n", "web", "1000")
		mark := vedette.Mark("1200")
		w.Commit(commit.Batch{Upserts: []vedette.Object{changed, storetest.Object(storetest.Services, "n", "web", "7")},
			Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive}}})
		storetest.BeginSnapshot(t, w)
		listed := vedette.Mark("950")
		_, err := s.Commit(t.Context(),
			commit.Batch{Account: "prod", Term: w.Term,
				Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &listed, SnapshotMark: listed, State: vedette.FeedLive}}})
		if !errors.Is(err, commit.ErrRewound) {
			t.Fatalf("got %v, want %v", err, commit.ErrRewound)
		}
		if f := storetest.FeedStatus(t, s, "prod",
			storetest.FeedOf(storetest.Pods)); f.Mark != "" || f.State != vedette.FeedPending || f.Message == "" {
			t.Errorf("got %+v, want a pending feed without a mark", f)
		}
		storetest.Equal(t, "index", readIndex(t, s, storetest.FeedOf(storetest.Pods)), []uint64{vedette.Digest(changed.Namespace,
			changed.Name, changed.UID, "")})
		storetest.Equal(t, "index of another feed", readIndex(t, s, storetest.FeedOf(storetest.Services)),
			sortedDigests(storetest.Object(storetest.Services, "n", "web", "7")))
		storetest.BeginSnapshot(t, w)
		changed.Body = []byte(`{"other":"content"}`)
		newMark := vedette.Mark("1010")
		w.Commit(commit.Batch{Upserts: []vedette.Object{changed},
			Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &newMark, SnapshotMark: newMark, State: vedette.FeedLive}}})
		rows := storetest.QueryAll(t, s, read.Query{Kinds: []vedette.Kind{storetest.Pods}, Bodies: true})
		if len(rows) != 1 || string(rows[0].Body) != string(changed.Body) {
			t.Errorf("got body %s, want that of the second list", rows[0].Body)
		}
	},
	"snapshots that are not older are accepted": func(t *testing.T, s *store.Store) {
		for from, listed := range map[vedette.Mark]vedette.Mark{"1200": "1200", "1100": "1201", "opaque": "5", "7": "opaque", "8": "0",
			"": "3"} {
			w := storetest.NewWriter(t, s, "prod")
			w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &from, State: vedette.FeedLive}}})
			storetest.BeginSnapshot(t, w)
			w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &listed, SnapshotMark: listed,
				State: vedette.FeedLive}}})
			if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.Mark != listed {
				t.Errorf("from %q to %q: got mark %q, want the new one", from, listed, f.Mark)
			}
		}
	},
	"objects without uid have digests of their own": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod", storetest.FeedOf(storetest.Pods))
		a, b := storetest.Object(storetest.Pods, "n", "a", "1"), storetest.Object(storetest.Pods, "n", "b", "1")
		a.UID, b.UID = "", ""
		w.Put(a, b)
		storetest.Equal(t, "index", readIndex(t, s, storetest.FeedOf(storetest.Pods)), sortedDigests(a, b))
		old := vedette.DigestWithoutName("", "1")
		var withoutNames []uint64
		if err := s.IndexWithoutNames(t.Context(), "prod", storetest.FeedOf(storetest.Pods), func(digests []uint64) error {
			withoutNames = append(withoutNames, digests...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		storetest.Equal(t, "index of older agents", withoutNames, []uint64{old, old})
		w.Commit(commit.Batch{Drops: []commit.Drop{{Feed: storetest.FeedOf(storetest.Pods), Digests: []uint64{vedette.Digest("n", "a", "",
			"1")}}}})
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), []string{"prod Pod n/b@1"})
		w.Put(a)
		w.Commit(commit.Batch{Drops: []commit.Drop{{Feed: storetest.FeedOf(storetest.Pods), Digests: []uint64{old}}}})
		storetest.Equal(t, "objects after the drop of an older agent", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), nil)
	},
	"the index has the digests of a feed's rows": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod", storetest.FeedOf(storetest.Pods), namespacedFeed(storetest.Services, "a"),
			namespacedFeed(storetest.Services, "b"))
		o := storetest.Object(storetest.Pods, "n", "odd", "1")
		o.UID = "fifteen letters"
		empty := storetest.Object(storetest.Pods, "n", "empty", "1")
		empty.UID = ""
		upper := storetest.Object(storetest.Pods, "n", "upper", "1")
		upper.UID = "A0000000-0000-4000-8000-00000000000B"
		w.Put(o, empty, upper, storetest.Object(storetest.Pods, "n", "plain", "12"), storetest.Object(storetest.Services, "a", "s", "1"),
			storetest.Object(storetest.Services, "b", "s", "2"))
		storetest.Equal(t, "pods", readIndex(t, s, storetest.FeedOf(storetest.Pods)), sortedDigests(o, empty, upper,
			storetest.Object(storetest.Pods, "n", "plain", "12")))
		storetest.Equal(t, "services", readIndex(t, s, namespacedFeed(storetest.Services, "b")),
			sortedDigests(storetest.Object(storetest.Services, "b", "s", "2")))
		stop := errors.New("enough")
		if err := s.Index(t.Context(), "prod", storetest.FeedOf(storetest.Pods), func([]uint64) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("got %v, want the error of yield", err)
		}
	},
	"a long index comes in chunks": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		const n = 2*maxIndexChunk + 1000
		var want []uint64
		for start := 0; start < n; start += 3000 {
			var objects []vedette.Object
			for i := range min(3000, n-start) {
				o := storetest.Object(storetest.Pods, fmt.Sprint("n", i%7), fmt.Sprintf("p%06d", start+i), "1")
				objects = append(objects, vedette.Object{Key: o.Key, UID: o.UID, ResourceVersion: "1"})
			}
			w.Put(objects...)
			want = append(want, sortedDigests(objects...)...)
		}
		slices.Sort(want)
		if got := readIndex(t, s, storetest.FeedOf(storetest.Pods)); !slices.Equal(got, want) {
			t.Errorf("got %d digests that differ from the %d wanted", len(got), len(want))
		}
	},
	"each resource is returned once": func(t *testing.T, s *store.Store) {
		storetest.NewWriter(t, s, "one", storetest.FeedOf(storetest.Pods), namespacedFeed(storetest.Services, "a"),
			namespacedFeed(storetest.Services, "b"))
		storetest.NewWriter(t, s, "two", storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Deployments))
		got, err := s.Resources(t.Context())
		want := []vedette.Resource{storetest.Resources[storetest.Deployments], storetest.Resources[storetest.Pods],
			storetest.Resources[storetest.Services]}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want each once", got, err)
		}
		if got, err := s.Resources(t.Context(), "two"); err != nil || len(got) != 2 {
			t.Errorf("one account: got %+v, %v, want 2 resources", got, err)
		}
	},
}

// maxIndexChunk is the most digests that the store may return at once: an index of several chunks
// is several times longer.
const maxIndexChunk = 4096

func readIndex(t *testing.T, s *store.Store, feed vedette.Feed) []uint64 {
	t.Helper()
	var chunks [][]uint64 // read after the last one, like a caller that sends them later
	err := s.Index(context.Background(), "prod", feed, func(digests []uint64) error {
		if len(digests) == 0 || len(digests) > maxIndexChunk {
			t.Errorf("got a chunk of %d digests, want 1 to %d", len(digests), maxIndexChunk)
		}
		chunks = append(chunks, digests)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Concat(chunks...)
	slices.Sort(got)
	return got
}

func sortedDigests(objects ...vedette.Object) []uint64 {
	out := make([]uint64, len(objects))
	for i, o := range objects {
		out[i] = vedette.Digest(o.Namespace, o.Name, o.UID, o.ResourceVersion)
	}
	slices.Sort(out)
	return out
}
