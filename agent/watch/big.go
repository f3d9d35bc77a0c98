package watch

import (
	"context"
	"io"
	"time"
)

const (
	// bigBuffer is the largest read buffer that needs no turn.
	bigBuffer = 2 << 20
	// mostBig is how many feeds of all accounts may read a bigger object at a time.
	// Each may take 32 MiB for it.
	mostBig = 3
)

// bigTurn is the right to a big read buffer. Objects of more than a megabyte are
// rare, and bounded, but every feed of every account could be sent one at once, or
// the beginning of one. So a feed waits for its turn before it reads more of a big
// object, and the API server must bring that to its end in time. Time that the
// reader takes for itself, as while the sink has no room, does not count.
type bigTurn struct {
	ctx   context.Context // of the attempt
	turns chan struct{}
	limit time.Duration
	body  io.Reader // that the object comes from
	of    *turn     // of the snapshot that reads it; one that has ended for a watch

	left  time.Duration // for the API server, until the turn is given back
	timer *time.Timer   // runs while the API server is waited for
}

func (t *bigTurn) take() error {
	if err := acquire(t.ctx, t.turns); err != nil {
		return err
	}
	t.note(true)
	t.left = t.limit
	t.timer = time.AfterFunc(t.left, func() {
		if b, ok := t.body.(*boundBody); ok {
			b.cancel(&stallError{during: "a big object did not end", limit: t.limit, big: true})
		}
	})
	t.timer.Stop()
	return nil
}

// waiting says that the API server is waited for until the function that it returns
// is called.
func (t *bigTurn) waiting() func() {
	began := time.Now()
	t.timer.Reset(t.left)
	return func() {
		t.timer.Stop()
		t.left -= time.Since(began)
	}
}

// over says that the big object is behind, and reports whether others may want the
// turn. Where not it begins anew.
func (t *bigTurn) over() bool {
	t.left = t.limit
	return len(t.turns) == cap(t.turns)
}

func (t *bigTurn) free() {
	t.timer.Stop()
	t.note(false)
	<-t.turns
}

func (t *bigTurn) note(held bool) {
	if t.of != nil {
		t.of.big = held
	}
}
