// Package fair has the waiting line for everything that is shared and counted: bytes of memory,
// workers, streams, transactions.
//
//   - The requests of one key are granted in the order of their arrival.
//   - Keys take turns, so that a key with many requests delays only itself.
//   - A key holds no more than its share, however much is free.
//   - A request that is larger than what is free is not overtaken by smaller ones behind it. If it gives up at
//     the front, its key has used a turn.
//   - Nothing is granted to a context that has ended.
//
// Less formally: whoever wants much waits for itself.
//
// A key must be something that callers cannot choose freely, such as their address: a caller with a thousand keys has
// a thousand turns. Names that they choose, such as users in headers, belong into a line of their own within the share
// of such a key, as server/readlimit does it.
//
// It is the only waiting line, because eight mechanisms with different rules were each attacked with success in another way.
// Considered: golang.org/x/sync/semaphore is first in, first out, without keys or shares, so one caller delays everyone. API
// priority and fairness of Kubernetes (k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing) distributes seats of requests, not
// bytes that grow, and needs the API server's packages. Adding, granting, releasing and canceling take constant time,
// whatever the number of keys.
package fair

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Errors of requests that are not granted. Callers add what is missing, and what to do about it.
var (
	// ErrQueueFull reports that as many requests wait as may, of one key or of all.
	ErrQueueFull = errors.New("too many requests are waiting already")
	// ErrTimeout reports that a request waited for Config.Wait.
	ErrTimeout = errors.New("nothing became free in time")
	// ErrTooLarge reports that a grant cannot grow, because it would exceed the share of its key.
	ErrTooLarge = errors.New("one grant would exceed the share of its key")
)

// Config configures a Line. Only Capacity is required.
type Config struct {
	Capacity int64 // units in total
	// Share is how many units a key of weight 1 may hold in each class; 0 means half of Capacity, and at
	// least one.
	Share int64
	// Weight returns how many keys a key counts as: it has that many shares, and that many turns in a
	// row. It must return the same number while the key holds or waits for something, and must not block.
	// Nil, and numbers below 1, mean 1.
	Weight func(key string) int
	// Classes has for each class of requests how many of them are granted before one of a later class,
	// while both wait. Keys take turns within a class. Nil means one class.
	Classes []int
	Queue   int           // how many requests of one key and class may wait; 0 means any number
	Waiting int           // how many requests may wait in total; 0 means any number
	Wait    time.Duration // how long a request waits; 0 means until its context ends
	// OnWait is called after each request that had to wait, or was refused, for metrics. It must not
	// block and may be called concurrently. Nil means none.
	OnWait func(waited time.Duration, granted bool)
}

// Line grants units to keys. A nil Line grants everything. It is safe for concurrent use.
type Line struct {
	cfg Config

	mu sync.Mutex
	q  queue
}

// Stats describes a Line at one moment.
type Stats struct {
	Used    int64 // units that are granted
	Waiting int   // requests
	Keys    int   // that hold or wait for something
}

// New returns a Line.
func New(cfg Config) *Line {
	if cfg.OnWait == nil {
		cfg.OnWait = func(time.Duration, bool) {}
	}
	return &Line{cfg: cfg, q: newQueue(cfg)}
}

// Acquire waits until a key may hold n more units. A request for more than the share of its key counts
// as that share. The error is ErrQueueFull, ErrTimeout, or the cause of the context's end.
func (l *Line) Acquire(ctx context.Context, key string, n int64) (*Grant, error) {
	return l.AcquireClass(ctx, 0, key, n)
}

// AcquireClass is Acquire for a request of a class.
func (l *Line) AcquireClass(ctx context.Context, class int, key string, n int64) (*Grant, error) {
	if l == nil {
		return nil, nil //nolint:nilnil // a nil Grant is valid, and holds nothing
	}
	return l.wait(ctx, &waiter{class: class, name: key, units: max(n, 1)})
}

// TryAcquire is Acquire, but returns nil instead of waiting. Requests that wait are not overtaken.
func (l *Line) TryAcquire(key string, n int64) *Grant {
	if l == nil {
		return &Grant{}
	}
	return l.try(&waiter{name: key, units: max(n, 1)})
}

// Stats returns what is granted and who waits.
func (l *Line) Stats() Stats {
	if l == nil {
		return Stats{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Used: l.q.used, Waiting: l.q.waiting, Keys: len(l.q.keys)}
}

// try grants a request at once or not at all.
func (l *Line) try(w *waiter) *Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.q.grantAtOnce(w) {
		return l.grantOf(w)
	}
	if !l.q.mayWait(w) || !l.q.mayBeNext(w) {
		return nil
	}
	l.enqueueLocked(w)
	if !w.granted {
		l.q.remove(w)
		l.grantLocked() // what w held up
		return nil
	}
	return l.grantOf(w)
}

func (l *Line) wait(ctx context.Context, w *waiter) (*Grant, error) {
	err := context.Cause(ctx)
	if err == nil {
		err = l.enqueue(w)
	}
	if err != nil {
		l.cfg.OnWait(0, false)
		return nil, err
	}
	if w.done == nil {
		return l.grantOf(w), nil
	}
	select {
	case <-w.done:
		return l.grantOf(w), nil
	default:
	}
	start := time.Now()
	timeout, stop := l.timeout()
	defer stop()
	err = w.await(ctx, timeout)
	if err != nil {
		l.cancel(w)
	}
	l.cfg.OnWait(time.Since(start), err == nil)
	if err != nil {
		return nil, err
	}
	return l.grantOf(w), nil
}

// timeout returns a channel that receives when a request has waited for Config.Wait, and a function that
// releases it.
func (l *Line) timeout() (<-chan time.Time, func() bool) {
	if l.cfg.Wait <= 0 {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(l.cfg.Wait)
	return timer.C, timer.Stop
}

// await waits for the grant. After a pause of the process several things may have happened at once: what
// was granted is kept despite the timeout, but is of no use if the context has ended.
func (w *waiter) await(ctx context.Context, timeout <-chan time.Time) error {
	select {
	case <-w.done:
	case <-ctx.Done():
	case <-timeout:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-w.done:
		return nil
	default:
		return ErrTimeout
	}
}

// enqueue grants a request, or lets it wait for w.done.
func (l *Line) enqueue(w *waiter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.q.grantAtOnce(w) {
		return nil
	}
	if !l.q.mayWait(w) {
		return ErrQueueFull
	}
	w.done = make(chan struct{})
	l.enqueueLocked(w)
	return nil
}

func (l *Line) enqueueLocked(w *waiter) {
	l.q.add(w)
	l.grantLocked()
}

// cancel removes a request, or releases what it was granted meanwhile.
func (l *Line) cancel(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.granted {
		l.q.release(w.key, w.units)
	} else {
		l.q.cancel(w)
	}
	l.grantLocked()
}

// grantLocked grants what is free, in turn.
func (l *Line) grantLocked() {
	for w := l.q.next(); w != nil; w = l.q.next() {
		if w.done != nil {
			close(w.done)
		}
	}
}

func (l *Line) grantOf(w *waiter) *Grant {
	return &Grant{line: l, key: w.key, units: w.units}
}
