package storetest

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
)

func namespacedFeed(kind vedette.Kind, namespace string) vedette.Feed {
	return vedette.Feed{Kind: kind, Namespace: namespace}
}

// severalRemovals is a number of objects that are removed in three transactions: the store removes
// 2000 in each.
const severalRemovals = 4100

var feedTests = map[string]func(*testing.T, *store.Store){
	"feeds and objects are counted by state": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod", feedOf(deployments), feedOf(pods))
		w.put(object(pods, "n", "a", "1"), object(pods, "n", "b", "1"))
		newWriter(t, s, "other", feedOf(pods))
		retire(t, newWriter(t, s, "retired", feedOf(pods))) // no reader sees its feeds
		mark := vedette.Mark("7")
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark, State: vedette.FeedLive}}})
		counts, err := s.FeedCounts(t.Context())
		want := map[vedette.FeedState]store.FeedCount{vedette.FeedLive: {Feeds: 1, Objects: 2}, vedette.FeedPending: {Feeds: 2}}
		if err != nil || !reflect.DeepEqual(counts, want) {
			t.Errorf("got %v, %v, want %v", counts, err, want)
		}
		byAccount, err := s.FeedCountsByAccount(t.Context())
		wantByAccount := map[vedette.AccountName]map[vedette.FeedState]store.FeedCount{
			"prod": {vedette.FeedLive: {Feeds: 1, Objects: 2}, vedette.FeedPending: {Feeds: 1}}, "other": {vedette.FeedPending: {Feeds: 1}}}
		if err != nil || !reflect.DeepEqual(byAccount, wantByAccount) {
			t.Errorf("got %v, %v, want %v", byAccount, err, wantByAccount)
		}
	},
	"a declared feed is pending, with its resource": func(t *testing.T, s *store.Store) {
		newWriter(t, s, "prod", feedOf(deployments), feedOf(pods))
		feeds, err := s.Marks(t.Context(), "prod")
		if err != nil || len(feeds) != 2 {
			t.Fatalf("got feeds %v, %v, want 2", feeds, err)
		}
		for i, kind := range []vedette.Kind{deployments, pods} {
			want := store.FeedStatus{Account: "prod", Feed: feedOf(kind), Resource: resources[kind], State: vedette.FeedPending}
			if !reflect.DeepEqual(feeds[i], want) {
				t.Errorf("got %+v\nwant %+v", feeds[i], want)
			}
		}
	},
	"declaring again keeps the mark and replaces the resource": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		mark := vedette.Mark("7")
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark, State: vedette.FeedLive}}})
		newer := resources[pods]
		newer.Version = "v2"
		if _, err := s.Declare(t.Context(), "prod", w.term, []store.DeclaredFeed{{Feed: feedOf(pods), Resource: newer}}, nil); err != nil {
			t.Fatal(err)
		}
		if f := feedStatus(t, s, "prod", feedOf(pods)); f.Mark != mark || f.State != vedette.FeedLive || f.Resource.Version != "v2" {
			t.Errorf("got %+v, want the mark and the new resource", f)
		}
	},
	"a feed that is no longer declared is removed with its objects": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		w.put(object(pods, "n", "a", "1"), object(services, "n", "b", "1"), object(roles, "", "c", "1"))
		other := newWriter(t, s, "other")
		other.put(object(services, "n", "b", "1"))
		equal(t, "changes", changeNames(w.declare(feedOf(pods))),
			[]string{"deleted ClusterRole.rbac.authorization.k8s.io c", "deleted Service n/b"})
		equal(t, "objects", rowNames(queryAll(t, s, store.Query{})), []string{"other Service n/b@1", "prod Pod n/a@1"})
		if feeds, err := s.Marks(t.Context(), "prod"); err != nil || len(feeds) != 1 {
			t.Errorf("got feeds %v, %v, want 1", feeds, err)
		}
	},
	"many objects are removed in several transactions": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		var objects []vedette.Object
		for i := range severalRemovals {
			objects = append(objects, object(pods, fmt.Sprint("n", i%3), fmt.Sprint("pod-", i), "1"))
		}
		w.put(objects...)
		if changes := w.declare(feedOf(services)); len(changes) != len(objects) {
			t.Errorf("got %d changes, want %d", len(changes), len(objects))
		}
		equal(t, "objects", rowNames(queryAll(t, s, store.Query{})), nil)
	},
	"feeds of groups that the agent could not discover are kept": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		w.put(object(deployments, "n", "a", "1"), object(services, "n", "b", "1"))
		changes, err := s.Declare(t.Context(), "prod", w.term, declaredFeeds(feedOf(pods)), []string{"apps"})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "changes", changeNames(changes), []string{"deleted Service n/b"})
		equal(t, "objects", rowNames(queryAll(t, s, store.Query{})), []string{"prod Deployment.apps n/a@1"})
	},
	"from all namespaces to some and back": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		w.put(object(pods, "a", "1", "1"), object(pods, "b", "2", "1"), object(pods, "c", "3", "1"))
		mark := vedette.Mark("9")
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark}}})
		equal(t, "narrowed", changeNames(w.declare(namespacedFeed(pods, "a"), namespacedFeed(pods, "b"))), []string{"deleted Pod c/3"})
		for _, ns := range []string{"a", "b"} {
			if f := feedStatus(t, s, "prod", namespacedFeed(pods, ns)); f.Objects != 1 || f.Mark != "" {
				t.Errorf("namespace %s: got %+v, want one object and no mark", ns, f)
			}
		}
		w.put(object(pods, "a", "4", "1"))
		if _, err := s.Commit(t.Context(),
			store.Batch{Account: "prod", Term: w.term,
				Upserts: []vedette.Object{object(pods, "c", "5", "1")}}); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("object of a namespace that is not declared: got %v, want an error of kind %s", err, vedette.Invalid)
		}
		equal(t, "widened", changeNames(w.declare(feedOf(pods))), nil)
		if f := feedStatus(t, s, "prod", feedOf(pods)); f.Objects != 3 || f.Mark != "" {
			t.Errorf("got %+v, want the objects of all namespaces", f)
		}
	},
	"a kind declared for all namespaces and for one is rejected": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		if _, err := s.Declare(t.Context(), "prod", w.term, declaredFeeds(feedOf(pods), namespacedFeed(pods, "a")),
			nil); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("got %v, want an error of kind %s", err, vedette.Invalid)
		}
	},
	"beginning a snapshot clears the mark": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		mark := vedette.Mark("9")
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark, State: vedette.FeedLive},
			{Feed: feedOf(services), Mark: &mark}}})
		if err := s.BeginSnapshot(t.Context(), "prod", w.term, feedOf(pods)); err != nil {
			t.Fatal(err)
		}
		if f := feedStatus(t, s, "prod", feedOf(pods)); f.Mark != "" || f.State != vedette.FeedSyncing {
			t.Errorf("got %+v, want a syncing feed without a mark", f)
		}
		if f := feedStatus(t, s, "prod", feedOf(services)); f.Mark != mark {
			t.Errorf("another feed: got %+v, want it unchanged", f)
		}
		if err := s.BeginSnapshot(t.Context(), "prod", w.term, namespacedFeed(pods, "a")); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("feed that is not declared: got %v, want an error of kind %s", err, vedette.Invalid)
		}
	},
	"a feed that is invalidated is reported completely, also from an earlier state": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		same := object(pods, "n", "web", "1000")
		mark := vedette.Mark("1200")
		w.commit(store.Batch{Upserts: []vedette.Object{same, object(services, "n", "web", "7")},
			Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark, State: vedette.FeedLive}}})
		if err := s.InvalidateFeed(t.Context(), "prod", w.term, feedOf(pods)); err != nil {
			t.Fatal(err)
		}
		if f := feedStatus(t, s, "prod", feedOf(pods)); f.Mark != "" {
			t.Errorf("got mark %s, want none", f.Mark)
		}
		beginSnapshot(t, w)
		equal(t, "index", readIndex(t, s, feedOf(pods)), []uint64{vedette.Digest(same.Namespace, same.Name, same.UID, "")})
		equal(t, "index of another feed", readIndex(t, s, feedOf(services)), sortedDigests(object(services, "n", "web", "7")))
		same.Body = []byte(`{"other":"content"}`)
		listed := vedette.Mark("950")
		w.commit(store.Batch{Upserts: []vedette.Object{same},
			Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &listed, SnapshotMark: listed, State: vedette.FeedLive}}})
		rows := queryAll(t, s, store.Query{Kinds: []vedette.Kind{pods}, Bodies: true})
		if len(rows) != 1 || string(rows[0].Body) != string(same.Body) {
			t.Errorf("got body %s, want other content under the same version", rows[0].Body)
		}
		if err := s.InvalidateFeed(t.Context(), "prod", w.term-1, feedOf(pods)); !errors.Is(err, store.ErrTerm) {
			t.Errorf("an earlier term: got %v, want %v", err, store.ErrTerm)
		}
	},
	"verifications are recorded, and their drift is added up": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		at := time.UnixMicro(1_700_000_000_000_000)
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Verified: at, Drift: 3}}})
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Verified: at.Add(time.Hour), Drift: 4}}})
		mark := vedette.Mark("7")
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark, State: vedette.FeedLive}}})
		if f := feedStatus(t, s, "prod", feedOf(pods)); !f.Verified.Equal(at.Add(time.Hour)) || f.Drift != 7 {
			t.Errorf("got %v and %d drifted objects, want %v and 7", f.Verified, f.Drift, at.Add(time.Hour))
		}
		if f := feedStatus(t, s, "prod", feedOf(services)); !f.Verified.IsZero() || f.Drift != 0 {
			t.Errorf("another feed: got %v and %d, want none", f.Verified, f.Drift)
		}
	},
	"a scan has all objects of a feed and no others": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		var all []vedette.Object
		var want []store.StoredObject
		for i := range severalRemovals { // more than one portion
			o := object(pods, "n", fmt.Sprintf("p%05d", i), "1")
			all = append(all, o)
			want = append(want, store.StoredObject{Digest: vedette.Digest(o.Namespace, o.Name, o.UID, o.ResourceVersion), Namespace: "n", Name: o.Name})
		}
		w.put(append(all, object(services, "n", "other", "1"))...)
		var got []store.StoredObject
		err := s.ScanObjects(t.Context(), "prod", feedOf(pods), func(portion []store.StoredObject) error {
			got = append(got, portion...)
			return nil
		})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %d objects, %v, want %d", len(got), err, len(want))
		}
		if err := s.ScanObjects(t.Context(), "none", feedOf(pods), nil); !errors.Is(err, store.ErrNoAccount) {
			t.Errorf("an unknown account: got %v, want %v", err, store.ErrNoAccount)
		}
	},
	"a cluster that goes back to an earlier state is listed again": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		changed := object(pods, "n", "web", "1000")
		mark := vedette.Mark("1200")
		w.commit(store.Batch{Upserts: []vedette.Object{changed, object(services, "n", "web", "7")},
			Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark, State: vedette.FeedLive}}})
		beginSnapshot(t, w)
		listed := vedette.Mark("950")
		_, err := s.Commit(t.Context(),
			store.Batch{Account: "prod", Term: w.term,
				Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &listed, SnapshotMark: listed, State: vedette.FeedLive}}})
		if !errors.Is(err, store.ErrRewound) {
			t.Fatalf("got %v, want %v", err, store.ErrRewound)
		}
		if f := feedStatus(t, s, "prod", feedOf(pods)); f.Mark != "" || f.State != vedette.FeedPending || f.Message == "" {
			t.Errorf("got %+v, want a pending feed without a mark", f)
		}
		equal(t, "index", readIndex(t, s, feedOf(pods)), []uint64{vedette.Digest(changed.Namespace, changed.Name, changed.UID, "")})
		equal(t, "index of another feed", readIndex(t, s, feedOf(services)), sortedDigests(object(services, "n", "web", "7")))
		beginSnapshot(t, w)
		changed.Body = []byte(`{"other":"content"}`)
		newMark := vedette.Mark("1010")
		w.commit(store.Batch{Upserts: []vedette.Object{changed},
			Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &newMark, SnapshotMark: newMark, State: vedette.FeedLive}}})
		rows := queryAll(t, s, store.Query{Kinds: []vedette.Kind{pods}, Bodies: true})
		if len(rows) != 1 || string(rows[0].Body) != string(changed.Body) {
			t.Errorf("got body %s, want that of the second list", rows[0].Body)
		}
	},
	"snapshots that are not older are accepted": func(t *testing.T, s *store.Store) {
		for from, listed := range map[vedette.Mark]vedette.Mark{"1200": "1200", "1100": "1201", "opaque": "5", "7": "opaque", "8": "0", "": "3"} {
			w := newWriter(t, s, "prod")
			w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &from, State: vedette.FeedLive}}})
			beginSnapshot(t, w)
			w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &listed, SnapshotMark: listed, State: vedette.FeedLive}}})
			if f := feedStatus(t, s, "prod", feedOf(pods)); f.Mark != listed {
				t.Errorf("from %q to %q: got mark %q, want the new one", from, listed, f.Mark)
			}
		}
	},
	"objects without uid have digests of their own": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod", feedOf(pods))
		a, b := object(pods, "n", "a", "1"), object(pods, "n", "b", "1")
		a.UID, b.UID = "", ""
		w.put(a, b)
		equal(t, "index", readIndex(t, s, feedOf(pods)), sortedDigests(a, b))
		old := vedette.DigestWithoutName("", "1")
		var withoutNames []uint64
		if err := s.IndexWithoutNames(t.Context(), "prod", feedOf(pods), func(digests []uint64) error {
			withoutNames = append(withoutNames, digests...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		equal(t, "index of older agents", withoutNames, []uint64{old, old})
		w.commit(store.Batch{Drops: []store.Drop{{Feed: feedOf(pods), Digests: []uint64{vedette.Digest("n", "a", "", "1")}}}})
		equal(t, "objects", rowNames(queryAll(t, s, store.Query{})), []string{"prod Pod n/b@1"})
		w.put(a)
		w.commit(store.Batch{Drops: []store.Drop{{Feed: feedOf(pods), Digests: []uint64{old}}}})
		equal(t, "objects after the drop of an older agent", rowNames(queryAll(t, s, store.Query{})), nil)
	},
	"the index has the digests of a feed's rows": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod", feedOf(pods), namespacedFeed(services, "a"), namespacedFeed(services, "b"))
		o := object(pods, "n", "odd", "1")
		o.UID = "fifteen letters"
		empty := object(pods, "n", "empty", "1")
		empty.UID = ""
		upper := object(pods, "n", "upper", "1")
		upper.UID = "A0000000-0000-4000-8000-00000000000B"
		w.put(o, empty, upper, object(pods, "n", "plain", "12"), object(services, "a", "s", "1"), object(services, "b", "s", "2"))
		equal(t, "pods", readIndex(t, s, feedOf(pods)), sortedDigests(o, empty, upper, object(pods, "n", "plain", "12")))
		equal(t, "services", readIndex(t, s, namespacedFeed(services, "b")), sortedDigests(object(services, "b", "s", "2")))
		stop := errors.New("enough")
		if err := s.Index(t.Context(), "prod", feedOf(pods), func([]uint64) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("got %v, want the error of yield", err)
		}
	},
	"a long index comes in chunks": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		const n = 2*maxIndexChunk + 1000
		var want []uint64
		for start := 0; start < n; start += 3000 {
			var objects []vedette.Object
			for i := range min(3000, n-start) {
				o := object(pods, fmt.Sprint("n", i%7), fmt.Sprintf("p%06d", start+i), "1")
				objects = append(objects, vedette.Object{Key: o.Key, UID: o.UID, ResourceVersion: "1"})
			}
			w.put(objects...)
			want = append(want, sortedDigests(objects...)...)
		}
		slices.Sort(want)
		if got := readIndex(t, s, feedOf(pods)); !slices.Equal(got, want) {
			t.Errorf("got %d digests that differ from the %d wanted", len(got), len(want))
		}
	},
	"each resource is returned once": func(t *testing.T, s *store.Store) {
		newWriter(t, s, "one", feedOf(pods), namespacedFeed(services, "a"), namespacedFeed(services, "b"))
		newWriter(t, s, "two", feedOf(pods), feedOf(deployments))
		got, err := s.Resources(t.Context())
		want := []vedette.Resource{resources[deployments], resources[pods], resources[services]}
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
