// Package readlimit limits the memory that all REST responses take together, and shares it fairly:
// a caller that requests much waits itself and does not delay others.
package readlimit

import (
	"context"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// Config configures a Limiter. Zero values mean the defaults.
type Config struct {
	Bytes int64         // for all requests together; 64 MiB
	Wait  time.Duration // how long a request waits for memory; 10 s
	Queue int           // how many requests of one caller may wait; 100
	// OnWait is called after each request that had to wait, or was rejected, for metrics. It must
	// not block and may be called concurrently; nil is for none.
	OnWait func(waited time.Duration, granted bool)
}

// Limiter is a semaphore that counts bytes. Callers take turns, and the requests of one caller are
// served in order. A quarter of the bytes is reserved for small requests, so that they do not wait
// for requests that read whole clusters, perhaps slowly. A nil Limiter limits nothing. It is safe
// for concurrent use.
type Limiter struct{ small, large *pool }

// maxSmallBytes is the largest size of a small request.
const maxSmallBytes = 1 << 20

// pool is the memory that requests of one size class share.
type pool struct {
	cfg   Config
	share int64 // maximum of one caller

	mu      sync.Mutex
	used    int64
	callers map[string]*caller
	queue   []*caller // callers with waiting requests, in the order of their turns
}

// caller is a caller that holds bytes or waits for some.
type caller struct {
	name    string
	held    int64
	waiting []*waiter
}

type waiter struct {
	bytes   int64
	granted chan struct{} // closed when the bytes are granted
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
	return &pool{cfg: cfg, share: cfg.Bytes / 2, callers: map[string]*caller{}}
}

// Acquire waits until a caller may hold the given bytes, and returns a function that releases them.
// Call it once. One caller can hold at most half of all bytes; a larger request counts as that
// half. The error is vedette.Unavailable if the wait takes too long, or if too many requests of the
// caller wait already.
func (l *Limiter) Acquire(ctx context.Context, name string, bytes int64) (release func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	return l.pool(bytes).acquire(ctx, name, bytes)
}

// TryAcquire is like Acquire, but returns nil instead of waiting.
func (l *Limiter) TryAcquire(name string, bytes int64) (release func()) {
	if l == nil {
		return func() {}
	}
	return l.pool(bytes).tryAcquire(name, bytes)
}

func (l *Limiter) pool(bytes int64) *pool {
	if bytes <= maxSmallBytes {
		return l.small
	}
	return l.large
}

func (p *pool) acquire(ctx context.Context, name string, bytes int64) (release func(), err error) {
	w, c := p.enqueue(name, bytes)
	if w == nil {
		p.cfg.OnWait(0, false)
		return nil, vedette.Errorf(vedette.Unavailable, "%d requests of this caller are already waiting for memory on this server: "+
			"send fewer requests at a time, or request less with each", p.cfg.Queue)
	}
	select {
	case <-w.granted:
		return p.releaser(c, w), nil
	default:
	}
	start := time.Now()
	defer func() { p.cfg.OnWait(time.Since(start), err == nil) }()
	timer := time.NewTimer(p.cfg.Wait)
	defer timer.Stop()
	select {
	case <-w.granted:
		return p.releaser(c, w), nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = vedette.Errorf(vedette.Unavailable, "responses to other requests have used all %d MiB of response memory of this server for %v: "+
			"try again, or request fewer objects or objects without manifests", p.cfg.Bytes>>20, p.cfg.Wait)
	}
	p.cancel(c, w)
	return nil, err
}

func (p *pool) tryAcquire(name string, bytes int64) (release func()) {
	w, c := p.enqueue(name, bytes)
	if w == nil {
		return nil
	}
	select {
	case <-w.granted:
		return p.releaser(c, w)
	default:
		p.cancel(c, w)
		return nil
	}
}

// enqueue adds a request to the queue and grants what is free. It returns a nil waiter if the
// caller's queue is full.
func (p *pool) enqueue(name string, bytes int64) (*waiter, *caller) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.callers[name]
	if c == nil {
		c = &caller{name: name}
		p.callers[name] = c
	}
	if len(c.waiting) >= p.cfg.Queue {
		return nil, c
	}
	w := &waiter{bytes: min(max(bytes, 1), p.share), granted: make(chan struct{})}
	c.waiting = append(c.waiting, w)
	if len(c.waiting) == 1 {
		p.queue = append(p.queue, c)
	}
	p.grantLocked()
	return w, c
}

func (p *pool) releaser(c *caller, w *waiter) func() {
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.releaseLocked(c, w)
	})
}

// cancel removes a request from the queue. If it was granted meanwhile, cancel releases its bytes.
func (p *pool) cancel(c *caller, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, waiting := range c.waiting {
		if waiting == w {
			c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
			p.removeIdleLocked(c)
			p.grantLocked()
			return
		}
	}
	p.releaseLocked(c, w)
}

func (p *pool) releaseLocked(c *caller, w *waiter) {
	p.used -= w.bytes
	c.held -= w.bytes
	p.removeIdleLocked(c)
	p.grantLocked()
}

// grantLocked grants free bytes to waiting requests, one of each caller in turn. A caller that
// holds its whole share is skipped. A request that is larger than what is free blocks the ones
// behind it, because otherwise small requests would starve it.
func (p *pool) grantLocked() {
	for i := 0; i < len(p.queue); {
		c := p.queue[i]
		w := c.waiting[0]
		if c.held+w.bytes > p.share {
			i++
			continue
		}
		if p.used+w.bytes > p.cfg.Bytes {
			return
		}
		p.used += w.bytes
		c.held += w.bytes
		c.waiting = c.waiting[1:]
		close(w.granted)
		p.queue = append(p.queue[:i:i], p.queue[i+1:]...)
		if len(c.waiting) > 0 {
			p.queue = append(p.queue, c)
		}
		i = 0
	}
}

// removeIdleLocked removes a caller that holds and wants nothing.
func (p *pool) removeIdleLocked(c *caller) {
	if len(c.waiting) > 0 {
		return
	}
	for i, waiting := range p.queue {
		if waiting == c {
			p.queue = append(p.queue[:i:i], p.queue[i+1:]...)
			break
		}
	}
	if c.held == 0 {
		delete(p.callers, c.name)
	}
}

// Read calls read, whose size is known only afterwards, and acquires that many bytes. If they are
// not free, Read drops the result so that it takes no memory while waiting, and calls read again
// once the bytes are acquired.
func Read[T any](ctx context.Context, l *Limiter, name string, read func() (T, int64, error)) (T, func(), error) {
	var zero T
	v, size, err := read()
	if err != nil {
		return zero, nil, err
	}
	if release := l.TryAcquire(name, size); release != nil {
		return v, release, nil
	}
	v = zero //nolint:ineffassign // drops the result while it waits, so that it takes no memory
	release, err := l.Acquire(ctx, name, size)
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
