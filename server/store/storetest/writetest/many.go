package writetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// manyAccounts is more than one transaction acquires.
const manyAccounts = 130

// fleet is many accounts, which agents of one server report.
type fleet struct {
	t       *testing.T
	store   *store.Store
	writers []*storetest.Writer
}

func newFleet(t *testing.T, s *store.Store) *fleet {
	t.Helper()
	f := &fleet{t: t, store: s, writers: make([]*storetest.Writer, manyAccounts)}
	f.each(func(i int, _ *storetest.Writer) {
		w := storetest.NewWriter(t, s, vedette.AccountName(fmt.Sprintf("account-%03d", i)), storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Services))
		mark := vedette.Mark("5")
		w.Commit(commit.Batch{Feeds: []commit.FeedUpdate{{Feed: storetest.FeedOf(storetest.Pods), Mark: &mark, State: vedette.FeedLive},
			{Feed: storetest.FeedOf(storetest.Services), Mark: &mark, State: vedette.FeedLive}}})
		f.writers[i] = w
	})
	return f
}

// each calls do for all accounts at once.
func (f *fleet) each(do func(i int, w *storetest.Writer)) {
	var group sync.WaitGroup
	for i, w := range f.writers {
		group.Go(func() { do(i, w) })
	}
	group.Wait()
}

// claim is that of another server.
func (f *fleet) claim(i int) registry.CacherClaim {
	return registry.CacherClaim{Agent: vedette.AgentID(fmt.Sprint("agent-", i/2)), Server: "server-2", After: &f.writers[i].Term}
}

// acquire acquires all accounts, and expects the results that want returns.
func (f *fleet) acquire(claim func(i int) registry.CacherClaim, want func(i int) error) {
	f.t.Helper()
	f.each(func(i int, w *storetest.Writer) {
		term, err := f.store.Acquire(f.t.Context(), w.Account, claim(i))
		if !errors.Is(err, want(i)) {
			f.t.Errorf("acquire %s: got %v, want %v", w.Account, err, want(i))
		}
		if err == nil && term != w.Term+1 {
			f.t.Errorf("acquire %s: got term %d after %d", w.Account, term, w.Term)
		}
	})
}

func noError(int) error { return nil }

// inFirstDatabase returns an account of the first database, which is the one that the store's Write is about. Each database gets as many
// accounts as the others, in the order in which they register.
func (f *fleet) inFirstDatabase() int {
	f.t.Helper()
	for i, w := range f.writers {
		registries, err := f.store.Registries(f.t.Context(), []vedette.AccountName{w.Account})
		if err != nil {
			f.t.Fatal(err)
		}
		if registries == nil || registries[f.store.Registry] != nil {
			return i
		}
	}
	f.t.Fatal("the first database has no account")
	return 0
}

// lock locks an account of the first database until end is called.
func (f *fleet) lock(account int) (end func()) {
	f.t.Helper()
	held, ended := make(chan struct{}), make(chan struct{})
	failed := make(chan error, 1)
	w := f.writers[account]
	go func() {
		failed <- f.store.Write(f.t.Context(), func(ctx context.Context, tx *sqldb.Tx) error {
			if _, err := registry.LockAccountRow(ctx, tx, w.Account, w.Term); err != nil {
				return err
			}
			close(held)
			<-ended
			return nil
		})
	}()
	select {
	case <-held:
	case err := <-failed:
		f.t.Fatal(err)
	}
	return func() {
		close(ended)
		if err := <-failed; err != nil {
			f.t.Error(err)
		}
	}
}

// expectAcquired checks the rows of accounts.
func (f *fleet) expectAcquired(isAcquired func(i int) bool) {
	f.t.Helper()
	for i, w := range f.writers {
		row, err := f.store.Account(f.t.Context(), w.Account)
		if err != nil {
			f.t.Fatal(err)
		}
		claim, state := f.claim(i), vedette.FeedPending
		wantTerm := w.Term + 1
		if !isAcquired(i) {
			claim = registry.CacherClaim{Agent: "agent-1", Server: "server-1"}
			state, wantTerm = vedette.FeedLive, w.Term
		}
		feed := storetest.FeedStatus(f.t, f.store, w.Account, storetest.FeedOf(storetest.Pods))
		if row.Term != wantTerm || row.Holder != claim.Agent || row.Server != claim.Server || feed.State != state || feed.Mark != "5" {
			f.t.Errorf("%s: got term %d of %s at %s, and %s as of %q; want term %d of %s at %s, and %s as of 5", w.Account, row.Term, row.Holder,
				row.Server, feed.State, feed.Mark, wantTerm, claim.Agent, claim.Server, state)
		}
	}
}

// Many are tests of accounts that move at once.
var Many = map[string]func(*testing.T, *store.Store){
	"each account is acquired in its own term": func(t *testing.T, s *store.Store) {
		f := newFleet(t, s)
		f.acquire(f.claim, noError)
		f.expectAcquired(func(int) bool { return true })
	},
	"the losers of a race are told": func(t *testing.T, s *store.Store) {
		f := newFleet(t, s)
		isLost := func(i int) bool { return i%3 == 0 }
		f.acquire(func(i int) registry.CacherClaim {
			claim := f.claim(i)
			if isLost(i) {
				late := *claim.After - 1
				claim.After = &late
			}
			return claim
		}, func(i int) error {
			if isLost(i) {
				return registry.ErrOvertaken
			}
			return nil
		})
		f.expectAcquired(func(i int) bool { return !isLost(i) })
	},
	"accounts that have other details or shapes, or do not exist": func(t *testing.T, s *store.Store) {
		f := newFleet(t, s)
		f.writers[7].Account = "never-registered"
		f.acquire(func(i int) registry.CacherClaim {
			claim := f.claim(i)
			switch i {
			case 3:
				claim.Shape = "another"
			case 4:
				claim.Account = &vedette.Account{Name: f.writers[i].Account, Cluster: vedette.Cluster{UID: "uid", Version: "v1.99"}}
			case 7:
				claim.After = nil
			}
			return claim
		}, func(i int) error {
			if i == 7 {
				return registry.ErrNoAccount
			}
			return nil
		})
		if mark := storetest.FeedStatus(t, s, f.writers[3].Account, storetest.FeedOf(storetest.Pods)).Mark; mark != "" {
			t.Errorf("after an agent with another shape: the mark is %q, want none", mark)
		}
		if row, err := s.Account(t.Context(), f.writers[4].Account); err != nil || row.Cluster.Version != "v1.99" || row.Holder != "agent-2" {
			t.Errorf("got %+v, %v, want version v1.99 and agent-2", row, err)
		}
	},
	"an account that is locked does not hold up the others": func(t *testing.T, s *store.Store) {
		if s.Dialect.SingleWriter {
			t.Skip("one transaction writes at a time")
		}
		f := newFleet(t, s)
		locked := f.inFirstDatabase()
		var remaining sync.WaitGroup
		remaining.Add(manyAccounts - 1)
		end := f.lock(locked)
		go func() { remaining.Wait(); end() }()
		f.each(func(i int, w *storetest.Writer) {
			if _, err := s.Acquire(t.Context(), w.Account, f.claim(i)); err != nil {
				t.Errorf("acquire %s: %v", w.Account, err)
			}
			if i != locked {
				remaining.Done()
			}
		})
		f.expectAcquired(func(int) bool { return true })
	},
	"an account that is locked does not hold up the release of the others": func(t *testing.T, s *store.Store) {
		if s.Dialect.SingleWriter {
			t.Skip("one transaction writes at a time")
		}
		f := newFleet(t, s)
		locked := f.inFirstDatabase()
		end := f.lock(locked)
		released := make(chan error, 1)
		go func() { released <- s.ReleaseServer(t.Context(), "server-1") }()
		isReleased := func(w *storetest.Writer) bool {
			row, err := s.Account(t.Context(), w.Account)
			if err != nil {
				t.Fatal(err)
			}
			return row.Holder == "" && row.Term == w.Term+1
		}
		for i, w := range f.writers {
			for i != locked && !isReleased(w) && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		if isReleased(f.writers[locked]) {
			t.Error("an account was released that was locked")
		}
		end()
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		if !isReleased(f.writers[locked]) {
			t.Error("the account that was locked is not released")
		}
	},
	"agents that connect again declare the same, and are live": func(t *testing.T, s *store.Store) {
		f := newFleet(t, s)
		f.acquire(f.claim, noError)
		f.each(func(i int, w *storetest.Writer) {
			w.Term++
			w.Declare(storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Services))
			term := w.Term
			if i == 5 {
				term-- // a late writer
			}
			_, err := s.Commit(t.Context(), commit.Batch{Account: w.Account, Term: term, Feeds: []commit.FeedUpdate{
				{Feed: storetest.FeedOf(storetest.Pods), State: vedette.FeedLive}, {Feed: storetest.FeedOf(storetest.Services), State: vedette.FeedLive}}})
			if isLate := i == 5; errors.Is(err, registry.ErrTerm) != isLate || err != nil && !isLate {
				t.Errorf("%s: %v", w.Account, err)
			}
		})
		for i, w := range f.writers {
			for _, kind := range []vedette.Kind{storetest.Pods, storetest.Services} {
				want := vedette.FeedLive
				if i == 5 {
					want = vedette.FeedPending
				}
				if got := storetest.FeedStatus(t, s, w.Account, storetest.FeedOf(kind)); got.State != want || got.Mark != "5" {
					t.Errorf("%s of %s: got %s as of %q, want %s as of 5", kind.Name, w.Account, got.State, got.Mark, want)
				}
			}
		}
	},
	"another declaration is stored": func(t *testing.T, s *store.Store) {
		f := newFleet(t, s)
		f.each(func(i int, w *storetest.Writer) {
			if i%2 == 0 {
				w.Declare(storetest.FeedOf(storetest.Pods))
			} else {
				w.Declare(storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.Services), storetest.FeedOf(storetest.Deployments))
			}
		})
		for i, w := range f.writers {
			feeds, err := s.Marks(t.Context(), w.Account)
			if want := 1 + 2*(i%2); err != nil || len(feeds) != want {
				t.Errorf("%s has the feeds %v, %v, want %d", w.Account, feeds, err, want)
			}
		}
	},
}
