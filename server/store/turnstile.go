package store

import (
	"context"
	"slices"
	"sync"
)

// turnstile lets so many transactions into the database at once, and short ones
// that somebody waits for before those that bring much. Without it they would wait
// in the pool of connections, whose queue knows no order.
type turnstile struct {
	mu        sync.Mutex
	free      int             // of places; while there is one nobody waits
	first     []chan struct{} // closed when who waits is let in
	behind    fairQueue
	overtaken int // those let in since the last one of behind, while there were some
}

// mostOvertaking is how many are let in before one that waits behind, so that a
// feed goes on while operations never end.
const mostOvertaking = 8

// enter waits for a place before those who entered behind. Whoever enters must
// call leave.
func (t *turnstile) enter(ctx context.Context) error {
	return t.wait(ctx, func(admitted chan struct{}) { t.first = append(t.first, admitted) }, func(admitted chan struct{}) (waiting bool) {
		t.first, waiting = without(t.first, admitted)
		return waiting
	})
}

// enterBehind waits for a place that nobody else waits for. Sources take turns.
func (t *turnstile) enterBehind(ctx context.Context, source string) error {
	return t.wait(ctx, func(admitted chan struct{}) { t.behind.push(source, admitted) }, func(admitted chan struct{}) bool {
		return t.behind.remove(source, admitted)
	})
}

// wait queues, and waits until admitted. Whoever gives up is removed from the queue or,
// if it was admitted in the meantime, leaves.
func (t *turnstile) wait(ctx context.Context, push func(chan struct{}), remove func(chan struct{}) bool) error {
	admitted := t.queue(push)
	select {
	case <-admitted:
		return nil
	case <-ctx.Done():
		t.giveUp(admitted, remove)
		return ctx.Err()
	}
}

func (t *turnstile) queue(push func(chan struct{})) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	admitted := make(chan struct{})
	if t.free > 0 {
		t.free--
		close(admitted)
		return admitted
	}
	push(admitted)
	return admitted
}

func (t *turnstile) giveUp(admitted chan struct{}, remove func(chan struct{}) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !remove(admitted) {
		t.leaveLocked()
	}
}

func (t *turnstile) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveLocked()
}

func (t *turnstile) leaveLocked() {
	batches := !t.behind.empty()
	switch {
	case batches && (len(t.first) == 0 || t.overtaken >= mostOvertaking):
		t.overtaken = 0
		close(t.behind.pop())
	case len(t.first) > 0:
		if batches {
			t.overtaken++
		}
		close(t.first[0])
		t.first = slices.Delete(t.first, 0, 1)
	default:
		t.free++
	}
}

// fairQueue holds those who wait, in the order in which they came of each source.
// Sources take turns: one with many that wait delays its own only.
type fairQueue struct {
	sources []string // that have somebody waiting, the next one first
	waiting map[string][]chan struct{}
}

func (q *fairQueue) empty() bool { return len(q.sources) == 0 }

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

// remove reports whether it found somebody to remove.
func (q *fairQueue) remove(source string, admitted chan struct{}) (found bool) {
	q.waiting[source], found = without(q.waiting[source], admitted)
	if len(q.waiting[source]) == 0 {
		delete(q.waiting, source)
		q.sources = slices.DeleteFunc(q.sources, func(other string) bool { return other == source })
	}
	return found
}

func without(waiting []chan struct{}, admitted chan struct{}) (rest []chan struct{}, found bool) {
	i := slices.Index(waiting, admitted)
	if i < 0 {
		return waiting, false
	}
	return slices.Delete(waiting, i, i+1), true
}
