// Package batch executes calls of many callers together. As long as few come, each is executed at once. If many come, those of an interval
// are executed together, so that the work grows with time and not with the number of calls.
package batch

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Outcome is what a call has led to.
type Outcome[R any] struct {
	Value R
	Err   error
	// IsLeft means that the call was left out, and nothing was done for it: it is executed alone.
	IsLeft bool
}

// Config says how calls are executed.
type Config[T, R any] struct {
	// Max is the number of calls that are executed together.
	Max int
	// Interval is the shortest time between the beginnings of two batches, and so the longest time that a call waits for others, unless
	// there are more than Max in it, or MaxRunning batches are executed.
	Interval time.Duration
	// MaxRunning is the number of batches that are executed at a time.
	MaxRunning int
	// Few is how many calls of an interval are executed at once, unless more came in the interval before. With 0, only the first one is.
	Few int
	// Together executes calls, and returns the outcome of each. After an error, nothing may have been done or all, and each call is executed
	// alone. The context ends when that of each caller has ended; it has no values.
	Together func(ctx context.Context, calls []T) ([]Outcome[R], error)
	// Alone executes one call.
	Alone func(ctx context.Context, call T) (R, error)
}

// Line is where calls wait. Use New to create one.
type Line[T, R any] struct {
	cfg Config[T, R]

	mu      sync.Mutex
	waiting []*call[T, R]
	running int
	began   time.Time // when the last batch began
	timer   *time.Timer

	counted time.Time // when the interval began in which calls are counted
	calls   int
	isBusy  bool // more than Few came in the interval before
}

// call is a call that waits or is executed.
type call[T, R any] struct {
	ctx     context.Context //nolint:containedctx // of the caller, who waits
	item    T
	begun   chan struct{} // closed when the call is part of a batch
	ended   chan struct{} // closed when outcome is set
	outcome Outcome[R]
}

// New returns a line without calls.
func New[T, R any](cfg Config[T, R]) *Line[T, R] { return &Line[T, R]{cfg: cfg} }

// Do executes a call, and returns when that has ended, so that nothing is done for a caller who has gone. A caller whose context ends
// before the call has begun leaves at once.
func (l *Line[T, R]) Do(ctx context.Context, item T) (R, error) {
	c := &call[T, R]{ctx: ctx, item: item, begun: make(chan struct{}), ended: make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, c)
	l.countLocked(time.Now())
	l.beginLocked()
	l.mu.Unlock()
	select {
	case <-c.begun:
	case <-ctx.Done():
		if l.leave(c) {
			var none R
			return none, context.Cause(ctx)
		}
	}
	<-c.ended
	if c.outcome.IsLeft {
		return l.cfg.Alone(ctx, item)
	}
	return c.outcome.Value, c.outcome.Err
}

// leave removes a call that has not begun, and reports whether it did.
func (l *Line[T, R]) leave(c *call[T, R]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == c {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// countLocked counts a call.
func (l *Line[T, R]) countLocked(now time.Time) {
	if passed := now.Sub(l.counted); passed >= l.cfg.Interval {
		l.isBusy = l.calls > l.cfg.Few && passed < 2*l.cfg.Interval
		l.counted, l.calls = now, 0
	}
	l.calls++
}

// areFewLocked reports whether calls need not wait for others.
func (l *Line[T, R]) areFewLocked() bool { return !l.isBusy && l.calls <= l.cfg.Few }

// beginLocked begins the next batch, now or when it is due. Batches that end, and timers, call it again.
func (l *Line[T, R]) beginLocked() {
	for len(l.waiting) > 0 && l.running < l.cfg.MaxRunning {
		if wait := l.cfg.Interval - time.Since(l.began); wait > 0 && !l.began.IsZero() && len(l.waiting) < l.cfg.Max && !l.areFewLocked() {
			l.scheduleLocked(wait)
			return
		}
		n := min(len(l.waiting), l.cfg.Max)
		calls := l.waiting[:n:n]
		l.waiting = l.waiting[n:]
		l.running++
		l.began = time.Now()
		for _, c := range calls {
			close(c.begun)
		}
		go l.run(calls)
	}
}

func (l *Line[T, R]) scheduleLocked(wait time.Duration) {
	if l.timer != nil {
		return
	}
	l.timer = time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.timer = nil
		l.beginLocked()
	})
}

// run executes a batch.
func (l *Line[T, R]) run(calls []*call[T, R]) {
	for i, outcome := range l.outcomes(calls) {
		calls[i].outcome = outcome
		close(calls[i].ended)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.beginLocked()
}

func (l *Line[T, R]) outcomes(calls []*call[T, R]) []Outcome[R] {
	if len(calls) == 1 {
		return []Outcome[R]{{IsLeft: true}}
	}
	items := make([]T, len(calls))
	for i, c := range calls {
		items[i] = c.item
	}
	ctx, cancel := whileAny(calls)
	defer cancel()
	outcomes, err := l.cfg.Together(ctx, items)
	if err == nil && len(outcomes) == len(calls) {
		return outcomes
	}
	alone := make([]Outcome[R], len(calls))
	for i := range alone {
		alone[i].IsLeft = true
	}
	return alone
}

var errAllLeft = errors.New("all callers have left")

// whileAny returns a context that ends when those of all calls have.
func whileAny[T, R any](calls []*call[T, R]) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var mu sync.Mutex
	left := len(calls)
	stops := make([]func() bool, len(calls))
	for i, c := range calls {
		stops[i] = context.AfterFunc(c.ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			left--
			if left == 0 {
				cancel(errAllLeft)
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}
