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

// accountSet is a set of names. It is not changed. Nil is an empty set.
type accountSet struct {
	names  map[vedette.AccountName]struct{}
	folded map[string]struct{}
}

func newAccountSet(names []vedette.AccountName) *accountSet {
	s := &accountSet{make(map[vedette.AccountName]struct{}, len(names)), make(map[string]struct{}, len(names))}
	for _, name := range names {
		s.names[name], s.folded[name.Folded()] = struct{}{}, struct{}{}
	}
	return s
}

// has reports whether an account is an agent's.
func (s *accountSet) has(name string) bool {
	if s == nil {
		return false
	}
	_, ok := s.names[vedette.AccountName(name)]
	return ok
}

// hides reports whether lists leave out an account of the upstream Clouddriver: it is an agent's, or
// Spinnaker's services take it for an agent's, and would give its permissions to that one.
func (s *accountSet) hides(name string) bool {
	if s == nil {
		return false
	}
	_, ok := s.folded[vedette.AccountName(name).Folded()]
	return ok
}

// accountCache knows which accounts are agents'. It is safe for concurrent use.
type accountCache struct {
	source accountSource
	reads  singleflight.Group

	mu    sync.Mutex
	names *accountSet // nil before the first read
	read  time.Time
}

// current returns the accounts of agents. If they cannot be read, it returns those that were read
// last, so that a database that does not answer does not affect accounts of others.
func (c *accountCache) current(ctx context.Context) (*accountSet, error) {
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

func (c *accountCache) fresh() (*accountSet, bool) {
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
	names := newAccountSet(list)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names, c.read = names, time.Now()
	return nil
}
