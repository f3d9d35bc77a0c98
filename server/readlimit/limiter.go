// Package readlimit limits the memory that REST requests and responses take together, and shares it
// fairly: a caller that requests much waits itself and does not delay others.
package readlimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bytesize"
	"github.com/vedette-io/vedette/internal/fair"
)

// Config configures a Limiter. Zero values mean the defaults.
type Config struct {
	Bytes int64         // for all requests together; 64 MiB
	Wait  time.Duration // how long a request waits for memory; 10 s
	Queue int           // how many requests of one user may wait; 100
	// UserShare is how many bytes one user of a source may hold. The default is three quarters of the
	// source's share, so that a user who reads slowly leaves some to the others of its source.
	UserShare int64
	// OnWait is called after each request that had to wait, or was rejected, for metrics. It must
	// not block and may be called concurrently; nil is for none.
	OnWait func(waited time.Duration, granted bool)
}

// Limiter grants bytes. Sources take turns, and so do the users of a source; the requests of one user are
// served in order. A quarter of the bytes is reserved for small requests, so that they do not wait
// for requests that read whole clusters, perhaps slowly. A nil Limiter limits nothing. It is safe
// for concurrent use.
type Limiter struct{ small, large *pool }

// maxSmallBytes is the largest size of a small request.
const maxSmallBytes = 1 << 20

// maxSourceQueue is how many requests of one source may wait, for each that one user may have waiting.
const maxSourceQueue = 10

// pool is the memory that requests of one size class share: a line of sources, and for each source that
// holds or wants something a line of its users. A request waits in both, first among those of its source,
// so that at most the share of its source waits in the line of all.
type pool struct {
	cfg   Config
	share int64 // maximum of one source
	all   *fair.Line

	mu      sync.Mutex
	sources map[string]*source
}

type source struct {
	users    *fair.Line
	requests int // that hold or want something
}

// New returns a Limiter with a reserve for small requests.
func New(cfg Config) *Limiter {
	cfg = cfg.withDefaults()
	small, large := cfg, cfg
	small.Bytes = cfg.Bytes / 4
	large.Bytes -= small.Bytes
	return &Limiter{newPool(small), newPool(large)}
}

// NewUniform returns a Limiter without a reserve, for requests of about the same size.
func NewUniform(cfg Config) *Limiter {
	all := newPool(cfg.withDefaults())
	return &Limiter{all, all}
}

func (cfg Config) withDefaults() Config {
	if cfg.Bytes <= 0 {
		cfg.Bytes = 64 << 20
	}
	if cfg.Wait <= 0 {
		cfg.Wait = 10 * time.Second
	}
	if cfg.Queue <= 0 {
		cfg.Queue = 100
	}
	if cfg.OnWait == nil {
		cfg.OnWait = func(time.Duration, bool) {}
	}
	return cfg
}

func newPool(cfg Config) *pool {
	return newPoolWithShare(cfg, cfg.Bytes/2)
}

func newPoolWithShare(cfg Config, share int64) *pool {
	if cfg.UserShare <= 0 {
		cfg.UserShare = max(share*3/4, 1)
	}
	return &pool{cfg: cfg, share: share, sources: map[string]*source{},
		all: fair.New(fair.Config{Capacity: cfg.Bytes, Share: share, Queue: maxSourceQueue * cfg.Queue})}
}

// Acquire waits until a caller may hold the given bytes, and returns a function that releases them. A request
// for more than the share of its user counts as that share. The error is vedette.Unavailable if the wait
// takes too long, or if too many requests of the caller wait already.
func (l *Limiter) Acquire(ctx context.Context, caller Caller, bytes int64) (release func(), err error) {
	g, err := l.AcquireGrant(ctx, caller, bytes)
	if err != nil {
		return nil, err
	}
	return g.Release, nil
}

// AcquireGrant is Acquire for a request that may need more bytes later.
func (l *Limiter) AcquireGrant(ctx context.Context, caller Caller, bytes int64) (*Grant, error) {
	if l == nil {
		return nil, nil //nolint:nilnil // a nil Grant is valid, and holds nothing
	}
	return l.pool(bytes).acquire(ctx, caller, bytes)
}

// TryAcquire is like Acquire, but returns nil instead of waiting.
func (l *Limiter) TryAcquire(caller Caller, bytes int64) (release func()) {
	if l == nil {
		return func() {}
	}
	g := l.pool(bytes).tryAcquire(caller, bytes)
	if g == nil {
		return nil
	}
	return g.Release
}

func (l *Limiter) pool(bytes int64) *pool {
	if bytes <= maxSmallBytes {
		return l.small
	}
	return l.large
}

// Grant holds bytes until Release. A nil Grant holds nothing, and may hold any number.
type Grant struct {
	pool   *pool
	source string
	user   *fair.Grant // in the line of the source
	all    *fair.Grant // in the line of all sources
	once   sync.Once
}

// Grow waits until the grant may hold more bytes. It keeps what it holds. The error is that of
// Limiter.Acquire.
func (g *Grant) Grow(ctx context.Context, bytes int64) error {
	if g == nil {
		return nil
	}
	hasUser := g.user.TryGrow(bytes)
	if hasUser && g.all.TryGrow(bytes) {
		return nil
	}
	return g.pool.measured(ctx, func(ctx context.Context) error {
		if !hasUser {
			if err := g.user.Grow(ctx, bytes); err != nil {
				return err
			}
		}
		return g.all.Grow(ctx, bytes) // after an error, the release returns what the user's line gave
	})
}

// Release returns all bytes. Further calls do nothing.
func (g *Grant) Release() {
	if g == nil {
		return
	}
	g.once.Do(func() {
		g.all.Release()
		g.user.Release()
		g.pool.leave(g.source)
	})
}

func (p *pool) acquire(ctx context.Context, caller Caller, bytes int64) (*Grant, error) {
	if g := p.tryAcquire(caller, bytes); g != nil {
		return g, nil
	}
	g := &Grant{pool: p, source: caller.Source}
	users := p.join(caller.Source)
	bytes = min(bytes, p.cfg.UserShare)
	err := p.measured(ctx, func(ctx context.Context) (err error) {
		if g.user, err = users.Acquire(ctx, caller.User, bytes); err != nil {
			return err
		}
		g.all, err = p.all.Acquire(ctx, caller.Source, bytes)
		return err
	})
	if err != nil {
		g.Release()
		return nil, err
	}
	return g, nil
}

// tryAcquire returns nil if the bytes are not free, or others wait for them.
func (p *pool) tryAcquire(caller Caller, bytes int64) *Grant {
	g := &Grant{pool: p, source: caller.Source}
	bytes = min(bytes, p.cfg.UserShare)
	if g.user = p.join(caller.Source).TryAcquire(caller.User, bytes); g.user != nil {
		g.all = p.all.TryAcquire(caller.Source, bytes)
	}
	if g.all == nil {
		g.Release()
		return nil
	}
	return g
}

// measured calls wait with the deadline of a request, and translates its error.
func (p *pool) measured(ctx context.Context, wait func(context.Context) error) error {
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.Wait, fair.ErrTimeout)
	defer cancel()
	err := wait(ctx)
	if errors.Is(err, fair.ErrQueueFull) || errors.Is(err, fair.ErrTooLarge) {
		p.cfg.OnWait(0, false)
	} else {
		p.cfg.OnWait(time.Since(start), err == nil)
	}
	return p.translate(err)
}

func (p *pool) translate(err error) error {
	switch {
	case errors.Is(err, fair.ErrQueueFull):
		return vedette.Errorf(vedette.Unavailable, "%d requests of this caller are already waiting for memory on this server: "+
			"send fewer requests at a time, or request less with each", p.cfg.Queue)
	case errors.Is(err, fair.ErrTimeout):
		return vedette.Errorf(vedette.Unavailable, "other requests have used all %s of memory that this server has for them, or that this caller "+
			"may use, for %v: try again, send less at a time, or request fewer objects or objects without manifests", bytesize.Text(p.cfg.Bytes), p.cfg.Wait)
	case errors.Is(err, fair.ErrTooLarge):
		return vedette.Errorf(vedette.Unavailable, "the request takes more than the %s of memory that one caller may use on this server: send less",
			bytesize.Text(p.cfg.UserShare))
	}
	return err
}

// join returns the line of a source's users. Each call needs one of leave.
func (p *pool) join(name string) *fair.Line {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sources[name]
	if s == nil {
		s = &source{users: fair.New(fair.Config{Capacity: p.share, Share: min(p.cfg.UserShare, p.share), Queue: p.cfg.Queue,
			Waiting: maxSourceQueue * p.cfg.Queue})}
		p.sources[name] = s
	}
	s.requests++
	return s.users
}

func (p *pool) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sources[name]
	s.requests--
	if s.requests == 0 {
		delete(p.sources, name)
	}
}

// Read calls read, whose size is known only afterwards, and acquires that many bytes. If they are
// not free, Read drops the result so that it takes no memory while waiting, and calls read again
// once the bytes are acquired.
func Read[T any](ctx context.Context, l *Limiter, caller Caller, read func() (T, int64, error)) (T, func(), error) {
	var zero T
	v, size, err := read()
	if err != nil {
		return zero, nil, err
	}
	if release := l.TryAcquire(caller, size); release != nil {
		return v, release, nil
	}
	v = zero //nolint:ineffassign // drops the result while it waits, so that it takes no memory
	release, err := l.Acquire(ctx, caller, size)
	if err != nil {
		return zero, nil, err
	}
	v, _, err = read()
	if err != nil {
		release()
		return zero, nil, err
	}
	return v, release, nil
}
