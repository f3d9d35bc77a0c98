package authorize

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/vedette-io/vedette"
)

// permissionCache caches the permissions of users. Concurrent requests for one user share one
// request to Fiat.
type permissionCache struct {
	client *fiatClient
	log    *slog.Logger
	flight singleflight.Group

	mu      sync.Mutex
	entries map[string]*list.Element
	order   *list.List // of *entry, oldest first, which is also the first to expire
	bytes   int64      // of all entries
}

type entry struct {
	user        string
	permissions *permissions
	readAt      time.Time
}

func newPermissionCache(cfg FiatConfig, log *slog.Logger) *permissionCache {
	return &permissionCache{client: newFiatClient(cfg), log: log, entries: map[string]*list.Element{}, order: list.New()}
}

// get returns the permissions of a caller. A failure is not cached, so the next caller asks again.
func (c *permissionCache) get(ctx context.Context, caller Caller) (*permissions, error) {
	if p := c.lookUp(caller.User); p != nil {
		return p, nil
	}
	result := c.flight.DoChan(caller.User, func() (any, error) {
		if p := c.lookUp(caller.User); p != nil { // fetched meanwhile
			return p, nil
		}
		// Do not cancel when this caller leaves, because others may wait for the same answer.
		// FiatRetry.MaxElapsed limits the time.
		p, err := c.client.fetch(context.WithoutCancel(ctx), caller)
		if err == nil {
			c.add(caller.User, p)
		}
		return p, err
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for Fiat: %w", context.Cause(ctx))
	case got := <-result:
		if got.Err == nil {
			return got.Val.(*permissions), nil
		}
		return c.onFailure(caller, got.Err)
	}
}

// onFailure returns the permissions of a caller if Fiat is unreachable. They depend on the request
// and not only on the user, so they are not cached. The error is vedette.Unavailable if asking again may help.
func (c *permissionCache) onFailure(caller Caller, err error) (*permissions, error) {
	var permanent *finalError
	switch {
	case errors.As(err, &permanent):
		return nil, err
	case !c.client.LegacyFallback:
		return nil, &vedette.Error{Kind: vedette.Unavailable, Err: err,
			Message: fmt.Sprintf("the permissions of %.300s cannot be looked up now, because Fiat does not answer as it should: try again", caller.User)}
	}
	c.log.Warn("Fiat unreachable, using the accounts in the request", "caller", caller, "accounts", caller.Accounts, "error", err)
	return fallbackPermissions(caller), nil
}

func (c *permissionCache) lookUp(user string) *permissions {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[user]
	if !ok || c.isExpired(element) {
		return nil
	}
	return element.Value.(*entry).permissions
}

func (c *permissionCache) add(user string, p *permissions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[user]; ok {
		c.evict(element)
	}
	c.entries[user] = c.order.PushBack(&entry{user, p, time.Now()})
	c.bytes += p.bytes
	for oldest := c.order.Front(); oldest != nil && (c.isFull() || c.isExpired(oldest)); oldest = c.order.Front() {
		c.evict(oldest)
	}
}

func (c *permissionCache) isFull() bool {
	return c.order.Len() > c.client.Cache.MaxEntries || c.bytes > maxCachedBytes
}

func (c *permissionCache) isExpired(element *list.Element) bool {
	return time.Since(element.Value.(*entry).readAt) >= c.client.Cache.TTL
}

func (c *permissionCache) evict(element *list.Element) {
	c.order.Remove(element)
	c.bytes -= element.Value.(*entry).permissions.bytes
	delete(c.entries, element.Value.(*entry).user)
}
