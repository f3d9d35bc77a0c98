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
// object, and the API server must bring that to its end in time.
type bigTurn struct {
	ctx   context.Context // of the attempt
	turns chan struct{}
	limit time.Duration
	body  io.Reader // that the object comes from
	timer *time.Timer
}

func (t *bigTurn) take() error {
	if err := acquire(t.ctx, t.turns); err != nil {
		return err
	}
	t.timer = time.AfterFunc(t.limit, func() {
		if b, ok := t.body.(*boundBody); ok {
			b.cancel(&stallError{during: "a big object did not end", limit: t.limit, big: true})
		}
	})
	return nil
}

func (t *bigTurn) free() {
	t.timer.Stop()
	<-t.turns
}
