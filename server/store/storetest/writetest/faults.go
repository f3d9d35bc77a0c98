package writetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// Faults are tests that give up in the middle of something.
var Faults = map[string]func(*testing.T, *store.Store){
	"a removed account leaves nothing, and its name is free": func(t *testing.T, s *store.Store) {
		const n = 2500 // which is more than one transaction removes
		old := storetest.NewWriter(t, s, "prod")
		other := storetest.NewWriter(t, s, "other")
		for _, w := range []*storetest.Writer{old, other} {
			w.Put(manyPods(n)...)
		}
		if err := s.RemoveAccount(t.Context(), "prod"); err != nil {
			t.Fatal(err)
		}
		if rows := storetest.QueryAll(t, s, read.Query{Limit: 5000}); len(rows) != n || rows[0].Account != "other" {
			t.Errorf("got %d rows, want the %d of the other account", len(rows), n)
		}
		st, err := s.Stats(t.Context())
		if err != nil || st.Accounts != 1 || st.Objects != n {
			t.Errorf("got %+v, %v, want 1 account with %d objects", st, err, n)
		}
		if row := storetest.Register(t, s, "prod"); row.Term < old.Term {
			t.Errorf("got term %d for the new account, want at least %d", row.Term, old.Term)
		}
		current := storetest.Acquire(t, s, "prod")
		if current.Term == old.Term {
			t.Fatalf("got term %d twice, want a higher one", old.Term)
		}
		current.Declare(storetest.FeedOf(storetest.Pods))
		if _, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: old.Term, Upserts: manyPods(1)}); !errors.Is(err,
			registry.ErrTerm) {
			t.Errorf("writer of the old account: got %v, want %v", err, registry.ErrTerm)
		}
	},
	"an interrupted removal is finished by Sweep": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		w.Put(manyPods(severalRemovals)...)
		runWithGrowingTimeout(t, func(ctx context.Context) error { return s.RemoveAccount(ctx, "prod") })
		if _, err := s.Commit(t.Context(), commit.Batch{Account: "prod", Term: w.Term, Upserts: manyPods(1)}); err == nil {
			if err := s.RemoveAccount(t.Context(), "prod"); err != nil { // interrupted before it began
				t.Fatal(err)
			}
		}
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st, err := s.Stats(t.Context()); err != nil || st.Objects != 0 || st.Accounts != 0 {
			t.Errorf("got %+v, %v, want an empty database", st, err)
		}
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), nil)
	},
	"an interrupted declaration leaves no feed that looks complete": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		w.Put(manyPods(severalRemovals)...)
		mark := vedette.Mark("9")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive}}})
		runWithGrowingTimeout(t, func(ctx context.Context) error {
			_, err := s.Declare(ctx, "prod", w.Term, storetest.DeclaredFeeds(storetest.FeedOf(storetest.Services)), nil)
			return err
		})
		w.Declare(storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Services))
		f, rows := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)), storetest.QueryAll(t, s, read.Query{Limit: 5000})
		if f.Objects != int64(len(rows)) {
			t.Errorf("got a count of %d, want %d", f.Objects, len(rows))
		}
		if len(rows) < severalRemovals && f.Mark != "" {
			t.Errorf("got %d of %d objects with mark %q, want no mark", len(rows), severalRemovals, f.Mark)
		}
		w.Declare(storetest.FeedOf(storetest.Services))
		storetest.Equal(t, "objects", storetest.RowNames(storetest.QueryAll(t, s, read.Query{})), nil)
	},
	"an interrupted commit is stored completely or not at all": func(t *testing.T, s *store.Store) {
		const n = 1000
		w := storetest.NewWriter(t, s, "prod")
		mark := vedette.Mark("9")
		b := commit.Batch{Account: "prod", Term: w.Term, Upserts: manyPods(n),
			Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark}}}
		runWithGrowingTimeout(t, func(ctx context.Context) error { _, err := s.Commit(ctx, b); return err })
		f, rows := storetest.FeedStatus(t, s, "prod", storetest.FeedOf(storetest.Pods)), storetest.QueryAll(t, s, read.Query{Limit: 5000})
		if f.Objects != int64(len(rows)) || (f.Mark == mark) != (len(rows) == n) || len(rows)%n != 0 {
			t.Errorf("got mark %q, a count of %d and %d objects, want all or nothing", f.Mark, f.Objects, len(rows))
		}
		w.Commit(b)
		if got := len(storetest.QueryAll(t, s, read.Query{Limit: 5000})); got != n {
			t.Errorf("got %d objects, want %d", got, n)
		}
	},
	"the error of a canceled context is returned unchanged": func(t *testing.T, s *store.Store) {
		storetest.NewWriter(t, s, "prod")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Objects(ctx, read.Query{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	},
}

func manyPods(n int) []vedette.Object {
	objects := make([]vedette.Object, n)
	for i := range objects {
		objects[i] = storetest.Object(storetest.Pods, "n", fmt.Sprintf("pod-%05d", i), "1")
	}
	return objects
}

// runWithGrowingTimeout runs a function with growing timeouts until it succeeds, so that it is
// interrupted at many places before.
func runWithGrowingTimeout(t *testing.T, run func(ctx context.Context) error) {
	t.Helper()
	for limit := time.Millisecond; limit < time.Minute; limit *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err := run(ctx)
		interrupted := ctx.Err() != nil || vedette.KindOf(err) == vedette.Unavailable // dialing has its own timeout
		cancel()
		if err == nil || errors.Is(err, registry.ErrNoAccount) {
			return
		}
		if !interrupted {
			t.Fatal(err)
		}
	}
	t.Fatal("got no success with any timeout, want one")
}
