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
	behind    []chan struct{}
	overtaken int // those let in since the last one of behind, while there were some
}

// mostOvertaking is how many are let in before one that waits behind, so that a
// feed goes on while operations never end.
const mostOvertaking = 8

// enter waits for a place before those who entered behind. Whoever enters must
// call leave.
func (t *turnstile) enter(ctx context.Context) error { return t.wait(ctx, &t.first) }

// enterBehind waits for a place that nobody else waits for.
func (t *turnstile) enterBehind(ctx context.Context) error { return t.wait(ctx, &t.behind) }

func (t *turnstile) wait(ctx context.Context, queue *[]chan struct{}) error {
	let := t.queue(queue)
	select {
	case <-let:
		return nil
	case <-ctx.Done():
		t.giveUp(queue, let)
		return ctx.Err()
	}
}

func (t *turnstile) queue(queue *[]chan struct{}) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	let := make(chan struct{})
	if t.free > 0 {
		t.free--
		close(let)
		return let
	}
	*queue = append(*queue, let)
	return let
}

// giveUp takes one that waits from its queue. If it has been let in meanwhile it
// leaves.
func (t *turnstile) giveUp(queue *[]chan struct{}, let <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(*queue, func(other chan struct{}) bool { return other == let }); i >= 0 {
		*queue = slices.Delete(*queue, i, i+1)
		return
	}
	t.leaveLocked()
}

func (t *turnstile) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveLocked()
}

func (t *turnstile) leaveLocked() {
	queue := &t.first
	if len(t.behind) > 0 && (len(t.first) == 0 || t.overtaken >= mostOvertaking) {
		queue, t.overtaken = &t.behind, 0
	} else if len(t.behind) > 0 {
		t.overtaken++
	}
	if len(*queue) == 0 {
		t.free++
		return
	}
	close((*queue)[0])
	*queue = slices.Delete(*queue, 0, 1)
}
