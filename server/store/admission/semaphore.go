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
	free     int       // permits; nobody waits while there is one
	high     fairQueue // all of one source
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
func (s *Semaphore) Acquire(ctx context.Context) error { return s.wait(ctx, &s.high, "") }

// AcquireLow is Acquire at low priority. Sources take turns, so that a source with many
// waiters delays only its own.
func (s *Semaphore) AcquireLow(ctx context.Context, source string) error {
	return s.wait(ctx, &s.low, source)
}

// wait queues the caller and waits. A caller that gives up is removed from the queue
// or, if it has been admitted meanwhile, returns its permit.
func (s *Semaphore) wait(ctx context.Context, q *fairQueue, source string) error {
	admitted := s.enqueue(q, source)
	select {
	case <-admitted:
		return nil
	case <-ctx.Done():
		s.cancel(q, source, admitted)
		return ctx.Err()
	}
}

func (s *Semaphore) enqueue(q *fairQueue, source string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	admitted := make(chan struct{})
	if s.free > 0 {
		s.free--
		close(admitted)
		return admitted
	}
	q.push(source, admitted)
	return admitted
}

func (s *Semaphore) cancel(q *fairQueue, source string, admitted chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !q.remove(source, admitted) {
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
	hasHigh, hasLow := !s.high.isEmpty(), !s.low.isEmpty()
	switch {
	case hasLow && (!hasHigh || s.bypassed >= maxBypassed):
		s.bypassed = 0
		close(s.low.pop())
	case hasHigh:
		if hasLow {
			s.bypassed++
		}
		close(s.high.pop())
	default:
		s.free++
	}
}

// fairQueue holds waiters, in order of arrival for each source. Sources take turns.
type fairQueue struct {
	sources []string                   // those with waiters, the next one first
	waiting map[string][]chan struct{} // by source; closed on admission
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
	i := slices.Index(q.waiting[source], admitted)
	if i < 0 {
		return false
	}
	q.waiting[source] = slices.Delete(q.waiting[source], i, i+1)
	if len(q.waiting[source]) == 0 {
		delete(q.waiting, source)
		q.sources = slices.DeleteFunc(q.sources, func(other string) bool { return other == source })
	}
	return true
}
