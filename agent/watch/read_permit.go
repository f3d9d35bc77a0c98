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

// largeObjectPermit is the right to a large read buffer. Objects of more than a megabyte
// are rare, and bounded, but a hostile API server could send one to every feed at once,
// or the beginning of one. So a feed waits for a permit before it reads more of a large
// object, and the API server must finish the object in time. Time that the reader needs,
// for example while the sink has no room, does not count.
type largeObjectPermit struct {
	ctx      context.Context // of the attempt
	permits  chan struct{}
	limit    time.Duration
	body     io.Reader       // the response that contains the object
	snapshot *snapshotPermit // of the snapshot that reads the object; nil or ended in a watch

	remaining time.Duration // how long the API server may still take
	timer     *time.Timer   // runs while the agent waits for the API server
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

// StartWait notes that the agent waits for the API server until the returned function is
// called.
func (t *largeObjectPermit) StartWait() func() {
	began := time.Now()
	t.timer.Reset(t.remaining)
	return func() {
		t.timer.Stop()
		t.remaining -= time.Since(began)
	}
}

// ObjectDone notes that the large object was read, and reports whether all permits are
// taken, so that others may wait for one. If not, the permit continues with a new limit.
func (t *largeObjectPermit) ObjectDone() bool {
	t.remaining = t.limit
	return len(t.permits) == cap(t.permits)
}

// Release gives the permit back.
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
