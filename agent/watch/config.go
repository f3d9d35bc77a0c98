package watch

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/agent/kube"
)

// Config is how a Watcher goes about it. Zero values mean the defaults.
type Config struct {
	// Limiter is what all watchers of an agent share. Nil: the watcher's own.
	Limiter *Limiter
	// SnapshotsPerAccount bounds the snapshots that one account takes at a time; 4. Each
	// costs a read buffer here and a page of objects in the API server.
	SnapshotsPerAccount int
	// MinBackoff and MaxBackoff bound the pause after a failure, which doubles; 1 s, 30 s.
	MinBackoff, MaxBackoff time.Duration
	// MinDeniedBackoff and MaxDeniedBackoff bound the pause after RBAC's no; 1 min, 5 min.
	MinDeniedBackoff, MaxDeniedBackoff time.Duration
	// MinWatchTimeout and MaxWatchTimeout bound how long one watch request lasts; 5 min, 10 min.
	MinWatchTimeout, MaxWatchTimeout time.Duration
	// RediscoverInterval is how often discovery is asked without cause; 10 min.
	RediscoverInterval time.Duration
	// SettleDelay is how long to wait for more once custom kinds change; 1 s.
	SettleDelay time.Duration
	// StreamSnapshots takes snapshots as the beginning of a watch, where the API
	// server can, in place of paged lists. It took 1.4 times as long for 12,000
	// objects, but spares a big API server memory.
	StreamSnapshots bool
	// StreamIdleTimeout is how long the stream of a snapshot may say nothing before
	// it ends, after which lists are used in its place; 30 s.
	StreamIdleTimeout time.Duration
	// PagePermitTimeout is how long one page of a snapshot may keep one of the turns waiting
	// that all accounts share, before it goes on without; 3 s.
	PagePermitTimeout time.Duration
	// LargeObjectTimeout is how long an API server may take for an object of more than 1 MiB; 1 min.
	LargeObjectTimeout time.Duration
	// IdleTimeout is how long a watch may say nothing before it is taken for lost; 75 s,
	// since API servers send a bookmark each minute.
	IdleTimeout time.Duration
	Log         *slog.Logger // slog.Default() where nil
}

func (c Config) withDefaults() Config {
	if c.Limiter == nil {
		c.Limiter = NewLimiter(0)
	}
	if c.SnapshotsPerAccount <= 0 {
		c.SnapshotsPerAccount = 4
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&c.MinBackoff, time.Second}, {&c.MaxBackoff, 30 * time.Second},
		{&c.MinDeniedBackoff, time.Minute}, {&c.MaxDeniedBackoff, 5 * time.Minute},
		{&c.MinWatchTimeout, 5 * time.Minute}, {&c.MaxWatchTimeout, 10 * time.Minute},
		{&c.RediscoverInterval, 10 * time.Minute}, {&c.SettleDelay, time.Second}, {&c.StreamIdleTimeout, 30 * time.Second}, {&c.IdleTimeout, kube.DefaultIdleTimeout}, {&c.PagePermitTimeout, 3 * time.Second}, {&c.LargeObjectTimeout, time.Minute},
	} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Limiter is what all watchers of one agent share: turns to take a snapshot, and
// read buffers.
type Limiter struct {
	permits            chan struct{}
	slowPermits        chan struct{} // turns of snapshots of slow API servers
	largeObjectPermits chan struct{} // turns to read a big object
	buffers            jsonstream.BufferPool
}

// NewLimiter allows a number of snapshots at a time; 8 where it is 0.
func NewLimiter(snapshots int) *Limiter {
	if snapshots <= 0 {
		snapshots = 8
	}
	return &Limiter{permits: make(chan struct{}, snapshots), slowPermits: make(chan struct{}, 2*snapshots), largeObjectPermits: make(chan struct{}, maxLargeObjects)}
}

// acquirePermit waits for a turn.
func acquirePermit(ctx context.Context, permits chan struct{}) error {
	select {
	case permits <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// randomDuration returns a random duration, so that what began together does not go on
// together.
func randomDuration(shortest, longest time.Duration) time.Duration {
	if longest <= shortest {
		return shortest
	}
	return shortest + rand.N(longest-shortest)
}
