// Package readlimit bounds the memory that answers to readers take together, and
// shares it among them fairly: a caller who asks for much waits for its own
// answers, not others for them.
package readlimit

import (
	"context"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// Config says how much there is to share. Zero values mean the defaults.
type Config struct {
	Bytes int64         // for all readers together; 64 MiB
	Wait  time.Duration // how long a reader waits for its turn; 10 s
	Queue int           // how many readers of one caller may wait; 100
}

// Limiter is a semaphore that counts bytes. Callers take turns; of one caller's
// readers the first to come is the first to be served. A quarter is kept for who
// asks for little, so that nobody who asks for one object waits for those who read
// whole clusters, slowly perhaps. Nil limits nothing. It is safe for concurrent use.
type Limiter struct{ small, large *pool }

// maxSmallBytes is how many bytes are little.
const maxSmallBytes = 1 << 20

// pool is what readers of one size share.
type pool struct {
	cfg   Config
	share int64 // of one caller

	mu      sync.Mutex
	used    int64
	callers map[string]*caller
	queue   []*caller // those with readers that wait, whose turn is next first
}

// caller is somebody who holds bytes or waits for some.
type caller struct {
	name    string
	held    int64
	waiting []*waiter
}

type waiter struct {
	bytes   int64
	granted chan struct{} // closed when it has them
}

// New returns a limiter.
func New(cfg Config) *Limiter {
	cfg = cfg.withDefaults()
	small, large := cfg, cfg
	small.Bytes = cfg.Bytes / 4
	large.Bytes -= small.Bytes
	return &Limiter{newPool(small), newPool(large)}
}

// NewUniform is New for readers who all ask for the same: nothing is kept for who
// asks for less.
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
	return cfg
}

func newPool(cfg Config) *pool {
	return &pool{cfg: cfg, share: cfg.Bytes / 2, callers: map[string]*caller{}}
}

// Acquire waits until a caller may hold so many bytes more, and returns what gives
// them back, which must be called once. A caller has half of what there is at most:
// what is larger counts as that. The error is a vedette.Unavailable where the turn
// does not come in time, or too many of the caller's readers wait already.
func (l *Limiter) Acquire(ctx context.Context, name string, bytes int64) (release func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	return l.pool(bytes).acquire(ctx, name, bytes)
}

// TryAcquire is Acquire for who can't wait: nil where others would have to.
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
		return nil, vedette.Errorf(vedette.Unavailable, "%d requests of yours wait for memory on this server already: "+
			"send fewer at a time, or ask for less with each", p.cfg.Queue)
	}
	timer := time.NewTimer(p.cfg.Wait)
	defer timer.Stop()
	select {
	case <-w.granted:
		return p.releaser(c, w), nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = vedette.Errorf(vedette.Unavailable, "answers to other requests took all %d MiB that this server has for them for %v: "+
			"try again, or ask for less: fewer objects, or objects without their manifests", p.cfg.Bytes>>20, p.cfg.Wait)
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

// enqueue queues a reader and serves who can be served. It returns nil where the
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

// cancel takes a reader out of the queue. It may have been served meanwhile.
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

// grantLocked gives what is free to those who wait: one reader of each caller in
// turn. Who holds a whole share is passed over; one that is too large for what is
// free is waited for, or small readers would keep it out for ever.
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

// removeIdleLocked forgets a caller that wants nothing any more.
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

// Read reads something whose size shows only when it has been read, and holds that
// many bytes of it. Where they are not to be had at once what was read is let go,
// and read again when they are.
func Read[T any](ctx context.Context, l *Limiter, name string, read func() (T, int64, error)) (T, func(), error) {
	var zero T
	v, size, err := read()
	if err != nil {
		return zero, nil, err
	}
	if release := l.TryAcquire(name, size); release != nil {
		return v, release, nil
	}
	v = zero
	release, err := l.Acquire(ctx, name, size)
	if err != nil {
		return zero, nil, err
	}
	if v, _, err = read(); err != nil {
		release()
		return zero, nil, err
	}
	return v, release, nil
}
