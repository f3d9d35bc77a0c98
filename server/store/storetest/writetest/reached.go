package writetest

import (
	"errors"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// observer is a server that does not write the account, and asks for what the writer has stored.
type observer struct {
	t *testing.T
	s *store.Store
}

// expect expects whether version 10 of a pod was reached, or whether its end at 10 was, with and without a known uid and row.
func (b observer) expect(when, name string, reached, removed bool, uid string, wasStored bool) {
	b.t.Helper()
	key := pod(name, 10).Key
	if got, err := b.s.HasReached(b.t.Context(), "prod", vedette.ObjectVersion{Key: key, Version: "10"}); err != nil || got != reached {
		b.t.Errorf("%s: reached %v, error %v, want %v", when, got, err, reached)
	}
	if got, err := b.s.HasRemoved(b.t.Context(), "prod", vedette.Absence{Key: key, Version: "10"}, uid, wasStored); err != nil || got != removed {
		b.t.Errorf("%s: removed %v, error %v, want %v", when, got, err, removed)
	}
}

// OtherEffects are tests of what servers that do not write an account learn of what operations have changed.
var OtherEffects = map[string]func(*testing.T, *store.Store){
	"an object": func(t *testing.T, s *store.Store) {
		w, other := newLivePodWriter(t, s, 5), observer{t, storetest.AnotherServer(t, s)}
		other.expect("before anything", "web", false, false, "", false)
		w.commitLive(9, pod("web", 9))
		other.expect("an older version", "web", false, false, "", false)
		w.commitLive(10, pod("web", 10))
		other.expect("the version", "web", true, false, "", false)
		w.commitLive(12, pod("web", 12))
		other.expect("a newer version", "web", true, true, "", false)
		other.expect("an object of which nothing is stored, and which the feed has passed", "api", true, true, "", false)
	},
	"an object whose feed has another one's newer version": func(t *testing.T, s *store.Store) {
		w, other := newLivePodWriter(t, s, 5), observer{t, storetest.AnotherServer(t, s)}
		w.writePodThrough("web", 10)
		other.expect("stored before the feed reports it", "web", true, false, "", false)
		other.expect("nothing is stored, and the feed may report it yet", "api", false, false, "", false)
	},
	"an object that is gone": func(t *testing.T, s *store.Store) {
		w, other := newLivePodWriter(t, s, 5), observer{t, storetest.AnotherServer(t, s)}
		w.commitLive(8, pod("web", 8))
		uid := pod("web", 8).UID
		other.expect("stored", "web", false, false, uid, true)
		w.Commit(commit.Batch{Deletes: []commit.Deletion{{Key: pod("web", 8).Key, Version: "9"}}})
		other.expect("it was stored, and is not any more", "web", false, true, uid, true)
		other.expect("the server did not know it", "web", false, false, uid, false)
		w.commitLive(10)
		other.expect("the feed has passed it", "web", true, true, uid, false)
		next := pod("web", 11)
		next.UID = "another"
		w.commitLive(11, next)
		other.expect("another one has its name", "web", true, true, uid, false)
	},
	"an object that no feed reports": func(t *testing.T, s *store.Store) {
		newLivePodWriter(t, s, 5)
		other, key := storetest.AnotherServer(t, s), vedette.Key{Kind: storetest.Services, Namespace: "n", Name: "web"}
		for account, want := range map[vedette.AccountName]error{"prod": commit.ErrNoFeed, "unknown": registry.ErrNoAccount} {
			if _, err := other.HasReached(t.Context(), account, vedette.ObjectVersion{Key: key, Version: "10"}); !errors.Is(err, want) {
				t.Errorf("account %s: got error %v, want %v", account, err, want)
			}
			if _, err := other.HasRemoved(t.Context(), account, vedette.Absence{Key: key, Version: "10"}, "", false); !errors.Is(err, want) {
				t.Errorf("account %s: got error %v, want %v", account, err, want)
			}
		}
	},
	"versions that cannot be compared": func(t *testing.T, s *store.Store) {
		w, other := newLivePodWriter(t, s, 5), storetest.AnotherServer(t, s)
		o := pod("web", 0)
		o.ResourceVersion = "x"
		w.commitLive(6, o)
		for version, want := range map[string]bool{"x": true, "y": false, "": false} {
			if got, err := other.HasReached(t.Context(), "prod", vedette.ObjectVersion{Key: o.Key, Version: version}); err != nil || got != want {
				t.Errorf("version %q: got %v, error %v, want %v", version, got, err, want)
			}
		}
	},
}
