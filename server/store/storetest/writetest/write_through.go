package writetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// WriteThrough are tests that write objects through, besides what feeds report.
var WriteThrough = map[string]func(*testing.T, *store.Store){
	"what an operation wrote is visible before its feed reports it": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		storetest.Equal(t, "created", storetest.ChangeNames(w.writePodThrough("web", 10)), []string{"added Pod n/web"})
		storetest.Equal(t, "an older version", storetest.ChangeNames(w.commitLive(7, pod("web", 7))), nil)
		w.expectPods("web@10")
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.Mark != "7" || f.Objects != 1 {
			t.Errorf("got mark %q and %d objects, want 7 and 1", f.Mark, f.Objects)
		}
		storetest.Equal(t, "the same version", storetest.ChangeNames(w.commitLive(10, pod("web", 10))), nil)
		storetest.Equal(t, "a newer version", storetest.ChangeNames(w.commitLive(12, pod("web", 12))), []string{"modified Pod n/web"})
		w.expectPods("web@12")
	},
	"the uid of a stored object": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(6, pod("web", 6))
		for name, want := range map[string]string{"web": pod("web", 6).UID, "api": ""} {
			uid, _, err := s.UID(t.Context(), "prod", vedette.Key{Kind: storetest.Pods, Namespace: "n", Name: name})
			if err != nil || uid != want {
				t.Errorf("%s: got %q, %v, want %q", name, uid, err, want)
			}
		}
		if uid, _, err := s.UID(t.Context(), "prod", vedette.Key{Kind: vedette.Kind{Name: "Widget"}, Namespace: "n", Name: "web"}); uid != "" ||
			err != nil {
			t.Errorf("unknown kind: got %q, %v, want no uid", uid, err)
		}
		if _, _, err := s.UID(t.Context(), "none", vedette.Key{Kind: storetest.Pods, Namespace: "n", Name: "web"}); !errors.Is(err,
			registry.ErrNoAccount) {
			t.Errorf("missing account: got %v, want %v", err, registry.ErrNoAccount)
		}
	},
	"a late result changes nothing": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(12, pod("web", 12))
		storetest.Equal(t, "older than the stored version", storetest.ChangeNames(w.writePodThrough("web", 10)), nil)
		storetest.Equal(t, "the stored version", storetest.ChangeNames(w.writePodThrough("web", 12)), nil)
		w.commitDelete(14, "web", "14")
		storetest.Equal(t, "of an object that is deleted since", storetest.ChangeNames(w.writePodThrough("web", 13)), nil)
		w.expectPods()
	},
	"a result that the feed has passed replaces an older version": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(6, pod("web", 6))
		w.commitLive(20) // a newer change of it is further back in the agent's queue
		storetest.Equal(t, "written", storetest.ChangeNames(w.writePodThrough("web", 10)), []string{"modified Pod n/web"})
		w.commitLive(25, pod("web", 25))
		w.expectPods("web@25")
	},
	"deletions are compared by version": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 10)
		storetest.Equal(t, "of the predecessor", storetest.ChangeNames(w.commitDelete(8, "web", "8")), nil)
		w.expectPods("web@10")
		storetest.Equal(t, "of this object", storetest.ChangeNames(w.commitDelete(11, "web", "11")), []string{"deleted Pod n/web"})
		storetest.Equal(t, "the next object", storetest.ChangeNames(w.commitLive(12, pod("web", 12))), []string{"added Pod n/web"})
	},
	"objects whose version cannot be compared are left to their feed": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		for _, version := range []string{"abc", "-3", "1e3", "18446744073709551616"} {
			storetest.Equal(t, version, storetest.ChangeNames(w.writeThrough(storetest.Object(storetest.Pods, "n", "odd", version))), nil)
		}
		w.Put(storetest.Object(storetest.Pods, "n", "odd", "abc"))
		storetest.Equal(t, "a number compared with text", storetest.ChangeNames(w.writePodThrough("odd", 10)), nil)
		w.expectPods("odd@abc")
	},
	"the largest version": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writeThrough(storetest.Object(storetest.Pods, "n", "web", "18446744073709551615"))
		storetest.Equal(t, "older", storetest.ChangeNames(w.commitLive(9, storetest.Object(storetest.Pods, "n", "web",
			"9223372036854775808"))), nil)
		w.expectPods("web@18446744073709551615")
	},
	"a newer snapshot wins": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.beginSnapshot()
		storetest.Equal(t, "index", w.readIndex(), nil)
		w.writePodThrough("web", 10) // and it is deleted before the list is read
		w.expectPods("web@10")
		w.endSnapshot(12, nil)
		w.expectPods()
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.Objects != 0 || f.Mark != "12" {
			t.Errorf("got mark %q and %d objects, want 12 and 0", f.Mark, f.Objects)
		}
	},
	"a newer snapshot whose index has the object keeps it": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.beginSnapshot()
		w.writePodThrough("web", 10)
		storetest.Equal(t, "index", w.readIndex(), sortedDigests(pod("web", 10)))
		w.endSnapshot(12, nil)
		w.expectPods("web@10")
	},
	"an older snapshot changes nothing": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(6, pod("web", 6))
		w.beginSnapshot()
		w.readIndex()
		w.writePodThrough("web", 10)
		w.writePodThrough("new", 11)
		storetest.Equal(t, "its item", storetest.ChangeNames(w.Put(pod("web", 8))), nil)
		w.endSnapshot(9, sortedDigests(pod("web", 6)))
		w.expectPods("new@11", "web@10")
		w.commitLive(12)
		w.commitLive(13, pod("web", 13), pod("new", 11))
		w.expectPods("new@11", "web@13")
	},
	"a drop waits for the end of its snapshot": func(t *testing.T, s *store.Store) {
		for _, c := range []struct {
			end  int
			want []string
		}{{9, []string{"web@10"}}, {10, nil}, {11, nil}} {
			w := newLivePodWriter(t, s, 5)
			w.writePodThrough("web", 10)
			w.beginSnapshot()
			storetest.Equal(t, "index", w.readIndex(), sortedDigests(pod("web", 10)))
			storetest.Equal(t, "drop", storetest.ChangeNames(w.Commit(commit.Batch{Drops: []commit.Drop{{Feed: storetest.FeedOf(storetest.Pods),
				Digests: sortedDigests(pod("web", 10))}}})),
				nil)
			w.expectPods("web@10")
			w.endSnapshot(c.end, nil)
			w.expectPods(c.want...)
			w.commitLive(20)
			w.expectPods(c.want...)
			if len(c.want) > 0 {
				w.commitDelete(21, "web", "21")
			}
		}
	},
	"the mark of a batch is not the version of the snapshot in it": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.beginSnapshot()
		w.readIndex()
		w.writePodThrough("web", 10)
		last := vedette.Mark("15")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &last, SnapshotMark: "8",
			State: vedette.FeedLive}}})
		w.expectPods("web@10")
	},
	"a deletion without a version waits for the end of the snapshot": func(t *testing.T, s *store.Store) {
		for _, c := range []struct {
			end  int
			want []string
		}{{9, []string{"web@10"}}, {12, nil}} {
			w := newLivePodWriter(t, s, 5)
			w.writePodThrough("web", 10)
			w.beginSnapshot()
			w.readIndex()
			storetest.Equal(t, "deletion", storetest.ChangeNames(w.Commit(commit.Batch{Deletes: storetest.Deletions(pod("web", 0).Key)})), nil)
			w.endSnapshot(c.end, nil)
			w.expectPods(c.want...)
		}
	},
	"a snapshot that starts over reads the index again": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.beginSnapshot()
		w.readIndex()
		w.writePodThrough("web", 10)
		w.Writer = storetest.Acquire(t, s, "prod")
		w.beginSnapshot()
		storetest.Equal(t, "index", w.readIndex(), sortedDigests(pod("web", 10)))
		w.endSnapshot(12, nil)
		w.expectPods("web@10")
	},
	"objects that are written through while the index is read": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.beginSnapshot()
		var chunks int
		err := s.Index(t.Context(), "prod", storetest.FeedOf(storetest.Pods), func([]uint64) error { chunks++; return nil })
		if err != nil || chunks != 0 {
			t.Fatalf("got %d chunks of an empty index, %v, want none", chunks, err)
		}
		w.Put(pod("a", 4))
		w.beginSnapshot()
		err = s.Index(t.Context(), "prod", storetest.FeedOf(storetest.Pods), func([]uint64) error {
			w.writePodThrough("b", 10)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.endSnapshot(12, nil) // a is as in the index, b is not in the cluster
		w.expectPods("a@4")
	},
	"a removed object does not come back": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(6, pod("web", 6))
		uid := pod("web", 6).UID
		storetest.Equal(t, "removed", storetest.ChangeNames(w.removeThrough("web", uid)), []string{"deleted Pod n/web"})
		storetest.Equal(t, "a late change", storetest.ChangeNames(w.commitLive(8, pod("web", 8))), nil)
		storetest.Equal(t, "a late result", storetest.ChangeNames(w.writePodThrough("web", 9)), nil)
		w.expectPods()
		next := pod("web", 12)
		next.UID = "another"
		storetest.Equal(t, "the next object", storetest.ChangeNames(w.commitLive(12, next)), []string{"added Pod n/web"})
		storetest.Equal(t, "removed again", storetest.ChangeNames(w.removeThrough("web", uid)), nil)
		storetest.Equal(t, "without a uid", storetest.ChangeNames(w.removeThrough("web", "")), nil)
		w.expectPods("web@12")
	},
	"an object that is removed before its feed reports it": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		storetest.Equal(t, "removed", storetest.ChangeNames(w.removeThrough("web", pod("web", 0).UID)), nil)
		first := pod("web", 6)
		first.UID = "its forerunner"
		w.commitLive(6, first)
		w.commitDelete(7, "web", "7")
		storetest.Equal(t, "a late change", storetest.ChangeNames(w.commitLive(8, pod("web", 8))), nil)
		w.commitDelete(9, "web", "9")
		w.expectPods()
	},
	"a removed object loses its floor": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 10)
		w.removeThrough("web", pod("web", 0).UID)
		w.commitLive(10, pod("web", 10))
		w.expectPods()
		w.commitDelete(11, "web", "11")
		w.expectPods()
	},
	"another server leaves out what operations have replaced": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(6, pod("gone", 6))
		w.writePodThrough("web", 10)
		w.removeThrough("gone", pod("gone", 0).UID)
		w.moveToAnotherServer()
		storetest.Equal(t, "older versions", storetest.ChangeNames(w.commitLive(9, pod("web", 7), pod("gone", 8))), nil)
		storetest.Equal(t, "the deletion of a predecessor", storetest.ChangeNames(w.commitDelete(9, "web", "8")), nil)
		storetest.Equal(t, "a late result", storetest.ChangeNames(w.writePodThrough("gone", 9)), nil)
		w.expectPods("web@10")
		w.moveToAnotherServer()
		storetest.Equal(t, "older versions", storetest.ChangeNames(w.commitLive(9, pod("web", 9), pod("gone", 9))), nil)
		w.expectPods("web@10")
		storetest.Equal(t, "what follows", storetest.ChangeNames(w.commitLive(12, pod("web", 12))), []string{"modified Pod n/web"})
		w.expectPods("web@12")
	},
	"another server stores older versions than those that a feed has reported": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(20, pod("web", 20)) // of an API server that counts anew
		w.moveToAnotherServer()
		w.commitLive(3, pod("web", 3))
		w.expectPods("web@3")
		w.commitLive(9, pod("api", 9))
		w.commitLive(4, pod("web", 4))
		w.commitLive(5, pod("api", 5)) // which is stored in a newer version than the mark
		w.expectPods("api@5", "web@4")
	},
	"a cluster that has gone back has what operations deleted": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(6, pod("web", 6))
		w.removeThrough("web", pod("web", 0).UID)
		w.commitDelete(20, "web", "20")
		w.beginSnapshot()
		w.readIndex()
		m := vedette.Mark("7")
		_, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: w.Term, Feeds: []commit.FeedUpdate{{
			Feed: storetest.FeedOf(storetest.Pods), Mark: &m, SnapshotMark: m}}})
		if !errors.Is(err, commit.ErrRewound) {
			t.Fatalf("got %v, want %v", err, commit.ErrRewound)
		}
		w.moveToAnotherServer()
		w.beginSnapshot()
		w.Put(pod("web", 6))
		w.endSnapshot(7, nil)
		w.expectPods("web@6")
	},
	"what operations found out is forgotten with its own feed": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.Declare(storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Services))
		w.commitLive(6, pod("gone", 6))
		w.writePodThrough("web", 10)
		w.removeThrough("gone", pod("gone", 0).UID)
		w.invalidate(storetest.Services)
		storetest.Equal(t, "older versions", storetest.ChangeNames(w.commitLive(9, pod("web", 7), pod("gone", 8))), nil)
		w.moveToAnotherServer()
		w.invalidate(storetest.Services)
		storetest.Equal(t, "older versions for another server", storetest.ChangeNames(w.commitLive(9, pod("web", 9), pod("gone", 9))), nil)
		w.expectPods("web@10")
		w.invalidate(storetest.Pods)
		w.beginSnapshot()
		w.Put(pod("web", 8), pod("gone", 6))
		w.endSnapshot(8, nil)
		w.expectPods("gone@6", "web@8")
	},
	"feeds that are no longer declared lose their floors": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 10)
		w.Declare(storetest.FeedOf(storetest.Services))
		w.Declare(storetest.FeedOf(storetest.Pods))
		w.beginSnapshot()
		w.Put(pod("web", 9))
		w.endSnapshot(9, nil)
		w.expectPods("web@9")
	},
	"a removed account loses its floors": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 10)
		if err := s.RemoveAccount(t.Context(), "prod"); err != nil {
			t.Fatal(err)
		}
		w = newLivePodWriter(t, s, 5)
		w.commitLive(7, pod("web", 7))
		w.expectPods("web@7")
	},
	"objects of another shape are replaced": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 10)
		term, err := s.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "agent-2", Server: "server-1", Shape: "another"})
		if err != nil {
			t.Fatal(err)
		}
		w.Term = term
		w.beginSnapshot()
		invalidated := pod("web", 0)
		invalidated.ResourceVersion = ""
		storetest.Equal(t, "index", w.readIndex(), sortedDigests(invalidated))
		storetest.Equal(t, "an older list", storetest.ChangeNames(w.Put(pod("web", 8))), nil)
		w.endSnapshot(9, sortedDigests(invalidated))
		w.commitLive(10, pod("web", 10))
		w.expectPods("web@10")
	},
	"writing through requires the current term": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.Put(pod("web", 4))
		storetest.Acquire(t, s, "prod")
		expectError := func(want error, account vedette.AccountName, term vedette.Term, o vedette.Object) {
			t.Helper()
			if _, _, err := s.WriteThrough(t.Context(), account, term, o, nil); !errors.Is(err, want) {
				t.Errorf("write: got %v, want %v", err, want)
			}
			if _, _, err := s.RemoveThrough(t.Context(), account, term, o.Key, o.UID, nil); !errors.Is(err, want) {
				t.Errorf("remove: got %v, want %v", err, want)
			}
		}
		expectError(registry.ErrTerm, "prod", w.Term, pod("web", 10))
		expectError(registry.ErrNoAccount, "nobody", w.Term, pod("web", 10))
		expectError(commit.ErrNoFeed, "prod", w.Term+1, storetest.Object(vedette.Kind{Name: "Nonesuch"}, "n", "a", "1"))
		if _, _, err := s.WriteThrough(t.Context(), "prod", w.Term+1, storetest.Object(storetest.Pods, "n", "a\x00", "1"),
			nil); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("invalid name: got %v, want an error of kind %s", err, vedette.Invalid)
		}
		w.expectPods("web@4")
	},
	"an operation's outcome is stored with what it wrote": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		written := storetest.Operation(1)
		removed := storetest.Operation(2)
		idle := storetest.Operation(3)
		refused := storetest.Operation(4)
		for _, o := range []history.Operation{written, removed, idle, refused} {
			storetest.BeginOperation(t, s, o)
		}
		expectEnded := func(want bool, ended bool, err error) {
			t.Helper()
			if ended != want || err != nil {
				t.Errorf("got ended %v, %v, want %v", ended, err, want)
			}
		}
		end := storetest.Ended(written, vedette.Done)
		_, noted, err := s.WriteThrough(t.Context(), "prod", w.Term, pod("web", 10), &end)
		expectEnded(true, noted, err)
		storetest.CheckOperation(t, s, end)
		end = storetest.Ended(removed, vedette.Failed) // a failed operation may have removed the object
		_, noted, err = s.RemoveThrough(t.Context(), "prod", w.Term, pod("web", 10).Key, pod("web", 10).UID, &end)
		expectEnded(true, noted, err)
		storetest.CheckOperation(t, s, end)
		end = storetest.Ended(written, vedette.Failed)
		_, noted, err = s.WriteThrough(t.Context(), "prod", w.Term, pod("api", 11), &end)
		expectEnded(true, noted, err)
		storetest.CheckOperation(t, s, storetest.Ended(written, vedette.Done)) // the first outcome stays
		end = storetest.Ended(idle, vedette.Done)
		_, noted, err = s.WriteThrough(t.Context(), "prod", w.Term, pod("api", 11), &end) // which is stored already
		expectEnded(false, noted, err)
		storetest.CheckOperation(t, s, idle)
		_, noted, err = s.RemoveThrough(t.Context(), "prod", w.Term, pod("none", 1).Key, "uid-none", &end) // which its feed may still report
		expectEnded(true, noted, err)
		storetest.CheckOperation(t, s, end)
		end = storetest.Ended(refused, vedette.Done)
		_, noted, err = s.WriteThrough(t.Context(), "prod", w.Term-1, pod("api", 12), &end)
		if noted || !errors.Is(err, registry.ErrTerm) {
			t.Errorf("old term: got ended %v, %v, want false and %v", noted, err, registry.ErrTerm)
		}
		storetest.CheckOperation(t, s, refused)
		w.expectPods("api@11")
	},
	"results of many operations while the feed reports changes": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for version := 10 + worker; version < 90; version += 4 {
					if _, _, err := s.WriteThrough(t.Context(), "prod", w.Term, pod(fmt.Sprint("web-", version%5), version), nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for version := 10; version < 90; version++ {
			mark := vedette.Mark(fmt.Sprint(version))
			_, err := s.Commit(t.Context(),
				commit.Batch{Account: "prod", Term: w.Term, Upserts: []vedette.Object{pod(fmt.Sprint("web-", version%5), version)},
					Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark}}})
			if err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		w.expectPods("web-0@85", "web-1@86", "web-2@87", "web-3@88", "web-4@89")
		if f := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)); f.Objects != 5 {
			t.Errorf("got a count of %d, want 5", f.Objects)
		}
	},
	"a deletion is one change, although an older result arrives after it": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 7)
		o := pod("web", 7)
		changes, _, err := s.RemoveAbsent(t.Context(), "prod", w.Term, vedette.Absence{Key: o.Key, Version: "7"}, o.UID, nil)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Equal(t, "the deletion", storetest.ChangeNames(changes), []string{"deleted Pod n/web"})
		storetest.Equal(t, "a later version of the object that was deleted", storetest.ChangeNames(w.writePodThrough("web", 9)), nil)
		storetest.Equal(t, "the feed", storetest.ChangeNames(w.commitLive(9, pod("web", 9))), nil)
		w.expectPods()
	},
	"random histories, seed 1": func(t *testing.T, s *store.Store) { testRandomWriteThrough(t, s, 1) },
	"random histories, seed 2": func(t *testing.T, s *store.Store) { testRandomWriteThrough(t, s, 2) },
	"random histories, seed 3": func(t *testing.T, s *store.Store) { testRandomWriteThrough(t, s, 3) },
	// A newer change has replaced a deletion in the agent's queue, so that the feed's mark is past it, and it is never reported.
	"random histories, seed 160": func(t *testing.T, s *store.Store) { testRandomWriteThrough(t, s, 160) },
	// Before the first snapshot, the result of an old operation arrives after everything newer is gone.
	"random histories, seed 229": func(t *testing.T, s *store.Store) { testRandomWriteThrough(t, s, 229) },
}

// podWriter is a cacher of pods that also writes through.
type podWriter struct{ *storetest.Writer }

// newLivePodWriter returns a writer whose pods are live and have a mark.
func newLivePodWriter(t *testing.T, s *store.Store, mark int) podWriter {
	w := podWriter{storetest.NewWriter(t, s, "prod", storetest.FeedOf(storetest.Pods))}
	w.Commit(commit.Batch{Drops: []commit.Drop{{Feed: storetest.FeedOf(storetest.Pods), Digests: readIndex(t, s,
		storetest.FeedOf(storetest.Pods))}}})
	w.commitLive(mark)
	return w
}

// moveToAnotherServer makes the agent the cacher at another server.
func (w *podWriter) moveToAnotherServer() {
	w.T.Helper()
	w.Writer = storetest.Acquire(w.T, storetest.AnotherServer(w.T, w.Store), "prod")
	w.Declare(storetest.FeedOf(storetest.Pods))
}

func pod(name string, version int) vedette.Object {
	return storetest.Object(storetest.Pods, "n", name, fmt.Sprint(version))
}

func (w podWriter) writePodThrough(name string, version int) []commit.Change {
	w.T.Helper()
	return w.writeThrough(pod(name, version))
}

func (w podWriter) writeThrough(o vedette.Object) []commit.Change {
	w.T.Helper()
	changes, _, err := w.Store.WriteThrough(w.T.Context(), w.Account, w.Term, o, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	return changes
}

func (w podWriter) removeThrough(name, uid string) []commit.Change {
	w.T.Helper()
	changes, _, err := w.Store.RemoveThrough(w.T.Context(), w.Account, w.Term, pod(name, 0).Key, uid, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	return changes
}

// commitLive commits changes of a watch, up to a mark.
func (w podWriter) commitLive(mark int, objects ...vedette.Object) []commit.Change {
	w.T.Helper()
	m := vedette.Mark(fmt.Sprint(mark))
	return w.Commit(commit.Batch{Upserts: objects, Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &m,
		State: vedette.FeedLive}}})
}

func (w podWriter) commitDelete(mark int, name, version string) []commit.Change {
	w.T.Helper()
	m := vedette.Mark(fmt.Sprint(mark))
	return w.Commit(commit.Batch{Deletes: []commit.Deletion{{Key: pod(name, 0).Key, Version: version}},
		Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &m}}})
}

// invalidate makes the feed of a kind be read anew, as after a restore of its cluster.
func (w podWriter) invalidate(kind vedette.Kind) {
	w.T.Helper()
	if err := w.Store.InvalidateFeed(w.T.Context(), w.Account, w.Term, storetest.FeedOf(kind)); err != nil {
		w.T.Fatal(err)
	}
}

func (w podWriter) beginSnapshot() {
	w.T.Helper()
	if err := w.Store.BeginSnapshot(w.T.Context(), w.Account, w.Term, storetest.FeedOf(storetest.Pods)); err != nil {
		w.T.Fatal(err)
	}
}

func (w podWriter) readIndex() []uint64 {
	w.T.Helper()
	return readIndex(w.T, w.Store, storetest.FeedOf(storetest.Pods))
}

// endSnapshot commits the end of a snapshot that was listed at a version.
func (w podWriter) endSnapshot(version int, drops []uint64) {
	w.T.Helper()
	m := vedette.Mark(fmt.Sprint(version))
	b := commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &m, SnapshotMark: m,
		State: vedette.FeedLive}}}
	if len(drops) > 0 {
		b.Drops = []commit.Drop{{Feed: storetest.FeedOf(storetest.Pods), Digests: drops}}
	}
	w.Commit(b)
}

// expectPods checks that exactly these pods are stored, as "name@version".
func (w podWriter) expectPods(want ...string) {
	w.T.Helper()
	var got []string
	for _, r := range storetest.QueryAll(w.T, w.Store, read.Query{}) {
		got = append(got, r.Name+"@"+r.ResourceVersion)
	}
	storetest.Equal(w.T, "stored", got, want)
}
