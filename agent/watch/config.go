package watch

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/queue"
)

// Config configures a Watcher. A zero value means the default, which is at the end of each
// comment.
type Config struct {
	// Limiter bounds the snapshots of all watchers of an agent. Nil means one for this watcher.
	Limiter *Limiter
	// MinBackoff and MaxBackoff bound the pause after a failure, which doubles; 1 s, 30 s.
	MinBackoff, MaxBackoff time.Duration
	// MinDeniedBackoff and MaxDeniedBackoff bound the pause after RBAC denied a request; 1 min, 5 min.
	MinDeniedBackoff, MaxDeniedBackoff time.Duration
	// MinWatchTimeout and MaxWatchTimeout bound how long one watch request lasts; 5 min, 10 min.
	MinWatchTimeout, MaxWatchTimeout time.Duration
	// RediscoverInterval is how often discovery runs without a cause, so that no kind stays
	// unknown for longer; 2 min. It costs two requests that API servers of 1.26 and later
	// answer with 304.
	RediscoverInterval time.Duration
	// SettleDelay is how long to wait for more changes after a custom kind changed; 1 s.
	SettleDelay time.Duration
	// MaxFeeds bounds the feeds of the account. What is selected beyond that is not watched,
	// and the account says so; 3,000, because the largest clusters have about as many kinds.
	MaxFeeds int
	// StreamSnapshots reads snapshots as the beginning of a watch instead of paged lists,
	// if the API server supports it. This took 1.4 times as long for 12,000 objects, but
	// saves memory in a large API server; false.
	StreamSnapshots bool
	// StreamIdleTimeout is how long a streamed snapshot may be silent. After that it is
	// ended, and lists are used instead; 30 s.
	StreamIdleTimeout time.Duration
	// PagePermitTimeout is how long one page of a snapshot may wait for the API server while
	// it holds a permit that all accounts share. After that the snapshot loses the permit; 3 s.
	PagePermitTimeout time.Duration
	// LargeObjectTimeout is how long an API server may take to send an object of more than
	// 1 MiB; 1 min.
	LargeObjectTimeout time.Duration
	// IdleTimeout is how long a watch may be silent before it counts as lost; 75 s, because
	// API servers send a bookmark each minute.
	IdleTimeout time.Duration
	// ProbeInterval is how often the API server is asked whether it still accepts the
	// credentials, because it does not end the watches of a deleted ServiceAccount; 15 s.
	ProbeInterval time.Duration
	// ProofInterval returns how often each connection with watches is probed, to show up to when its feeds
	// are complete. It costs one request for an object over an open connection. Nil means 3 s.
	ProofInterval func() time.Duration
	// OnFresh is called when it becomes known up to when the account is complete. It must not block;
	// nil is for none.
	OnFresh func()
	// VerifyInterval is how often each feed is compared with its cluster, besides after events that
	// may have broken it; 1 h. A negative value means never.
	VerifyInterval time.Duration
	// Comparer compares feeds with what the server stores. Nil means that feeds are not verified.
	Comparer Comparer
	Log      *slog.Logger // slog.Default() if nil
}

// DefaultMaxFeeds is the default of Config.MaxFeeds.
const DefaultMaxFeeds = 3000

func (c Config) withDefaults() Config {
	if c.Limiter == nil {
		c.Limiter = NewLimiter(queue.Budget{})
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&c.MinBackoff, time.Second}, {&c.MaxBackoff, 30 * time.Second},
		{&c.MinDeniedBackoff, time.Minute}, {&c.MaxDeniedBackoff, 5 * time.Minute},
		{&c.MinWatchTimeout, 5 * time.Minute}, {&c.MaxWatchTimeout, 10 * time.Minute},
		{&c.RediscoverInterval, 2 * time.Minute}, {&c.SettleDelay, time.Second},
		{&c.StreamIdleTimeout, 30 * time.Second}, {&c.IdleTimeout, kube.DefaultIdleTimeout},
		{&c.PagePermitTimeout, 3 * time.Second}, {&c.LargeObjectTimeout, time.Minute},
		{&c.ProbeInterval, 15 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	if c.VerifyInterval < 0 {
		c.Comparer = nil
	} else if c.VerifyInterval == 0 {
		c.VerifyInterval = time.Hour
	}
	if c.ProofInterval == nil {
		c.ProofInterval = func() time.Duration { return 3 * time.Second }
	}
	if c.MaxFeeds <= 0 {
		c.MaxFeeds = DefaultMaxFeeds
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// newBackoff returns the pauses after failures.
func (c Config) newBackoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = c.MinBackoff, c.MaxBackoff
	b.Multiplier = 2
	return b
}

// Limiter holds what all watchers of one agent share: permits for snapshots and for
// large objects, and read buffers.
type Limiter struct {
	queue              *queue.Queue
	groups             groups
	slowPermits        chan struct{} // for snapshots of slow API servers
	largeObjectPermits chan struct{} // for reading a large object
	examinations       chan struct{} // permits for examinations of feeds
	buffers            jsonstream.BufferPool
}

// NewLimiter returns a Limiter with a budget.
func NewLimiter(b queue.Budget) *Limiter {
	q := queue.New(b)
	b = q.Budget()
	return &Limiter{queue: q, groups: groups{size: b.GroupSize, delay: b.GroupDelay},
		slowPermits: make(chan struct{}, 2*b.Fast), largeObjectPermits: make(chan struct{}, maxLargeObjects),
		examinations: make(chan struct{}, maxExaminations)}
}

// acquirePermit waits for a permit.
func acquirePermit(ctx context.Context, permits chan struct{}) error {
	select {
	case permits <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// randomDuration returns a random duration, so that feeds that started together do not
// stay synchronized.
func randomDuration(shortest, longest time.Duration) time.Duration {
	if longest <= shortest {
		return shortest
	}
	return shortest + rand.N(longest-shortest)
}
