package watch

import (
	"context"
	"io"

	"github.com/vedette-io/vedette/agent/kube"
)

// maxLargeObjects is how many feeds of all accounts may read an object into a buffer
// of more than 2 MiB at a time. Each such buffer may take 32 MiB.
const maxLargeObjects = 3

// largeBuffer is the largest buffer that needs no permit for a large object, in bytes.
const largeBuffer = 2 << 20

// readPermit is the right of a feed to its read buffer. It is a permit for memory, and for buffers of more than 2 MiB also
// one of a few permits for large objects. Those are rare, and bounded, but a hostile API server could send one to
// every feed at once, or the beginning of one. So a feed waits before it reads more of a large object, and
// the API server must finish the object in time. Time that the reader needs, for example while the sink has no
// room, does not count.
type readPermit struct {
	*kube.ReadPermit

	ctx      context.Context // of the attempt
	permits  chan struct{}   // for large objects
	snapshot *snapshotPermit // of the snapshot that reads the object; nil or ended in a watch
	large    bool            // it holds one of permits
}

// newReadPermit returns the permit for the read buffer of a response.
func (f *feed) newReadPermit(ctx context.Context, body io.Reader, snapshot *snapshotPermit) *readPermit {
	limiter := f.w.cfg.Limiter
	return &readPermit{ctx: ctx, permits: limiter.largeObjectPermits, snapshot: snapshot,
		ReadPermit: f.w.c.ReadPermit(ctx, body, f.w.cfg.LargeObjectTimeout)}
}

// Acquire implements jsonstream.Permit.
func (t *readPermit) Acquire(size int) error {
	if err := t.ReadPermit.Acquire(min(size, largeBuffer)); err != nil {
		return err
	}
	if size <= largeBuffer || t.large {
		return nil
	}
	if err := acquirePermit(t.ctx, t.permits); err != nil {
		return err
	}
	t.setLarge(true)
	return nil
}

// ObjectDone implements jsonstream.Permit.
func (t *readPermit) ObjectDone() (giveBack bool) {
	return t.ReadPermit.ObjectDone() || t.large && len(t.permits) == cap(t.permits)
}

// Release implements jsonstream.Permit.
func (t *readPermit) Release(size int) {
	if t.large && size <= largeBuffer {
		t.setLarge(false)
		<-t.permits
	}
	t.ReadPermit.Release(min(size, largeBuffer))
}

func (t *readPermit) setLarge(held bool) {
	t.large = held
	if t.snapshot != nil {
		t.snapshot.holdsLarge = held
	}
}
