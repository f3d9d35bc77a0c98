package uplink

import (
	"context"
	"time"

	"github.com/vedette-io/vedette/agent/outbox"
)

const (
	// sendInterval is how long after a small batch the next one is sent. A batch costs both sides
	// about the same processor time whether it has one change or ten: the agent flushes, sends, and
	// receives an acknowledgement, and the server commits. An agent of hundreds of clusters has a
	// change every few milliseconds, so it sends them together. A change that comes alone is sent
	// at once, and others wait half of the interval on average.
	sendInterval = 4 * time.Millisecond
	// smallBatch is the size in bytes up to which a batch is small. During a first sync there are
	// always enough changes for large batches, which follow each other without a pause.
	smallBatch = 32 << 10
)

// collectChanges waits after a small batch, so that the outbox collects changes for the next one.
func collectChanges(ctx context.Context, sent []outbox.Change) error {
	size := 0
	for i := range sent {
		size += len(sent[i].Record)
	}
	if size > smallBatch {
		return nil
	}
	timer := time.NewTimer(sendInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
