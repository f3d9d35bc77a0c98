package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

var freshTests = map[string]func(*testing.T, *store.Store){
	"what an operation wrote is there before its feed tells it": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		equal(t, "made", told(w.through("web", 10)), []string{"added Pod n/web"})
		equal(t, "older news", told(w.live(7, pod("web", 7))), nil)
		w.shows("web@10")
		if f := feedNamed(t, s, "prod", feedOf(pods)); f.Mark != "7" || f.Objects != 1 {
			t.Errorf("mark %q, %d objects", f.Mark, f.Objects)
		}
		equal(t, "the same", told(w.live(10, pod("web", 10))), nil)
		equal(t, "newer news", told(w.live(12, pod("web", 12))), []string{"modified Pod n/web"})
		w.shows("web@12")
	},
	"the uid of what is stored": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.live(6, pod("web", 6))
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
		w := liveAt(t, s, 5)
		w.live(12, pod("web", 12))
		equal(t, "older than what is stored", told(w.through("web", 10)), nil)
		equal(t, "as old", told(w.through("web", 12)), nil)
		w.liveDelete(14, "web", "14")
		equal(t, "of an object that has gone since", told(w.through("web", 13)), nil)
		w.shows()
	},
	"a result that the feed has passed is written over what is older": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.live(6, pod("web", 6))
		w.live(20) // a newer change of it stands further back in the agent's queue
		equal(t, "written", told(w.through("web", 10)), []string{"modified Pod n/web"})
		w.live(25, pod("web", 25))
		w.shows("web@25")
	},
	"deletions count by their version": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.through("web", 10)
		equal(t, "of the one before", told(w.liveDelete(8, "web", "8")), nil)
		w.shows("web@10")
		equal(t, "of this one", told(w.liveDelete(11, "web", "11")), []string{"deleted Pod n/web"})
		equal(t, "another", told(w.live(12, pod("web", 12))), []string{"added Pod n/web"})
	},
	"versions that can't be compared leave the object to its feed": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		for _, version := range []string{"abc", "-3", "1e3", "18446744073709551616"} {
			equal(t, version, told(w.write(object(pods, "n", "odd", version))), nil)
		}
		w.put(object(pods, "n", "odd", "abc"))
		equal(t, "a number against a word", told(w.through("odd", 10)), nil)
		w.shows("odd@abc")
	},
	"the largest version": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.write(object(pods, "n", "web", "18446744073709551615"))
		equal(t, "older", told(w.live(9, object(pods, "n", "web", "9223372036854775808"))), nil)
		w.shows("web@18446744073709551615")
	},
	"a snapshot that is newer is believed": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.begin()
		equal(t, "index", w.index(), nil)
		w.through("web", 10) // and it has gone before the list was read
		w.shows("web@10")
		w.end(12, nil)
		w.shows()
		if f := feedNamed(t, s, "prod", feedOf(pods)); f.Objects != 0 || f.Mark != "12" {
			t.Errorf("mark %q, %d objects", f.Mark, f.Objects)
		}
	},
	"a snapshot that is newer and was told of the object leaves it": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.begin()
		w.through("web", 10)
		equal(t, "index", w.index(), digests(pod("web", 10)))
		w.end(12, nil)
		w.shows("web@10")
	},
	"a snapshot that is older changes nothing": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.live(6, pod("web", 6))
		w.begin()
		w.index()
		w.through("web", 10)
		w.through("new", 11)
		equal(t, "its item", told(w.put(pod("web", 8))), nil)
		w.end(9, digests(pod("web", 6)))
		w.shows("new@11", "web@10")
		w.live(12)
		w.live(13, pod("web", 13), pod("new", 11))
		w.shows("new@11", "web@13")
	},
	"a drop waits for what its snapshot ends at": func(t *testing.T, s *store.Store) {
		for _, c := range []struct {
			end  int
			want []string
		}{{9, []string{"web@10"}}, {10, nil}, {11, nil}} {
			w := liveAt(t, s, 5)
			w.through("web", 10)
			w.begin()
			equal(t, "index", w.index(), digests(pod("web", 10)))
			equal(t, "drop", told(w.commit(store.Batch{Drops: []store.Drop{{Feed: feedOf(pods), Digests: digests(pod("web", 10))}}})), nil)
			w.shows("web@10")
			w.end(c.end, nil)
			w.shows(c.want...)
			w.live(20)
			w.shows(c.want...)
			if len(c.want) > 0 {
				w.liveDelete(21, "web", "21")
			}
		}
	},
	"what follows a snapshot in its batch does not count for it": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.begin()
		w.index()
		w.through("web", 10)
		last := vedette.Mark("15")
		w.commit(store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &last, Listed: "8", State: vedette.FeedLive}}})
		w.shows("web@10")
	},
	"a deletion without a version within a snapshot waits for its end": func(t *testing.T, s *store.Store) {
		for _, c := range []struct {
			end  int
			want []string
		}{{9, []string{"web@10"}}, {12, nil}} {
			w := liveAt(t, s, 5)
			w.through("web", 10)
			w.begin()
			w.index()
			equal(t, "deletion", told(w.commit(store.Batch{Deletes: deletions(pod("web", 0).Key)})), nil)
			w.end(c.end, nil)
			w.shows(c.want...)
		}
	},
	"a snapshot that starts over asks anew": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.begin()
		w.index()
		w.through("web", 10)
		w.writer = take(t, s, "prod")
		w.begin()
		equal(t, "index", w.index(), digests(pod("web", 10)))
		w.end(12, nil)
		w.shows("web@10")
	},
	"what is written through while the index is told": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.begin()
		var told int
		err := s.Index(t.Context(), "prod", feedOf(pods), func([]uint64) error { told++; return nil })
		if err != nil || told != 0 {
			t.Fatalf("%d portions of nothing, %v", told, err)
		}
		w.put(pod("a", 4))
		w.begin()
		err = s.Index(t.Context(), "prod", feedOf(pods), func([]uint64) error {
			w.through("b", 10)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.end(12, nil) // a is as the index says, b is not in the cluster
		w.shows("a@4")
	},
	"an object that is gone does not come back": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.live(6, pod("web", 6))
		uid := pod("web", 6).UID
		equal(t, "gone", told(w.gone("web", uid)), []string{"deleted Pod n/web"})
		equal(t, "late news of it", told(w.live(8, pod("web", 8))), nil)
		equal(t, "a late result", told(w.through("web", 9)), nil)
		w.shows()
		next := pod("web", 12)
		next.UID = "another"
		equal(t, "the next one", told(w.live(12, next)), []string{"added Pod n/web"})
		equal(t, "the first one has gone", told(w.gone("web", uid)), nil)
		equal(t, "one without a uid", told(w.gone("web", "")), nil)
		w.shows("web@12")
	},
	"an object that is gone before the feed told of it": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		equal(t, "gone", told(w.gone("web", pod("web", 0).UID)), nil)
		first := pod("web", 6)
		first.UID = "its forerunner"
		w.live(6, first)
		w.liveDelete(7, "web", "7")
		equal(t, "late news of it", told(w.live(8, pod("web", 8))), nil)
		w.liveDelete(9, "web", "9")
		w.shows()
	},
	"an object that is gone takes what was written of it along": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.through("web", 10)
		w.gone("web", pod("web", 0).UID)
		w.live(10, pod("web", 10))
		w.shows()
		w.liveDelete(11, "web", "11")
		w.shows()
	},
	"feeds that are declared no more take what was written of theirs along": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.through("web", 10)
		w.declare(feedOf(services))
		w.declare(feedOf(pods))
		w.begin()
		w.put(pod("web", 9))
		w.end(9, nil)
		w.shows("web@9")
	},
	"an account that was removed leaves nothing behind": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.through("web", 10)
		if err := s.RemoveAccount(t.Context(), "prod"); err != nil {
			t.Fatal(err)
		}
		w = liveAt(t, s, 5)
		w.live(7, pod("web", 7))
		w.shows("web@7")
	},
	"another shape is written over": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.through("web", 10)
		term, err := s.Take(t.Context(), "prod", store.Holder{Agent: "agent-2", Server: "server-1", Shape: "another"})
		if err != nil {
			t.Fatal(err)
		}
		w.term = term
		w.begin()
		void := pod("web", 0)
		void.ResourceVersion = ""
		equal(t, "index", w.index(), digests(void))
		equal(t, "a list that is older", told(w.put(pod("web", 8))), nil)
		w.end(9, digests(void))
		w.live(10, pod("web", 10))
		w.shows("web@10")
	},
	"writing through is for who may commit": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		w.put(pod("web", 4))
		take(t, s, "prod")
		try := func(want error, account vedette.AccountName, term vedette.Term, o vedette.Object) {
			t.Helper()
			if _, _, err := s.WriteThrough(t.Context(), account, term, o, nil); !errors.Is(err, want) {
				t.Errorf("write: got %v, want %v", err, want)
			}
			if _, _, err := s.RemoveThrough(t.Context(), account, term, o.Key, o.UID, nil); !errors.Is(err, want) {
				t.Errorf("remove: got %v, want %v", err, want)
			}
		}
		try(store.ErrTerm, "prod", w.term, pod("web", 10))
		try(store.ErrNoAccount, "nobody", w.term, pod("web", 10))
		try(store.ErrNoFeed, "prod", w.term+1, object(vedette.Kind{Name: "Nonesuch"}, "n", "a", "1"))
		if _, _, err := s.WriteThrough(t.Context(), "prod", w.term+1, object(pods, "n", "a\x00", "1"), nil); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("a bad name: %v", err)
		}
		w.shows("web@4")
	},
	"an operation's end is stored with what it wrote": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		written, removed, idle, refused := operation(1), operation(2), operation(3), operation(4)
		for _, o := range []store.OperationRow{written, removed, idle, refused} {
			begin(t, s, o)
		}
		goes := func(want bool, ended bool, err error) {
			t.Helper()
			if ended != want || err != nil {
				t.Errorf("ended %v, %v; want %v", ended, err, want)
			}
		}
		end := ended(written, vedette.Done)
		_, noted, err := s.WriteThrough(t.Context(), "prod", w.term, pod("web", 10), &end)
		goes(true, noted, err)
		checkOperation(t, s, end)
		end = ended(removed, vedette.Failed) // whatever it says
		_, noted, err = s.RemoveThrough(t.Context(), "prod", w.term, pod("web", 10).Key, pod("web", 10).UID, &end)
		goes(true, noted, err)
		checkOperation(t, s, end)
		end = ended(written, vedette.Failed)
		_, noted, err = s.WriteThrough(t.Context(), "prod", w.term, pod("api", 11), &end)
		goes(true, noted, err)
		checkOperation(t, s, ended(written, vedette.Done)) // it has one end
		end = ended(idle, vedette.Done)
		_, noted, err = s.WriteThrough(t.Context(), "prod", w.term, pod("api", 11), &end) // which is there already
		goes(false, noted, err)
		_, noted, err = s.RemoveThrough(t.Context(), "prod", w.term, pod("none", 1).Key, "uid-none", &end)
		goes(false, noted, err)
		checkOperation(t, s, idle)
		end = ended(refused, vedette.Done)
		if _, noted, err = s.WriteThrough(t.Context(), "prod", w.term-1, pod("api", 12), &end); noted || !errors.Is(err, store.ErrTerm) {
			t.Errorf("of an old term: ended %v, %v", noted, err)
		}
		checkOperation(t, s, refused)
		w.shows("api@11")
	},
	"results of many operations while the feed tells": func(t *testing.T, s *store.Store) {
		w := liveAt(t, s, 5)
		var wg sync.WaitGroup
		for turn := range 4 {
			wg.Go(func() {
				for version := 10 + turn; version < 90; version += 4 {
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
		w.shows("web-0@85", "web-1@86", "web-2@87", "web-3@88", "web-4@89")
		if f := feedNamed(t, s, "prod", feedOf(pods)); f.Objects != 5 {
			t.Errorf("the feed counts %d", f.Objects)
		}
	},
	"any order of things, seed 1": func(t *testing.T, s *store.Store) { testFresh(t, s, 1) },
	"any order of things, seed 2": func(t *testing.T, s *store.Store) { testFresh(t, s, 2) },
	"any order of things, seed 3": func(t *testing.T, s *store.Store) { testFresh(t, s, 3) },
}

// freshWriter is a cacher of pods, and passes on what operations found out.
type freshWriter struct{ *writer }

// liveAt joins an account whose pods are live and have a mark.
func liveAt(t *testing.T, s *store.Store, mark int) freshWriter {
	w := freshWriter{join(t, s, "prod", feedOf(pods))}
	w.commit(store.Batch{Drops: []store.Drop{{Feed: feedOf(pods), Digests: index(t, s, feedOf(pods))}}})
	w.live(mark)
	return w
}

func pod(name string, version int) vedette.Object {
	return object(pods, "n", name, fmt.Sprint(version))
}

func (w freshWriter) through(name string, version int) []store.Change {
	w.t.Helper()
	return w.write(pod(name, version))
}

func (w freshWriter) write(o vedette.Object) []store.Change {
	w.t.Helper()
	changes, _, err := w.s.WriteThrough(w.t.Context(), w.account, w.term, o, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

func (w freshWriter) gone(name, uid string) []store.Change {
	w.t.Helper()
	changes, _, err := w.s.RemoveThrough(w.t.Context(), w.account, w.term, pod(name, 0).Key, uid, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

// live commits what a watch tells, up to a mark.
func (w freshWriter) live(mark int, objects ...vedette.Object) []store.Change {
	w.t.Helper()
	m := vedette.Mark(fmt.Sprint(mark))
	return w.commit(store.Batch{Upserts: objects, Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &m, State: vedette.FeedLive}}})
}

func (w freshWriter) liveDelete(mark int, name, version string) []store.Change {
	w.t.Helper()
	m := vedette.Mark(fmt.Sprint(mark))
	return w.commit(store.Batch{Deletes: []store.Deletion{{Key: pod(name, 0).Key, Version: version}}, Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &m}}})
}

func (w freshWriter) begin() {
	w.t.Helper()
	if err := w.s.Begin(w.t.Context(), w.account, w.term, feedOf(pods)); err != nil {
		w.t.Fatal(err)
	}
}

func (w freshWriter) index() []uint64 {
	w.t.Helper()
	return index(w.t, w.s, feedOf(pods))
}

// end commits the end of a snapshot that was read at a version.
func (w freshWriter) end(version int, drops []uint64) {
	w.t.Helper()
	m := vedette.Mark(fmt.Sprint(version))
	b := store.Batch{Feeds: []store.FeedUpdate{{Feed: feedOf(pods), Mark: &m, Listed: m, State: vedette.FeedLive}}}
	if len(drops) > 0 {
		b.Drops = []store.Drop{{Feed: feedOf(pods), Digests: drops}}
	}
	w.commit(b)
}

// shows asks that the store holds just these pods, as "name@version".
func (w freshWriter) shows(want ...string) {
	w.t.Helper()
	var got []string
	for _, r := range all(w.t, w.s, store.Query{}) {
		got = append(got, r.Name+"@"+r.ResourceVersion)
	}
	equal(w.t, "stored", got, want)
}
