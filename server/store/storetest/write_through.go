package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

var writeThroughTests = map[string]func(*testing.T, *store.Store){
	"what an operation wrote is there before its feed tells it": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		equal(t, "made", changeNames(w.writePodThrough("web", 10)), []string{"added Pod n/web"})
		equal(t, "older news", changeNames(w.commitLive(7, pod("web", 7))), nil)
		w.expectPods("web@10")
		if f := feedStatus(t, s, "prod", feedOf(pods)); f.Mark != "7" || f.Objects != 1 {
			t.Errorf("mark %q, %d objects", f.Mark, f.Objects)
		}
		equal(t, "the same", changeNames(w.commitLive(10, pod("web", 10))), nil)
		equal(t, "newer news", changeNames(w.commitLive(12, pod("web", 12))), []string{"modified Pod n/web"})
		w.expectPods("web@12")
	},
	"the uid of what is stored": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(6, pod("web", 6))
		for name, want := range map[string]string{"web": pod("web", 6).UID, "api": ""} {
			uid, err := s.UID(t.Context(), "prod", vedette.Key{Kind: pods, Namespace: "n", Name: name})
			if err != nil || uid != want {
				t.Errorf("%s: %q, %v; want %q", name, uid, err, want)
			}
		}
		if uid, err := s.UID(t.Context(), "prod", vedette.Key{Kind: vedette.Kind{Name: "Widget"}, Namespace: "n", Name: "web"}); uid != "" || err != nil {
			t.Errorf("of a kind that nobody knows: %q, %v", uid, err)
		}
		if _, err := s.UID(t.Context(), "none", vedette.Key{Kind: pods, Namespace: "n", Name: "web"}); !errors.Is(err, store.ErrNoAccount) {
			t.Errorf("of an account that is not there: %v", err)
		}
	},
	"a result that comes late changes nothing": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(12, pod("web", 12))
		equal(t, "older than what is stored", changeNames(w.writePodThrough("web", 10)), nil)
		equal(t, "as old", changeNames(w.writePodThrough("web", 12)), nil)
		w.commitDelete(14, "web", "14")
		equal(t, "of an object that has gone since", changeNames(w.writePodThrough("web", 13)), nil)
		w.expectPods()
	},
	"a result that the feed has passed is written over what is older": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(6, pod("web", 6))
		w.commitLive(20) // a newer change of it stands further back in the agent's queue
		equal(t, "written", changeNames(w.writePodThrough("web", 10)), []string{"modified Pod n/web"})
		w.commitLive(25, pod("web", 25))
		w.expectPods("web@25")
	},
	"deletions count by their version": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 10)
		equal(t, "of the one before", changeNames(w.commitDelete(8, "web", "8")), nil)
		w.expectPods("web@10")
		equal(t, "of this one", changeNames(w.commitDelete(11, "web", "11")), []string{"deleted Pod n/web"})
		equal(t, "another", changeNames(w.commitLive(12, pod("web", 12))), []string{"added Pod n/web"})
	},
	"versions that can't be compared leave the object to its feed": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		for _, version := range []string{"abc", "-3", "1e3", "18446744073709551616"} {
			equal(t, version, changeNames(w.writeThrough(object(pods, "n", "odd", version))), nil)
		}
		w.put(object(pods, "n", "odd", "abc"))
		equal(t, "a number against a word", changeNames(w.writePodThrough("odd", 10)), nil)
		w.expectPods("odd@abc")
	},
	"the largest version": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writeThrough(object(pods, "n", "web", "18446744073709551615"))
		equal(t, "older", changeNames(w.commitLive(9, object(pods, "n", "web", "9223372036854775808"))), nil)
		w.expectPods("web@18446744073709551615")
	},
	"a snapshot that is newer is believed": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.beginSnapshot()
		equal(t, "index", w.readIndex(), nil)
		w.writePodThrough("web", 10) // and it has gone before the list was read
		w.expectPods("web@10")
		w.endSnapshot(12, nil)
		w.expectPods()
		if f := feedStatus(t, s, "prod", feedOf(pods)); f.Objects != 0 || f.Mark != "12" {
			t.Errorf("mark %q, %d objects", f.Mark, f.Objects)
		}
	},
	"a snapshot that is newer and was told of the object leaves it": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.beginSnapshot()
		w.writePodThrough("web", 10)
		equal(t, "index", w.readIndex(), sortedDigests(pod("web", 10)))
		w.endSnapshot(12, nil)
		w.expectPods("web@10")
	},
	"a snapshot that is older changes nothing": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(6, pod("web", 6))
		w.beginSnapshot()
		w.readIndex()
		w.writePodThrough("web", 10)
		w.writePodThrough("new", 11)
		equal(t, "its item", changeNames(w.put(pod("web", 8))), nil)
		w.endSnapshot(9, sortedDigests(pod("web", 6)))
		w.expectPods("new@11", "web@10")
		w.commitLive(12)
		w.commitLive(13, pod("web", 13), pod("new", 11))
		w.expectPods("new@11", "web@13")
	},
	"a drop waits for what its snapshot ends at": func(t *testing.T, s *store.Store) {
		for _, c := range []struct {
			end  int
			want []string
		}{{9, []string{"web@10"}}, {10, nil}, {11, nil}} {
			w := newLivePodWriter(t, s, 5)
			w.writePodThrough("web", 10)
			w.beginSnapshot()
			equal(t, "index", w.readIndex(), sortedDigests(pod("web", 10)))
			equal(t, "drop", changeNames(w.commit(store.Batch{Drops: []store.Drop{{Feed: feedOf(pods), Digests: sortedDigests(pod("web", 10))}}})), nil)
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
	"what follows a snapshot in its batch does not count for it": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.beginSnapshot()
		w.readIndex()
		w.writePodThrough("web", 10)
		last := vedette.Mark("15")
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &last, SnapshotMark: "8", State: vedette.FeedLive}}})
		w.expectPods("web@10")
	},
	"a deletion without a version within a snapshot waits for its end": func(t *testing.T, s *store.Store) {
		for _, c := range []struct {
			end  int
			want []string
		}{{9, []string{"web@10"}}, {12, nil}} {
			w := newLivePodWriter(t, s, 5)
			w.writePodThrough("web", 10)
			w.beginSnapshot()
			w.readIndex()
			equal(t, "deletion", changeNames(w.commit(store.Batch{Deletes: deletions(pod("web", 0).Key)})), nil)
			w.endSnapshot(c.end, nil)
			w.expectPods(c.want...)
		}
	},
	"a snapshot that starts over asks anew": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.beginSnapshot()
		w.readIndex()
		w.writePodThrough("web", 10)
		w.writer = acquire(t, s, "prod")
		w.beginSnapshot()
		equal(t, "index", w.readIndex(), sortedDigests(pod("web", 10)))
		w.endSnapshot(12, nil)
		w.expectPods("web@10")
	},
	"what is written through while the index is told": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.beginSnapshot()
		var chunks int
		err := s.Index(t.Context(), "prod", feedOf(pods), func([]uint64) error { chunks++; return nil })
		if err != nil || chunks != 0 {
			t.Fatalf("%d portions of nothing, %v", chunks, err)
		}
		w.put(pod("a", 4))
		w.beginSnapshot()
		err = s.Index(t.Context(), "prod", feedOf(pods), func([]uint64) error {
			w.writePodThrough("b", 10)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.endSnapshot(12, nil) // a is as the index says, b is not in the cluster
		w.expectPods("a@4")
	},
	"an object that is gone does not come back": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.commitLive(6, pod("web", 6))
		uid := pod("web", 6).UID
		equal(t, "gone", changeNames(w.removeThrough("web", uid)), []string{"deleted Pod n/web"})
		equal(t, "late news of it", changeNames(w.commitLive(8, pod("web", 8))), nil)
		equal(t, "a late result", changeNames(w.writePodThrough("web", 9)), nil)
		w.expectPods()
		next := pod("web", 12)
		next.UID = "another"
		equal(t, "the next one", changeNames(w.commitLive(12, next)), []string{"added Pod n/web"})
		equal(t, "the first one has gone", changeNames(w.removeThrough("web", uid)), nil)
		equal(t, "one without a uid", changeNames(w.removeThrough("web", "")), nil)
		w.expectPods("web@12")
	},
	"an object that is gone before the feed told of it": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		equal(t, "gone", changeNames(w.removeThrough("web", pod("web", 0).UID)), nil)
		first := pod("web", 6)
		first.UID = "its forerunner"
		w.commitLive(6, first)
		w.commitDelete(7, "web", "7")
		equal(t, "late news of it", changeNames(w.commitLive(8, pod("web", 8))), nil)
		w.commitDelete(9, "web", "9")
		w.expectPods()
	},
	"an object that is gone takes what was written of it along": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 10)
		w.removeThrough("web", pod("web", 0).UID)
		w.commitLive(10, pod("web", 10))
		w.expectPods()
		w.commitDelete(11, "web", "11")
		w.expectPods()
	},
	"feeds that are declared no more take what was written of theirs along": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 10)
		w.declare(feedOf(services))
		w.declare(feedOf(pods))
		w.beginSnapshot()
		w.put(pod("web", 9))
		w.endSnapshot(9, nil)
		w.expectPods("web@9")
	},
	"an account that was removed leaves nothing behind": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 10)
		if err := s.RemoveAccount(t.Context(), "prod"); err != nil {
			t.Fatal(err)
		}
		w = newLivePodWriter(t, s, 5)
		w.commitLive(7, pod("web", 7))
		w.expectPods("web@7")
	},
	"another shape is written over": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.writePodThrough("web", 10)
		term, err := s.Acquire(t.Context(), "prod", store.Holder{Agent: "agent-2", Server: "server-1", Shape: "another"})
		if err != nil {
			t.Fatal(err)
		}
		w.term = term
		w.beginSnapshot()
		invalidated := pod("web", 0)
		invalidated.ResourceVersion = ""
		equal(t, "index", w.readIndex(), sortedDigests(invalidated))
		equal(t, "a list that is older", changeNames(w.put(pod("web", 8))), nil)
		w.endSnapshot(9, sortedDigests(invalidated))
		w.commitLive(10, pod("web", 10))
		w.expectPods("web@10")
	},
	"writing through is for who may commit": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		w.put(pod("web", 4))
		acquire(t, s, "prod")
		expectError := func(want error, account vedette.AccountName, term vedette.Term, o vedette.Object) {
			t.Helper()
			if _, _, err := s.WriteThrough(t.Context(), account, term, o, nil); !errors.Is(err, want) {
				t.Errorf("write: got %v, want %v", err, want)
			}
			if _, _, err := s.RemoveThrough(t.Context(), account, term, o.Key, o.UID, nil); !errors.Is(err, want) {
				t.Errorf("remove: got %v, want %v", err, want)
			}
		}
		expectError(store.ErrTerm, "prod", w.term, pod("web", 10))
		expectError(store.ErrNoAccount, "nobody", w.term, pod("web", 10))
		expectError(store.ErrNoFeed, "prod", w.term+1, object(vedette.Kind{Name: "Nonesuch"}, "n", "a", "1"))
		if _, _, err := s.WriteThrough(t.Context(), "prod", w.term+1, object(pods, "n", "a\x00", "1"), nil); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("a bad name: %v", err)
		}
		w.expectPods("web@4")
	},
	"an operation's end is stored with what it wrote": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		written, removed, idle, refused := operation(1), operation(2), operation(3), operation(4)
		for _, o := range []store.OperationRow{written, removed, idle, refused} {
			beginOperation(t, s, o)
		}
		expectEnded := func(want bool, ended bool, err error) {
			t.Helper()
			if ended != want || err != nil {
				t.Errorf("ended %v, %v; want %v", ended, err, want)
			}
		}
		end := ended(written, vedette.Done)
		_, noted, err := s.WriteThrough(t.Context(), "prod", w.term, pod("web", 10), &end)
		expectEnded(true, noted, err)
		checkOperation(t, s, end)
		end = ended(removed, vedette.Failed) // whatever it says
		_, noted, err = s.RemoveThrough(t.Context(), "prod", w.term, pod("web", 10).Key, pod("web", 10).UID, &end)
		expectEnded(true, noted, err)
		checkOperation(t, s, end)
		end = ended(written, vedette.Failed)
		_, noted, err = s.WriteThrough(t.Context(), "prod", w.term, pod("api", 11), &end)
		expectEnded(true, noted, err)
		checkOperation(t, s, ended(written, vedette.Done)) // it has one end
		end = ended(idle, vedette.Done)
		_, noted, err = s.WriteThrough(t.Context(), "prod", w.term, pod("api", 11), &end) // which is there already
		expectEnded(false, noted, err)
		_, noted, err = s.RemoveThrough(t.Context(), "prod", w.term, pod("none", 1).Key, "uid-none", &end)
		expectEnded(false, noted, err)
		checkOperation(t, s, idle)
		end = ended(refused, vedette.Done)
		if _, noted, err = s.WriteThrough(t.Context(), "prod", w.term-1, pod("api", 12), &end); noted || !errors.Is(err, store.ErrTerm) {
			t.Errorf("of an old term: ended %v, %v", noted, err)
		}
		checkOperation(t, s, refused)
		w.expectPods("api@11")
	},
	"results of many operations while the feed tells": func(t *testing.T, s *store.Store) {
		w := newLivePodWriter(t, s, 5)
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for version := 10 + worker; version < 90; version += 4 {
					if _, _, err := s.WriteThrough(t.Context(), "prod", w.term, pod(fmt.Sprint("web-", version%5), version), nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for version := 10; version < 90; version++ {
			mark := vedette.Mark(fmt.Sprint(version))
			_, err := s.Commit(t.Context(), store.Batch{Account: "prod", Term: w.term, Upserts: []vedette.Object{pod(fmt.Sprint("web-", version%5), version)},
				Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &mark}}})
			if err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		w.expectPods("web-0@85", "web-1@86", "web-2@87", "web-3@88", "web-4@89")
		if f := feedStatus(t, s, "prod", feedOf(pods)); f.Objects != 5 {
			t.Errorf("the feed counts %d", f.Objects)
		}
	},
	"any order of things, seed 1": func(t *testing.T, s *store.Store) { testRandomWriteThrough(t, s, 1) },
	"any order of things, seed 2": func(t *testing.T, s *store.Store) { testRandomWriteThrough(t, s, 2) },
	"any order of things, seed 3": func(t *testing.T, s *store.Store) { testRandomWriteThrough(t, s, 3) },
}

// podWriter is a cacher of pods, and passes on what operations found out.
type podWriter struct{ *writer }

// newLivePodWriter joins an account whose pods are live and have a mark.
func newLivePodWriter(t *testing.T, s *store.Store, mark int) podWriter {
	w := podWriter{newWriter(t, s, "prod", feedOf(pods))}
	w.commit(store.Batch{Drops: []store.Drop{{Feed: feedOf(pods), Digests: readIndex(t, s, feedOf(pods))}}})
	w.commitLive(mark)
	return w
}

func pod(name string, version int) vedette.Object {
	return object(pods, "n", name, fmt.Sprint(version))
}

func (w podWriter) writePodThrough(name string, version int) []store.Change {
	w.t.Helper()
	return w.writeThrough(pod(name, version))
}

func (w podWriter) writeThrough(o vedette.Object) []store.Change {
	w.t.Helper()
	changes, _, err := w.s.WriteThrough(w.t.Context(), w.account, w.term, o, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

func (w podWriter) removeThrough(name, uid string) []store.Change {
	w.t.Helper()
	changes, _, err := w.s.RemoveThrough(w.t.Context(), w.account, w.term, pod(name, 0).Key, uid, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

// commitLive commits what a watch tells, up to a mark.
func (w podWriter) commitLive(mark int, objects ...vedette.Object) []store.Change {
	w.t.Helper()
	m := vedette.Mark(fmt.Sprint(mark))
	return w.commit(store.Batch{Upserts: objects, Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &m, State: vedette.FeedLive}}})
}

func (w podWriter) commitDelete(mark int, name, version string) []store.Change {
	w.t.Helper()
	m := vedette.Mark(fmt.Sprint(mark))
	return w.commit(store.Batch{Deletes: []store.Deletion{{Key: pod(name, 0).Key, Version: version}}, Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &m}}})
}

func (w podWriter) beginSnapshot() {
	w.t.Helper()
	if err := w.s.BeginSnapshot(w.t.Context(), w.account, w.term, feedOf(pods)); err != nil {
		w.t.Fatal(err)
	}
}

func (w podWriter) readIndex() []uint64 {
	w.t.Helper()
	return readIndex(w.t, w.s, feedOf(pods))
}

// endSnapshot commits the end of a snapshot that was read at a version.
func (w podWriter) endSnapshot(version int, drops []uint64) {
	w.t.Helper()
	m := vedette.Mark(fmt.Sprint(version))
	b := store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &m, SnapshotMark: m, State: vedette.FeedLive}}}
	if len(drops) > 0 {
		b.Drops = []store.Drop{{Feed: feedOf(pods), Digests: drops}}
	}
	w.commit(b)
}

// expectPods asks that the store holds just these pods, as "name@version".
func (w podWriter) expectPods(want ...string) {
	w.t.Helper()
	var got []string
	for _, r := range queryAll(w.t, w.s, store.Query{}) {
		got = append(got, r.Name+"@"+r.ResourceVersion)
	}
	equal(w.t, "stored", got, want)
}
