package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/server/store/lease"
)

// finish makes the written objects readable and records the end. A caller that receives
// done or failed must find the same in the history, even if the server is killed right
// after. It does not wait for the record of a lost operation, because a killed server's
// operations are recorded as lost anyway.
func (d *Dispatcher) finish(f *inflight, out vedette.Outcome) vedette.Outcome {
	out.ID = f.op.ID
	began := time.Now()
	ctx := requestid.With(context.Background(), f.op.RequestID)
	d.log.DebugContext(ctx, "operation ended", "operation", f.op.ID, "account", f.op.Account, "state", out.State, "status", out.Status,
		"duration", time.Since(f.accepted))
	defer func() { f.endSpan(out) }()
	out.Changes = boundChanges(out.Changes)
	out.Undoes = d.recorder.findUndone(ctx, f, out)
	f.setKnownVersion(&out)
	row := d.recorder.finalRow(f, out)
	ended, isReadable := false, true
	if !f.isRelayed || out.Awaited != nil || out.Absent != nil { // if the other server has failed
		ended, isReadable = d.writeThrough(ctx, f, &out, &row)
	}
	if ended {
		return out
	}
	recorded := d.recorder.recordEnd(row)
	f.recorded = recorded
	if f.op.Reads() || out.State == vedette.Lost {
		return out
	}
	// A process that stood still meanwhile has no time left, and the record would not be waited for.
	timeout := time.NewTimer(max(maxWriteWait-time.Since(began), maxWriteWait-maxWriteThroughWait))
	defer timeout.Stop()
	select {
	case <-recorded:
		if isReadable {
			return out
		}
	case <-timeout.C:
	}
	if d.hasLostLease(f) {
		return unstoredOutcome(out)
	}
	return out
}

// hasLostLease reports whether this server has certainly lost its lease of the database, and so never stores what it knows of a change.
func (d *Dispatcher) hasLostLease(f *inflight) bool {
	if d.lease == nil || !f.op.Changes() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxWriteWait/4)
	defer cancel()
	return errors.Is(d.lease(ctx), lease.ErrLost)
}

// unstoredOutcome is the outcome of an operation that has ended, at a server that can neither record that nor make readable what was
// changed.
func unstoredOutcome(out vedette.Outcome) vedette.Outcome {
	return vedette.Outcome{ID: out.ID, State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Lost", Warnings: out.Warnings,
		Message: fmt.Sprintf("the agent has answered that the operation is %s, but this server could not store it: others have taken over its accounts, because it stood still or was cut "+
			"off from the database. Ask another server for the operation: GET /vedette/v1/operations/%s", out.State, out.ID)}
}
