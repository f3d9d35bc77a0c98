package api

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/views"
)

// inventoryCache caches the accounts and feeds, because every request needs them and they
// rarely change. A large fleet has ten thousand rows, so they are read at most once per
// inventoryMaxAge, and once more if a request names something that is missing.
type inventoryCache struct {
	store accountStore
	group singleflight.Group
	last  atomic.Pointer[inventory]
}

const inventoryMaxAge = time.Second

// inventoryTimeout bounds a read. Waiting requests can leave earlier.
const inventoryTimeout = 30 * time.Second

// inventory is the state at one time. It is immutable.
type inventory struct {
	readAt         time.Time          // start of the read
	accounts       []store.AccountRow // sorted by name
	feeds          []store.FeedStatus // sorted by account, kind and namespace
	feedsByAccount map[vedette.AccountName][]store.FeedStatus
}

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

// cached returns the inventory if it was read after notBefore, otherwise nil.
func (c *inventoryCache) cached(notBefore time.Time) *inventory {
	if i := c.last.Load(); i != nil && !i.readAt.Before(notBefore) {
		return i
	}
	return nil
}

func (c *inventoryCache) refresh(ctx context.Context, notBefore time.Time) error {
	if c.cached(notBefore) != nil { // another read ended in the meantime
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	i, err := readInventory(ctx, c.store)
	if err == nil {
		c.last.Store(i)
	}
	return err
}

func readInventory(ctx context.Context, s accountStore) (*inventory, error) {
	i := &inventory{readAt: time.Now(), feedsByAccount: map[vedette.AccountName][]store.FeedStatus{}}
	var err error
	i.accounts, err = s.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	i.feeds, err = s.Feeds(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range i.feeds {
		i.feedsByAccount[f.Account] = append(i.feedsByAccount[f.Account], f)
	}
	return i, nil
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

func (i *inventory) account(name vedette.AccountName) (store.AccountRow, bool) {
	at, ok := slices.BinarySearchFunc(i.accounts, name, func(a store.AccountRow, name vedette.AccountName) int {
		return compareStrings(string(a.Name), string(name))
	})
	if !ok {
		return store.AccountRow{}, false
	}
	return i.accounts[at], true
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// matchAccounts returns the accounts that match any of the patterns, or all accounts if there
// are no patterns. It fails if a pattern without wildcards matches nothing.
func (i *inventory) matchAccounts(patterns []string) ([]vedette.AccountName, error) {
	var names []vedette.AccountName
	for _, a := range i.accounts {
		if len(patterns) == 0 || matchAny(patterns, a.Name) {
			names = append(names, a.Name)
		}
	}
	for _, p := range patterns {
		if _, ok := i.account(vedette.AccountName(p)); !ok && !glob(p).hasWildcards() {
			return nil, i.accountNotFound(p)
		}
	}
	return names, nil
}

func matchAny(patterns []string, name vedette.AccountName) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob(p).match(string(name)) })
}

func (i *inventory) accountNotFound(name string) error {
	var names []string
	for _, a := range i.accounts {
		names = append(names, string(a.Name))
	}
	return vedette.Errorf(vedette.NotFound, "there is no account %.255q%s", name, nearest.Hint(name, names))
}

// resources returns the resources of the accounts, each kind once.
func (i *inventory) resources(accounts []vedette.AccountName) []vedette.Resource {
	seen := map[vedette.Kind]bool{}
	var out []vedette.Resource
	for _, a := range accounts {
		for _, f := range i.feedsByAccount[a] {
			if !seen[f.Feed.Kind] {
				seen[f.Feed.Kind] = true
				out = append(out, f.Resource)
			}
		}
	}
	return out
}

// resolveKinds resolves kinds as users write them.
func (i *inventory) resolveKinds(accounts []vedette.AccountName, names []string) ([]vedette.Resource, error) {
	served := i.resources(accounts)
	var out []vedette.Resource
	for _, name := range names {
		r, err := views.FindResource(served, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(o vedette.Resource) bool { return o.Kind == r.Kind }) {
			out = append(out, r)
		}
	}
	return out, nil
}
