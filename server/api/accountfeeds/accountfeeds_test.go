package accountfeeds

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
)

// blockingStore is a database that blocks until the test releases it.
type blockingStore struct {
	reads   int
	release chan struct{}
}

func (h *blockingStore) Accounts(ctx context.Context) ([]registry.Account, error) {
	h.reads++
	select {
	case <-h.release:
		return []registry.Account{{Account: vedette.Account{Name: "prod"}}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *blockingStore) AccountsNamed(ctx context.Context, _ ...vedette.AccountName) ([]registry.Account, error) {
	return h.Accounts(ctx)
}

func (*blockingStore) ChangedAccounts(since uint64) versions.AccountChanges {
	return versions.AccountChanges{Names: []vedette.AccountName{"prod"}, Mark: since + 1}
}

func (*blockingStore) ObjectCounts(context.Context, ...vedette.AccountName) (map[vedette.Kind]int64, error) {
	return nil, nil
}

func (*blockingStore) Feeds(context.Context, ...vedette.AccountName) ([]read.FeedStatus, error) {
	return nil, nil
}

// TestInventoryReadIsSharedWhileDatabaseHangs checks that requests wait for the database only
// until they end, and that all waiting requests share one read.
func TestInventoryReadIsSharedWhileDatabaseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &blockingStore{release: make(chan struct{})}
		c := &Cache{store: h}
		start := time.Now()
		for range 100 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := c.Get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
					t.Errorf("got %v after %v", err, time.Since(start))
				}
			}()
		}
		time.Sleep(2 * time.Second)
		done := make(chan error)
		for range 50 { // each needs a read that begins after the blocked one
			go func() { _, err := c.GetFresh(t.Context(), 0); done <- err }()
		}
		synctest.Wait()
		close(h.release)
		for range 50 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if h.reads != 2 {
			t.Errorf("got %d reads, want 2: the blocked one and one later", h.reads)
		}
	})
}

// countingStore counts reads of all accounts.
type countingStore struct {
	*store.Store
	all int
}

func (s *countingStore) Accounts(ctx context.Context) ([]registry.Account, error) {
	s.all++
	return s.Store.Accounts(ctx)
}

// storeWith returns a store with accounts that have no feeds.
func storeWith(t *testing.T, accounts ...vedette.AccountName) *countingStore {
	t.Helper()
	st, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "vedette.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range accounts {
		if _, err := st.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: string(name)}}); err != nil {
			t.Fatal(err)
		}
	}
	return &countingStore{Store: st}
}

// describe returns the inventory's accounts with the states of their feeds.
func (i *List) describe() (text string) {
	for _, account := range i.Accounts {
		text += string(account.Name)
		for _, f := range account.Feeds {
			text += fmt.Sprintf(" %s=%s", f.Feed.Kind, f.State)
		}
		text += "; "
	}
	return text + fmt.Sprintf("%d kinds, %d need attention", len(i.Kinds), len(i.Attention))
}

// TestInventoryFollowsChanges checks that the inventory has each change, although it reads only the
// accounts that changed.
func TestInventoryFollowsChanges(t *testing.T) {
	st := storeWith(t, "a", "b", "c")
	c := &Cache{store: st}
	pod, node := vedette.Kind{Name: "Pod"}, vedette.Kind{Name: "Node"}
	var term vedette.Term
	declare := func(kinds ...vedette.Kind) error {
		var feeds []commit.DeclaredFeed
		for _, kind := range kinds {
			feeds = append(feeds, commit.DeclaredFeed{Feed: vedette.Feed{Kind: kind}, Resource: vedette.Resource{Kind: kind, Version: "v1"}})
		}
		_, err := st.Declare(t.Context(), "b", term, feeds, nil)
		return err
	}
	update := func(u commit.FeedUpdate) error {
		_, err := st.Commit(t.Context(), commit.Batch{Account: "b", Term: term, Feeds: []commit.FeedUpdate{u}})
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"at first", func() error { return nil }, "a; b; c; 0 kinds, 0 need attention"},
		{"an agent", func() (err error) {
			term, err = st.Acquire(t.Context(), "b", registry.CacherClaim{Agent: "x"})
			return err
		},
			"a; b; c; 0 kinds, 0 need attention"},
		{"feeds", func() error { return declare(pod, node) }, "a; b Node=pending Pod=pending; c; 2 kinds, 1 need attention"},
		{"a live feed", func() error { return update(commit.FeedUpdate{Feed: vedette.Feed{Kind: pod}, State: vedette.FeedLive}) },
			"a; b Node=pending Pod=live; c; 2 kinds, 1 need attention"},
		{"a snapshot", func() error { return st.BeginSnapshot(t.Context(), "b", term, vedette.Feed{Kind: pod}) },
			"a; b Node=pending Pod=syncing; c; 2 kinds, 1 need attention"},
		{"a withdrawn feed", func() error { return declare(node) }, "a; b Node=pending; c; 1 kinds, 1 need attention"},
		{"all live", func() error {
			return update(commit.FeedUpdate{Feed: vedette.Feed{Kind: node}, State: vedette.FeedLive})
		},
			"a; b Node=live; c; 1 kinds, 0 need attention"},
		{"a failure", func() error {
			return update(commit.FeedUpdate{Feed: vedette.Feed{Kind: node}, State: vedette.FeedFailing, Message: "refused"})
		}, "a; b Node=failing; c; 1 kinds, 1 need attention"},
		{"a new account", func() error {
			_, err := st.Register(t.Context(), vedette.Account{Name: "aa", Cluster: vedette.Cluster{UID: "aa"}})
			return err
		}, "a; aa; b Node=failing; c; 1 kinds, 1 need attention"},
		{"a removed account", func() error { return st.RemoveAccount(t.Context(), "b") }, "a; aa; c; 0 kinds, 0 need attention"},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		i, err := c.GetFresh(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := i.describe(); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
		want, err := readAll(t.Context(), st.Store)
		if err != nil {
			t.Fatal(err)
		}
		if i.describe() != want.describe() || !slices.EqualFunc(i.Resources, want.Resources, func(a, b vedette.Resource) bool { return a.Kind == b.Kind }) {
			t.Errorf("%s: got %q, but the store has %q", step.name, i.describe(), want.describe())
		}
	}
	if st.all != 1 {
		t.Errorf("got %d reads of all accounts, want 1", st.all)
	}
}

// TestInventoryIsReadAgain checks that all accounts are read again after a while, in the
// background.
func TestInventoryIsReadAgain(t *testing.T) {
	st := storeWith(t, "a")
	c := &Cache{store: st}
	i, err := c.GetFresh(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	old := *i
	old.readAt, old.Accounts = time.Now().Add(-time.Hour), nil // as if the account had been added without the log
	if _, err := c.last.Get(t.Context(), func(*List) bool { return false }, func(context.Context, *List) (*List, error) { return &old, nil }); err != nil {
		t.Fatal(err)
	}
	for deadline, found := time.Now().Add(20*time.Second), false; !found; found = len(i.Accounts) == 1 {
		i, err = c.GetFresh(t.Context(), 0)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("got no new inventory: %v", err)
		}
		runtime.Gosched() // the read runs in the background
	}
}
