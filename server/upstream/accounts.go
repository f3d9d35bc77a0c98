package upstream

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/vedette-io/vedette"
)

// accountMaxAge is how old the known names of agents' accounts may be. For so long, requests for a
// new account go to the upstream Clouddriver.
const accountMaxAge = 500 * time.Millisecond

// accountTimeout bounds a read of the names.
const accountTimeout = 5 * time.Second

// accountSet is a set of names. It is not changed.
type accountSet map[vedette.AccountName]struct{}

func (s accountSet) has(name string) bool {
	_, ok := s[vedette.AccountName(name)]
	return ok
}

// accountCache knows which accounts are agents'. It is safe for concurrent use.
type accountCache struct {
	source accountSource
	reads  singleflight.Group

	mu    sync.Mutex
	names accountSet // nil before the first read
	read  time.Time
}

// current returns the accounts of agents. If they cannot be read, it returns those that were read
// last, so that a database that does not answer does not affect accounts of others.
func (c *accountCache) current(ctx context.Context) (accountSet, error) {
	if names, ok := c.fresh(); ok {
		return names, nil
	}
	result := c.reads.DoChan("", func() (any, error) { return nil, c.refresh(ctx) })
	var err error
	select {
	case r := <-result:
		err = r.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names == nil {
		return nil, err
	}
	return c.names, nil
}

func (c *accountCache) fresh() (accountSet, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names, c.names != nil && time.Since(c.read) < accountMaxAge
}

// refresh reads the names. It continues if the caller leaves, because others wait for it too.
func (c *accountCache) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), accountTimeout)
	defer cancel()
	list, err := c.source.AccountNames(ctx)
	if err != nil {
		return err
	}
	names := make(accountSet, len(list))
	for _, name := range list {
		names[name] = struct{}{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names, c.read = names, time.Now()
	return nil
}
