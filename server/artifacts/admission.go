package artifacts

import (
	"context"
	"errors"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
)

// admissionTimeout is the time that a request waits while too many artifacts are being fetched.
const admissionTimeout = 30 * time.Second

// Callers that are not senders of requests.
const (
	listCaller  = "lists"  // all who ask for names and versions
	storeCaller = "stored" // all who read the artifact store
)

// newPlaces returns the line for places. It bounds how many artifacts are fetched at the same time, so that
// memory and disk are bounded however many stages of pipelines start. One caller leaves room for others: the
// servers and readers of some are slow.
func newPlaces(limit int) *fair.Line {
	return fair.New(fair.Config{Capacity: int64(limit), Share: max(1, int64(limit)*3/4), Wait: admissionTimeout})
}

// memoryBytes is what all fetches together may take in a process with enough memory, besides the buffers of connections: for
// clones of Git that are unpacked or archived, and for charts of Helm that are parsed.
const memoryBytes = 256 << 20

// newMemory returns the line for memory. Requests wait in it as long as they have time.
func newMemory(bytes int64) *fair.Line {
	return fair.New(fair.Config{Capacity: bytes, Share: bytes * 3 / 4})
}

// arrivals is the memory of what arrives of one artifact and is not complete yet. It does not wait, because a server
// that stalls would keep what others wait for. It is not safe for concurrent use.
type arrivals struct {
	memory *fair.Line
	caller string
	used   int64
	paid   int64
	grants []*fair.Grant
}

// arrivalPart is how much of an artifact's arrival is free, and how much is paid for at once.
const arrivalPart = 4 << 20

// pay takes memory for bytes more.
func (a *arrivals) pay(bytes int) error {
	for a.used += int64(bytes); a.used > arrivalPart+a.paid; a.paid += arrivalPart {
		grant := a.memory.TryAcquire(a.caller, arrivalPart)
		if grant == nil {
			return vedette.Errorf(vedette.Unavailable, "the index is long, and other artifacts use the memory for it: retry later")
		}
		a.grants = append(a.grants, grant)
	}
	return nil
}

func (a *arrivals) release() {
	for _, grant := range a.grants {
		grant.Release()
	}
	a.grants = nil
}

// diskBytes is what all clones together may take on disk, or three times artifacts.limits.maxBytes if that is more:
// what is received of a repository is there twice while it is unpacked, with its index.
const diskBytes = 4 << 30

// diskTimeout is the time that a clone waits for disk while it is received.
const diskTimeout = 30 * time.Second

func newDisk(maxBytes int64) *fair.Line {
	capacity := max(diskBytes, 3*maxBytes)
	return fair.New(fair.Config{Capacity: capacity, Share: capacity * 3 / 4, Wait: diskTimeout})
}

// admit waits until there is room for one more artifact of a caller.
func (a *Accounts) admit(ctx context.Context, caller string) (*fair.Grant, error) {
	grant, err := a.places.Acquire(ctx, caller, 1)
	if errors.Is(err, fair.ErrTimeout) {
		return nil, vedette.Errorf(vedette.Unavailable, "too many artifacts are being fetched, and none was complete within %s: retry, "+
			"or raise artifacts.limits.maxConcurrent", admissionTimeout)
	}
	return grant, err
}
