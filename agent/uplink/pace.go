package uplink

import (
	"context"
	"time"

	"github.com/vedette-io/vedette/agent/outbox"
)

const (
	// sendInterval is how long after a small batch the next one is sent, for each live change in it. A
	// batch costs both sides about the same processor time whether it has one change or ten: the agent
	// flushes, sends, and receives an acknowledgement, and the server commits. An agent of hundreds of
	// clusters has a change every few milliseconds, so it sends them together, and the more there are,
	// the longer it collects. A change that comes alone is sent at once.
	sendInterval = 4 * time.Millisecond
	// maxSendInterval is the longest of these pauses. Changes wait half of it on average.
	maxSendInterval = 4 * sendInterval
	// smallBatch is the size in bytes up to which a batch is small. During a first sync there are
	// always enough changes for large batches, which follow each other without a pause.
	smallBatch = 32 << 10
)

// collectChanges waits after a small batch, so that the outbox collects changes for the next one.
func collectChanges(ctx context.Context, sent []outbox.Change) error {
	pause := pauseAfter(sent)
	if pause == 0 {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// pauseAfter returns how long to wait after a batch.
func pauseAfter(sent []outbox.Change) time.Duration {
	size, live := 0, 0
	for i := range sent {
		size += len(sent[i].Record)
		if sent[i].Priority == outbox.Live {
			live++
		}
	}
	if size > smallBatch {
		return 0
	}
	return min(time.Duration(max(live, 1))*sendInterval, maxSendInterval)
}
