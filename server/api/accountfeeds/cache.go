package accountfeeds

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/latest"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/versions"
)

// Store reads accounts and the states of their feeds, and knows which have changed.
type Store interface {
	Accounts(ctx context.Context) ([]registry.Account, error)
	AccountsNamed(ctx context.Context, names ...vedette.AccountName) ([]registry.Account, error)
	Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]read.FeedStatus, error)
	ChangedAccounts(since uint64) versions.AccountChanges
}

// Cache keeps the names of all accounts and the states of their feeds, because every
// request needs some of them and they rarely change. Once per defaultMaxAge, and once more if a
// request names something that is missing, it reads the accounts that have changed. It reads all
// of them in the background now and then, to find what others than this server's store changed. A
// large fleet has a hundred thousand rows, so this takes at most one percent of the time.
//
// Numbers of objects, marks and times are as of the last read of an account. What shows them reads
// them from the store.
type Cache struct {
	store     Store
	last      latest.Value[List]
	rereading atomic.Bool          // in the background
	reread    atomic.Pointer[List] // the result of that, until it is used
}

// NewCache returns a Cache, which reads nothing before the first call.
func NewCache(s Store) *Cache { return &Cache{store: s} }

const (
	defaultMaxAge = time.Second
	// All accounts are read again when the last read is minRereadAge old, and rereadAge times as
	// old as it took.
	minRereadAge = 10 * time.Second
	rereadAge    = 100
	// readTimeout bounds a read in the background.
	readTimeout = 30 * time.Second
	// AccountsPerRead is the number of accounts that are read by one query.
	AccountsPerRead = 250
)

// Get returns a list that is a second old at most.
func (c *Cache) Get(ctx context.Context) (*List, error) {
	return c.GetFresh(ctx, defaultMaxAge)
}

// GetFresh returns a list that is at most maxAge old. Requests that wait share one read,
// which began after they arrived.
func (c *Cache) GetFresh(ctx context.Context, maxAge time.Duration) (*List, error) {
	notBefore := time.Now().Add(-maxAge)
	return c.last.Get(ctx, func(i *List) bool { return !i.checkedAt.Before(notBefore) }, c.next)
}

// next returns the current list. It reads what has changed since the last one, or everything
// if there is none.
func (c *Cache) next(ctx context.Context, last *List) (*List, error) {
	checkedAt := time.Now()
	if reread := c.reread.Swap(nil); reread != nil {
		last = reread
	}
	if last == nil {
		return readAll(ctx, c.store)
	}
	changes := c.store.ChangedAccounts(last.position)
	if changes.All {
		return readAll(ctx, c.store)
	}
	c.rereadIfDue(ctx, last)
	i, names := *last, changes.Names
	i.checkedAt, i.position = checkedAt, changes.Mark
	if len(names) == 0 {
		return &i, nil
	}
	changed, err := readAccounts(ctx, c.store, names)
	if err != nil {
		return nil, err
	}
	i.replace(names, changed)
	return &i, nil
}

// rereadIfDue reads all accounts in the background if the last read of all is old. A failure is
// ignored: the next refresh tries again, and requests get the errors of what they read themselves.
func (c *Cache) rereadIfDue(ctx context.Context, last *List) {
	age := time.Since(last.readAt)
	if age < minRereadAge || age < rereadAge*last.readTook || !c.rereading.CompareAndSwap(false, true) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer c.rereading.Store(false)
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		if i, err := readAll(ctx, c.store); err == nil {
			c.reread.Store(i)
		}
	}()
}

// With calls do with the list. If do reports that something is missing, it calls
// do again with a new list, because the missing thing may be new.
func With[T any](ctx context.Context, c *Cache, do func(*List) (T, error)) (T, error) {
	var zero T
	i, err := c.Get(ctx)
	if err != nil {
		return zero, err
	}
	v, err := do(i)
	if kind := vedette.KindOf(err); kind != vedette.NotFound && kind != vedette.Invalid {
		return v, err
	}
	i, err = c.GetFresh(ctx, 0)
	if err != nil {
		return zero, err
	}
	return do(i)
}
