package writetest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// Commits are tests that commit batches.
var Commits = map[string]func(*testing.T, *store.Store){
	"an object is read back as it was committed": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		want := storetest.Object(storetest.Pods, "default", "web-5d4f8c7b9-x2x4z", "4711")
		want.APIVersion = "v1beta9"
		want.Owner = vedette.Owner{Kind: vedette.Kind{Group: "apps", Name: "ReplicaSet"}, Name: "web-5d4f8c7b9",
			UID: "a0000000-0000-4000-8000-00000000000b"}
		want.Labels = map[string]string{"app": "web", "empty": ""}
		want.Annotations["note"] = "emoji 🙂, NUL \x00, quote \" and 'quote'"
		w.Put(want)
		got, err := s.Object(t.Context(), "prod", want.Key)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Object, want) {
			t.Errorf("got %+v\nwant %+v", got.Object, want)
		}
		if got.Moniker.App != "app-of-"+want.Name || !reflect.DeepEqual(got.Resource,
			storetest.Resources[storetest.Pods]) || got.Stored.IsZero() {
			t.Errorf("got moniker %+v, resource %+v, stored %v, want those of the object", got.Moniker, got.Resource, got.Stored)
		}
	},
	"empty fields stay empty": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		want := vedette.Object{Key: vedette.Key{Kind: storetest.Roles, Name: "r"}, UID: "u", ResourceVersion: "1"}
		w.Put(want)
		got, err := s.Object(t.Context(), "prod", want.Key)
		if err != nil || !reflect.DeepEqual(got.Object, want) {
			t.Errorf("got %+v, %v\nwant %+v", got.Object, err, want)
		}
	},
	"commits return what changed": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		storetest.Equal(t, "first", storetest.ChangeNames(w.Put(storetest.Object(storetest.Pods, "n", "a", "1"),
			storetest.Object(storetest.Pods, "n", "b", "1"))),
			[]string{"added Pod n/a", "added Pod n/b"})
		changes := w.Commit(commit.Batch{
			Upserts: []vedette.Object{storetest.Object(storetest.Pods, "n", "a", "2"), storetest.Object(storetest.Pods, "n", "c", "1")},
			Deletes: storetest.Deletions(vedette.Key{Kind: storetest.Pods, Namespace: "n", Name: "b"}, vedette.Key{Kind: storetest.Pods,
				Namespace: "n", Name: "never"}),
		})
		storetest.Equal(t, "second", storetest.ChangeNames(changes), []string{"added Pod n/c", "deleted Pod n/b", "modified Pod n/a"})
		for _, c := range changes {
			if c.Account != "prod" || (c.Type == commit.Deleted) != (c.Version == "") {
				t.Errorf("got change %+v, want the account and the version", c)
			}
		}
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), []string{"prod Pod n/a@2", "prod Pod n/c@1"})
	},
	"unchanged objects are neither written nor returned": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		o := storetest.Object(storetest.Pods, "n", "a", "1")
		w.Put(o)
		before, err := s.Object(t.Context(), "prod", o.Key)
		if err != nil {
			t.Fatal(err)
		}
		o.Body = []byte("not looked at")
		if changes := w.Put(o); len(changes) != 0 {
			t.Errorf("got changes %v, want none", changes)
		}
		if after, err := s.Object(t.Context(), "prod", o.Key); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("got %+v, %v, want the row unchanged", after, err)
		}
		o.UID = "00000000-0000-4000-8000-ffffffffffff"
		storetest.Equal(t, "a new uid under the old version", storetest.ChangeNames(w.Put(o)), []string{"modified Pod n/a"})
	},
	"marks and states are committed with the data": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		mark := vedette.Mark("1234")
		w.Commit(commit.Batch{Upserts: []vedette.Object{storetest.Object(storetest.Pods, "n", "a", "1")},
			Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive, Message: "m"}}})
		f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods))
		if f.Mark != mark || f.State != vedette.FeedLive || f.Message != "m" || f.Objects != 1 {
			t.Errorf("got %+v, want the mark and the state", f)
		}
		if !f.LastSeen.IsZero() {
			t.Errorf("got last seen %v, but nobody has said up to when the feed is complete", f.LastSeen)
		}
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedDenied,
			Message: "forbidden \x00"}}})
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.Mark != mark || f.State != vedette.FeedDenied ||
			!strings.HasPrefix(f.Message, "forbidden ") {
			t.Errorf("without a mark: got %+v, want the mark unchanged", f)
		}
	},
	"a rejected batch stores nothing": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod", storetest.FeedOf(storetest.Pods))
		good := storetest.Object(storetest.Pods, "n", "good", "1")
		for why, bad := range map[string]commit.Batch{
			"no feed":      {Upserts: []vedette.Object{good, storetest.Object(storetest.Services, "n", "a", "1")}},
			"no such kind": {Upserts: []vedette.Object{good, storetest.Object(vedette.Kind{Name: "Nonesuch"}, "n", "a", "1")}},
			"twice": {Upserts: []vedette.Object{good, storetest.Object(storetest.Pods, "n", "a", "1"), storetest.Object(storetest.Pods,
				"n", "a", "2")}},
			"put and deleted": {Upserts: []vedette.Object{good}, Deletes: storetest.Deletions(good.Key)},
			"NUL":             {Upserts: []vedette.Object{good, storetest.Object(storetest.Pods, "n", "a\x00", "1")}},
			"no UTF-8":        {Upserts: []vedette.Object{good, storetest.Object(storetest.Pods, "n", "a\xff", "1")}},
			"no name":         {Upserts: []vedette.Object{good, storetest.Object(storetest.Pods, "n", "", "1")}},
			"endless name":    {Upserts: []vedette.Object{good, storetest.Object(storetest.Pods, "n", strings.Repeat("x", 513), "1")}},
			"feed not there":  {Upserts: []vedette.Object{good}, Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Services)}}},
			"drop elsewhere":  {Upserts: []vedette.Object{good}, Drops: []commit.Drop{{Feed: storetest.FeedOf(storetest.Services)}}},
		} {
			bad.Account, bad.Term = w.Account, w.Term
			if _, err := s.Commit(t.Context(), bad); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%s: got %v, want an error of kind %s", why, err, vedette.Invalid)
			}
		}
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), nil)
	},
	"unusual and long names": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		oddities := []string{"system:node-proxier", "UPPER", "upper", "Üñï", "a%b_c", `quo"te'`, strings.Repeat("n", 253),
			strings.Repeat("m", 512), "🙂"}
		var objects []vedette.Object
		for _, name := range oddities {
			objects = append(objects, storetest.Object(storetest.Roles, "", name, "1"))
		}
		if changes := w.Put(objects...); len(changes) != len(oddities) {
			t.Fatalf("got %d changes, want %d", len(changes), len(oddities))
		}
		for _, o := range objects {
			if got, err := s.Object(t.Context(), "prod", o.Key); err != nil || got.Name != o.Name || got.UID != o.UID {
				t.Errorf("%.20q: got %.20q, %v, want the same name", o.Name, got.Name, err)
			}
		}
	},
	"long text is truncated to its column": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		o := storetest.Object(storetest.Pods, "n", "a", "1")
		long := strings.Repeat("é", 5000)
		o.Annotations["moniker.spinnaker.io/application"] = long + "\x00\xff"
		o.Labels = map[string]string{strings.Repeat("k", 400): long, "nul": "\x00"}
		w.Put(o)
		for application, want := range map[string]int{long[:254]: 1, long + "\x00\xff": 0} {
			page, err := s.Objects(t.Context(), read.Query{Application: application})
			if err != nil || len(page.Items) != want {
				t.Errorf("got %d rows of an application with %d bytes, %v, want %d", len(page.Items), len(application), err, want)
			}
		}
	},
	"large bodies": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		noise := make([]byte, 1_500_000) // does not compress
		if _, err := rand.Read(noise); err != nil {
			t.Fatal(err)
		}
		var objects []vedette.Object
		for i := range 6 {
			o := storetest.Object(storetest.Pods, "n", fmt.Sprint("big-", i), "1")
			o.Body = append([]byte{byte(i)}, noise...)
			objects = append(objects, o)
		}
		w.Put(objects...)
		for _, o := range objects {
			if got, err := s.Object(t.Context(), "prod", o.Key); err != nil || !bytes.Equal(got.Body, o.Body) {
				t.Errorf("%s: got a body of %d bytes, %v, want %d", o.Key, len(got.Body), err, len(o.Body))
			}
		}
	},
	"bodies from before and after a dictionary was created": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		bodies := map[string][]byte{}
		for i := range 100 {
			o := storetest.Object(storetest.Deployments, "n", fmt.Sprintf("web-%03d", i), "1")
			o.Body = fmt.Appendf(nil,
				`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-%03d","namespace":"n"},"spec":{"replicas":%d,"template":{"spec":{"containers":[{"name":"main","image":"registry/web:%d"}]}}}}`, i, i*7, i)
			bodies[o.Name] = o.Body
			w.Put(o)
		}
		rows := storetest.QueryAll(t, s, read.Query{Bodies: true, Limit: 7})
		if len(rows) != len(bodies) {
			t.Fatalf("got %d rows, want %d", len(rows), len(bodies))
		}
		for _, r := range rows {
			if !bytes.Equal(r.Body, bodies[r.Name]) {
				t.Errorf("%s: got body %s, want its own", r.Name, r.Body)
			}
		}
	},
	"drops remove rows that a snapshot did not find": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		w.Put(storetest.Object(storetest.Pods, "n", "kept", "1"), storetest.Object(storetest.Pods, "n", "lost", "1"),
			storetest.Object(storetest.Pods, "n", "rewritten", "1"),
			storetest.Object(storetest.Pods, "n", "again", "1"), storetest.Object(storetest.Services, "n", "lost", "1"))
		lost := storetest.Object(storetest.Pods, "n", "lost", "1")
		rewritten := storetest.Object(storetest.Pods, "n", "rewritten", "1")
		recreated := storetest.Object(storetest.Pods, "n", "again", "1")
		w.Put(storetest.Object(storetest.Pods, "n", "rewritten", "2"))
		changes := w.Commit(commit.Batch{
			Upserts: []vedette.Object{storetest.Object(storetest.Pods, "n", "again", "2")},
			Drops: []commit.Drop{{Feed: storetest.FeedOf(storetest.Pods), Digests: []uint64{vedette.Digest(lost.Namespace, lost.Name, lost.UID,
				"1"), vedette.Digest(rewritten.Namespace, rewritten.Name, rewritten.UID, "1"),
				vedette.Digest(recreated.Namespace, recreated.Name, recreated.UID, "1"), 42}}},
		})
		storetest.Equal(t, "changes", storetest.ChangeNames(changes), []string{"deleted Pod n/lost", "modified Pod n/again"})
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})),
			[]string{"prod Pod n/again@2", "prod Pod n/kept@1", "prod Pod n/rewritten@2", "prod Service n/lost@1"})
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.Objects != 3 {
			t.Errorf("got a count of %d, want 3", f.Objects)
		}
	},
	"unused label sets are collected": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		other := storetest.NewWriter(t, s, "other")
		other.Put(storetest.Object(storetest.Pods, "n", "kept", "1"))
		for round := range 6 {
			objects := manyPods(1000)
			for i := range objects {
				objects[i].ResourceVersion = fmt.Sprint(round)
				objects[i].Labels = map[string]string{"app": "web", "job": fmt.Sprint(round*1000 + i)}
			}
			w.Put(objects...)
		}
		if st, err := s.Stats(t.Context()); err != nil || st.Labels >= 6000 || st.Labels < 1001 {
			t.Errorf("got %d label sets after 6 rounds, %v, want 1001 to 5999", st.Labels, err)
		}
		for _, q := range []read.Query{{Selector: "job=5999"}, {Selector: "app=kept"}} {
			if rows := storetest.QueryAll(t, s, q); len(rows) != 1 {
				t.Errorf("%s: got %d rows, want 1", q.Selector, len(rows))
			}
		}
		w.Declare(storetest.FeedOf(storetest.Pods))
		if st, err := s.Stats(t.Context()); err != nil || st.Labels != 1001 {
			t.Errorf("got %d label sets after a declaration, %v, want 1001", st.Labels, err)
		}
	},
	"a replaced writer is rejected": func(t *testing.T, s *store.Store) {
		old := storetest.NewWriter(t, s, "prod")
		current := storetest.Acquire(t, s, "prod")
		_, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: old.Term,
			Upserts: []vedette.Object{storetest.Object(storetest.Pods, "n", "a", "1")}})
		if !errors.Is(err, registry.ErrTerm) || vedette.KindOf(err) != vedette.Conflict {
			t.Errorf("commit: got %v, want %v", err, registry.ErrTerm)
		}
		if err := s.BeginSnapshot(t.Context(), "prod", old.Term, storetest.FeedOf(storetest.Pods)); !errors.Is(err, registry.ErrTerm) {
			t.Errorf("begin: got %v, want %v", err, registry.ErrTerm)
		}
		if _, err := s.Declare(t.Context(), "prod", old.Term, nil, nil); !errors.Is(err, registry.ErrTerm) {
			t.Errorf("declare: got %v, want %v", err, registry.ErrTerm)
		}
		current.Put(storetest.Object(storetest.Pods, "n", "a", "2"))
	},
	"writers that are replaced while they write": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		var last vedette.Term
		var wg sync.WaitGroup
		for i := range 6 {
			next := storetest.Acquire(t, s, "prod")
			last = next.Term
			wg.Go(func() {
				for n := range 20 {
					version := fmt.Sprintf("%d-%d", next.Term, n)
					_, err := s.Commit(t.Context(),
						commit.Batch{Account: "prod", Term: next.Term,
							Upserts: []vedette.Object{storetest.Object(storetest.Pods, "n", "a", version), storetest.Object(storetest.Pods, "n",
								fmt.Sprint(i), version)}})
					if errors.Is(err, registry.ErrTerm) {
						return
					}
					if err != nil {
						t.Errorf("commit: got %v, want success or %v", err, registry.ErrTerm)
					}
				}
			})
		}
		wg.Wait()
		w.Term = last
		w.Put(storetest.Object(storetest.Pods, "n", "a", "final"))
		got, err := s.Object(t.Context(), "prod", vedette.Key{Kind: storetest.Pods, Namespace: "n", Name: "a"})
		if err != nil || got.ResourceVersion != "final" {
			t.Errorf("got version %s, %v, want final", got.ResourceVersion, err)
		}
		if f, n := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)), len(storetest.QueryAll(t, s,
			read.Query{})); f.Objects != int64(n) {
			t.Errorf("got a count of %d, want %d", f.Objects, n)
		}
	},
	"accounts are written concurrently": func(t *testing.T, s *store.Store) {
		var wg sync.WaitGroup
		for i := range 6 {
			w := storetest.NewWriter(t, s, vedette.AccountName(fmt.Sprint("account-", i)))
			wg.Go(func() {
				for n := range 10 {
					var objects []vedette.Object
					for k := range 40 {
						objects = append(objects, storetest.Object(storetest.Pods, "n", fmt.Sprint("pod-", k), fmt.Sprint(n)))
					}
					if _, err := s.Commit(t.Context(), commit.Batch{Account: w.Account, Term: w.Term, Upserts: objects}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := len(storetest.QueryAll(t, s, read.Query{Limit: 37})); n != 6*40 {
			t.Errorf("got %d objects, want %d", n, 6*40)
		}
	},
}
