package api

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/vedette-io/vedette"
)

// inventoryCache keeps the names of all accounts and the states of their feeds, because every
// request needs some of them and they rarely change. Once per inventoryMaxAge, and once more if a
// request names something that is missing, it reads the accounts that have changed. It reads all
// of them in the background now and then, to find what others than this server's store changed. A
// large fleet has a hundred thousand rows, so this takes at most one percent of the time.
//
// Numbers of objects, marks and times are as of the last read of an account. What shows them reads
// them from the store.
type inventoryCache struct {
	store     accountStore
	group     singleflight.Group
	last      atomic.Pointer[inventory]
	rereading atomic.Bool               // in the background
	reread    atomic.Pointer[inventory] // the result of that, until it is used
}

const (
	inventoryMaxAge = time.Second
	// All accounts are read again when the last read is minRereadAge old, and rereadAge times as
	// old as it took.
	minRereadAge = 10 * time.Second
	rereadAge    = 100
	// inventoryTimeout bounds a read. Waiting requests can leave earlier.
	inventoryTimeout = 30 * time.Second
	// accountsPerRead is the number of accounts that are read by one query.
	accountsPerRead = 250
)

func (c *inventoryCache) get(ctx context.Context) (*inventory, error) {
	return c.getFresh(ctx, inventoryMaxAge)
}

// getFresh returns an inventory that is at most maxAge old. Requests that wait share one read,
// which began after they arrived.
func (c *inventoryCache) getFresh(ctx context.Context, maxAge time.Duration) (*inventory, error) {
	notBefore := time.Now().Add(-maxAge)
	for {
		if i := c.cached(notBefore); i != nil {
			return i, nil
		}
		done := c.group.DoChan("", func() (any, error) { return nil, c.refresh(context.WithoutCancel(ctx), notBefore) })
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case result := <-done:
			if result.Err != nil {
				return nil, result.Err
			}
		}
	}
}

// cached returns the inventory if it was checked after notBefore, otherwise nil.
func (c *inventoryCache) cached(notBefore time.Time) *inventory {
	if i := c.last.Load(); i != nil && !i.checkedAt.Before(notBefore) {
		return i
	}
	return nil
}

// refresh is called by one goroutine at a time.
func (c *inventoryCache) refresh(ctx context.Context, notBefore time.Time) error {
	if c.cached(notBefore) != nil { // another read ended in the meantime
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	i, err := c.next(ctx)
	if err == nil {
		c.last.Store(i)
	}
	return err
}

// next returns the current inventory. It reads what has changed since the last one, or everything
// if there is none.
func (c *inventoryCache) next(ctx context.Context) (*inventory, error) {
	last, checkedAt := c.last.Load(), time.Now()
	if reread := c.reread.Swap(nil); reread != nil {
		last = reread
	}
	if last == nil {
		return readInventory(ctx, c.store)
	}
	names, position := c.store.ChangedAccounts(last.position)
	c.rereadIfDue(ctx, last)
	i := *last
	i.checkedAt, i.position = checkedAt, position
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
func (c *inventoryCache) rereadIfDue(ctx context.Context, last *inventory) {
	age := time.Since(last.readAt)
	if age < minRereadAge || age < rereadAge*last.readTook || !c.rereading.CompareAndSwap(false, true) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer c.rereading.Store(false)
		ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
		defer cancel()
		if i, err := readInventory(ctx, c.store); err == nil {
			c.reread.Store(i)
		}
	}()
}

// withInventory calls do with the inventory. If do reports that something is missing, it calls
// do again with a new inventory, because the missing thing may be new.
func withInventory[T any](ctx context.Context, c *inventoryCache, do func(*inventory) (T, error)) (T, error) {
	var zero T
	i, err := c.get(ctx)
	if err != nil {
		return zero, err
	}
	v, err := do(i)
	if kind := vedette.KindOf(err); kind != vedette.NotFound && kind != vedette.Invalid {
		return v, err
	}
	i, err = c.getFresh(ctx, 0)
	if err != nil {
		return zero, err
	}
	return do(i)
}
