package watch_test

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/vedette-io/vedette/agent/watch"
)

// gated blocks while it is shut, until open is closed.
type gated struct {
	watch.Sink
	shut atomic.Bool
	open chan struct{}
}

func (g *gated) Put(ctx context.Context, e watch.Event) error {
	if g.shut.Load() {
		select {
		case <-g.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return g.Sink.Put(ctx, e)
}

// counter counts items until the first snapshot ends.
type counter struct {
	items, bytes int
	ended        chan struct{}
	once         sync.Once
}

func newCounter() *counter { return &counter{ended: make(chan struct{})} }

func (c *counter) Put(ctx context.Context, e watch.Event) error {
	switch e.Type {
	case watch.Item:
		c.items++
		c.bytes += len(e.Raw)
	case watch.End:
		c.once.Do(func() { close(c.ended) })
	}
	return ctx.Err()
}
