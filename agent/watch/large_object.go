package watch

import (
	"context"
	"io"
	"time"

	"github.com/vedette-io/vedette/agent/kube"
)

// maxLargeObjects is how many feeds of all accounts may read an object into a buffer
// of more than 2 MiB at a time. Each such buffer may take 32 MiB.
const maxLargeObjects = 3

// largeObjectPermit is the right to a big read buffer. Objects of more than a megabyte are
// rare, and bounded, but every feed of every account could be sent one at once, or
// the beginning of one. So a feed waits for its turn before it reads more of a big
// object, and the API server must bring that to its end in time. Time that the
// reader takes for itself, as while the sink has no room, does not count.
type largeObjectPermit struct {
	ctx      context.Context // of the attempt
	permits  chan struct{}
	limit    time.Duration
	body     io.Reader       // that the object comes from
	snapshot *snapshotPermit // of the snapshot that reads it; one that has ended for a watch

	remaining time.Duration // for the API server, until the turn is given back
	timer     *time.Timer   // runs while the API server is waited for
}

// canceler is a response body whose request can be canceled.
type canceler interface {
	Cancel(*kube.StallError)
}

// Acquire waits for the permit.
func (t *largeObjectPermit) Acquire() error {
	if err := acquirePermit(t.ctx, t.permits); err != nil {
		return err
	}
	t.setHeld(true)
	t.remaining = t.limit
	t.timer = time.AfterFunc(t.remaining, func() {
		if b, ok := t.body.(canceler); ok {
			b.Cancel(&kube.StallError{Phase: "a large object did not end", Limit: t.limit, LargeObject: true})
		}
	})
	t.timer.Stop()
	return nil
}

// StartWait says that the API server is waited for until the function that it returns
// is called.
func (t *largeObjectPermit) StartWait() func() {
	began := time.Now()
	t.timer.Reset(t.remaining)
	return func() {
		t.timer.Stop()
		t.remaining -= time.Since(began)
	}
}

// ObjectDone says that the big object is behind, and reports whether others may want the
// turn. Where not it begins anew.
func (t *largeObjectPermit) ObjectDone() bool {
	t.remaining = t.limit
	return len(t.permits) == cap(t.permits)
}

func (t *largeObjectPermit) Release() {
	t.timer.Stop()
	t.setHeld(false)
	<-t.permits
}

func (t *largeObjectPermit) setHeld(held bool) {
	if t.snapshot != nil {
		t.snapshot.holdsLarge = held
	}
}
