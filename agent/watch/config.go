package watch

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Config is how a Watcher goes about it. Zero values mean the defaults.
type Config struct {
	// Shared is what all watchers of an agent share. Nil: the watcher's own.
	Shared *Shared
	// PerAccount bounds the snapshots that one account takes at a time; 4. Each
	// costs a read buffer here and a page of objects in the API server.
	PerAccount int
	// FirstRetry and MostRetry bound the pause after a failure, which doubles; 1 s, 30 s.
	FirstRetry, MostRetry time.Duration
	// LeastDenied and MostDenied bound the pause after RBAC's no; 1 min, 5 min.
	LeastDenied, MostDenied time.Duration
	// LeastWatch and MostWatch bound how long one watch request lasts; 5 min, 10 min.
	LeastWatch, MostWatch time.Duration
	// Rediscover is how often discovery is asked without cause; 10 min.
	Rediscover time.Duration
	// Settle is how long to wait for more once custom kinds change; 1 s.
	Settle time.Duration
	// StreamSnapshots takes snapshots as the beginning of a watch, where the API
	// server can, in place of paged lists. It took 1.4 times as long for 12,000
	// objects, but spares a big API server memory.
	StreamSnapshots bool
	// StreamSilence is how long the stream of a snapshot may say nothing before
	// it ends, after which lists are used in its place; 30 s.
	StreamSilence time.Duration
	// PageWait is how long one page of a snapshot may keep one of the turns waiting
	// that all accounts share, before it goes on without; 3 s.
	PageWait time.Duration
	// BigObject is how long an API server may take for an object of more than 1 MiB; 1 min.
	BigObject time.Duration
	// Silence is how long a watch may say nothing before it is taken for lost; 75 s,
	// since API servers send a bookmark each minute.
	Silence time.Duration
	Log     *slog.Logger // slog.Default() where nil
}

func (c Config) withDefaults() Config {
	if c.Shared == nil {
		c.Shared = NewShared(0)
	}
	if c.PerAccount <= 0 {
		c.PerAccount = 4
	}
	for _, d := range []struct {
		is *time.Duration
		to time.Duration
	}{
		{&c.FirstRetry, time.Second}, {&c.MostRetry, 30 * time.Second},
		{&c.LeastDenied, time.Minute}, {&c.MostDenied, 5 * time.Minute},
		{&c.LeastWatch, 5 * time.Minute}, {&c.MostWatch, 10 * time.Minute},
		{&c.Rediscover, 10 * time.Minute}, {&c.Settle, time.Second}, {&c.StreamSilence, 30 * time.Second}, {&c.Silence, mostSilent}, {&c.PageWait, 3 * time.Second}, {&c.BigObject, time.Minute},
	} {
		if *d.is <= 0 {
			*d.is = d.to
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Shared is what all watchers of one agent share: turns to take a snapshot, and
// read buffers.
type Shared struct {
	turns   chan struct{}
	slow    chan struct{} // turns of snapshots of slow API servers
	big     chan struct{} // turns to read a big object
	buffers buffers
}

// NewShared allows a number of snapshots at a time; 8 where it is 0.
func NewShared(snapshots int) *Shared {
	if snapshots <= 0 {
		snapshots = 8
	}
	return &Shared{turns: make(chan struct{}, snapshots), slow: make(chan struct{}, 2*snapshots), big: make(chan struct{}, mostBig)}
}

// acquire waits for a turn.
func acquire(ctx context.Context, turns chan struct{}) error {
	select {
	case turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// between returns a random duration, so that what began together does not go on
// together.
func between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + rand.N(most-least)
}
