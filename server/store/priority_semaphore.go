package store

import (
	"context"
	"slices"
	"sync"
)

// prioritySemaphore lets so many transactions into the database at once, and short ones
// that somebody waits for before those that bring much. Without it they would wait
// in the pool of connections, whose queue knows no order.
type prioritySemaphore struct {
	mu       sync.Mutex
	free     int             // of places; while there is one nobody waits
	high     []chan struct{} // closed when who waits is let in
	low      fairQueue
	bypassed int // those let in since the last one of behind, while there were some
}

// maxBypassed is how many are let in before one that waits behind, so that a
// feed goes on while operations never end.
const maxBypassed = 8

// acquire waits for a place before those who entered behind. Whoever enters must
// call leave.
func (s *prioritySemaphore) acquire(ctx context.Context) error {
	return s.wait(ctx, func(admitted chan struct{}) { s.high = append(s.high, admitted) }, func(admitted chan struct{}) (waiting bool) {
		s.high, waiting = removeWaiter(s.high, admitted)
		return waiting
	})
}

// acquireLow waits for a place that nobody else waits for. Sources take turns.
func (s *prioritySemaphore) acquireLow(ctx context.Context, source string) error {
	return s.wait(ctx, func(admitted chan struct{}) { s.low.push(source, admitted) }, func(admitted chan struct{}) bool {
		return s.low.remove(source, admitted)
	})
}

// wait queues, and waits until admitted. Whoever gives up is removed from the queue or,
// if it was admitted in the meantime, leaves.
func (s *prioritySemaphore) wait(ctx context.Context, push func(chan struct{}), remove func(chan struct{}) bool) error {
	admitted := s.enqueue(push)
	select {
	case <-admitted:
		return nil
	case <-ctx.Done():
		s.cancel(admitted, remove)
		return ctx.Err()
	}
}

func (s *prioritySemaphore) enqueue(push func(chan struct{})) chan struct{} {
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

func (s *prioritySemaphore) cancel(admitted chan struct{}, remove func(chan struct{}) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !remove(admitted) {
		s.releaseLocked()
	}
}

func (s *prioritySemaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked()
}

func (s *prioritySemaphore) releaseLocked() {
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

// fairQueue holds those who wait, in the order in which they came of each source.
// Sources take turns: one with many that wait delays its own only.
type fairQueue struct {
	sources []string // that have somebody waiting, the next one first
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

// pop removes who is next. The queue must not be empty.
func (q *fairQueue) pop() chan struct{} {
	source := q.sources[0]
	next := q.waiting[source][0]
	q.sources = slices.Delete(q.sources, 0, 1)
	if q.waiting[source] = slices.Delete(q.waiting[source], 0, 1); len(q.waiting[source]) > 0 {
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
