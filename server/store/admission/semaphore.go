package admission

import (
	"context"
	"slices"
	"sync"
)

// Semaphore limits the number of concurrent transactions, and admits short ones with a waiting
// caller before those that write much. Without it they would wait in the
// pool of connections, which admits in any order. Use NewSemaphore to create one.
type Semaphore struct {
	mu       sync.Mutex
	free     int             // permits; nobody waits while there is one
	high     []chan struct{} // closed on admission
	low      fairQueue
	bypassed int // high waiters admitted since the last low one, while low ones waited
}

// maxBypassed is the number of high waiters that are admitted before a low one, so that
// feeds make progress under a constant load of operations.
const maxBypassed = 8

// NewSemaphore returns a semaphore with that many permits.
func NewSemaphore(permits int) *Semaphore { return &Semaphore{free: permits} }

// Acquire waits for a permit, ahead of all callers of AcquireLow. The caller must call
// Release. The error is that of ctx.
func (s *Semaphore) Acquire(ctx context.Context) error {
	return s.wait(ctx, func(admitted chan struct{}) { s.high = append(s.high, admitted) }, func(admitted chan struct{}) (waiting bool) {
		s.high, waiting = removeWaiter(s.high, admitted)
		return waiting
	})
}

// AcquireLow is Acquire at low priority. Sources take turns, so that a source with many
// waiters delays only its own.
func (s *Semaphore) AcquireLow(ctx context.Context, source string) error {
	return s.wait(ctx, func(admitted chan struct{}) { s.low.push(source, admitted) }, func(admitted chan struct{}) bool {
		return s.low.remove(source, admitted)
	})
}

// wait queues the caller and waits. A caller that gives up is removed from the queue
// or, if it has been admitted meanwhile, returns its permit.
func (s *Semaphore) wait(ctx context.Context, push func(chan struct{}), remove func(chan struct{}) bool) error {
	admitted := s.enqueue(push)
	select {
	case <-admitted:
		return nil
	case <-ctx.Done():
		s.cancel(admitted, remove)
		return ctx.Err()
	}
}

func (s *Semaphore) enqueue(push func(chan struct{})) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	admitted := make(chan struct{})
	if s.free > 0 {
		s.free--
		close(admitted)
		return admitted
	}
	push(admitted)
	return admitted
}

func (s *Semaphore) cancel(admitted chan struct{}, remove func(chan struct{}) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !remove(admitted) {
		s.releaseLocked()
	}
}

// Release returns a permit.
func (s *Semaphore) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked()
}

func (s *Semaphore) releaseLocked() {
	hasLow := !s.low.isEmpty()
	switch {
	case hasLow && (len(s.high) == 0 || s.bypassed >= maxBypassed):
		s.bypassed = 0
		close(s.low.pop())
	case len(s.high) > 0:
		if hasLow {
			s.bypassed++
		}
		close(s.high[0])
		s.high = slices.Delete(s.high, 0, 1)
	default:
		s.free++
	}
}

// fairQueue holds waiters, in order of arrival for each source. Sources take turns.
type fairQueue struct {
	sources []string // those with waiters, the next one first
	waiting map[string][]chan struct{}
}

func (q *fairQueue) isEmpty() bool { return len(q.sources) == 0 }

func (q *fairQueue) push(source string, admitted chan struct{}) {
	if q.waiting == nil {
		q.waiting = map[string][]chan struct{}{}
	}
	if len(q.waiting[source]) == 0 {
		q.sources = append(q.sources, source)
	}
	q.waiting[source] = append(q.waiting[source], admitted)
}

// pop removes the next waiter. The queue must not be empty.
func (q *fairQueue) pop() chan struct{} {
	source := q.sources[0]
	next := q.waiting[source][0]
	q.sources = slices.Delete(q.sources, 0, 1)
	q.waiting[source] = slices.Delete(q.waiting[source], 0, 1)
	if len(q.waiting[source]) > 0 {
		q.sources = append(q.sources, source)
	} else {
		delete(q.waiting, source)
	}
	return next
}

// remove reports whether the waiter was still in the queue.
func (q *fairQueue) remove(source string, admitted chan struct{}) bool {
	rest, found := removeWaiter(q.waiting[source], admitted)
	if !found {
		return false
	}
	if len(rest) > 0 {
		q.waiting[source] = rest
		return true
	}
	delete(q.waiting, source)
	q.sources = slices.DeleteFunc(q.sources, func(other string) bool { return other == source })
	return true
}

func removeWaiter(waiting []chan struct{}, admitted chan struct{}) (rest []chan struct{}, found bool) {
	i := slices.Index(waiting, admitted)
	if i < 0 {
		return waiting, false
	}
	return slices.Delete(waiting, i, i+1), true
}
