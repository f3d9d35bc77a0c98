package watch_test

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/vedette-io/vedette/agent/watch"
)

// blockingSink blocks while blocked is set, until unblock is closed.
type blockingSink struct {
	watch.Sink
	blocked atomic.Bool
	unblock chan struct{}
}

func (g *blockingSink) Put(ctx context.Context, e watch.Event) error {
	if g.blocked.Load() {
		select {
		case <-g.unblock:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return g.Sink.Put(ctx, e)
}

// countingSink counts items until the first snapshot ends.
type countingSink struct {
	items, bytes int
	ended        chan struct{}
	once         sync.Once
}

func newCountingSink() *countingSink { return &countingSink{ended: make(chan struct{})} }

func (c *countingSink) Put(ctx context.Context, e watch.Event) error {
	switch e.Type {
	case watch.Item:
		c.items++
		c.bytes += len(e.Raw)
	case watch.End:
		c.once.Do(func() { close(c.ended) })
	}
	return ctx.Err()
}
