package dispatch

import (
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/dispatch/lifecycle"
)

// inflight is one operation that is being executed.
type inflight struct {
	op       vedette.Operation
	target   string // a short description of the object, for the history
	object   objectName
	accepted time.Time
	life     *lifecycle.Operation // nil until it is recorded
	known    knownObject
	span     trace.Span // of the trace of the request that caused it
	// isRelayed is true if another server has relayed the outcome, and so has written it through.
	isRelayed bool
	recorded  <-chan struct{} // closed when the end is in the history; nil if it was recorded before the operation ended
}

// awaitRecord waits until the end is in the history, or the database has had its time.
func (f *inflight) awaitRecord() {
	if f.recorded == nil {
		return
	}
	timeout := time.NewTimer(maxWriteWait)
	defer timeout.Stop()
	select {
	case <-f.recorded:
	case <-timeout.C:
	}
}

// lastDelivery returns the last sending of the operation; nil if there was none.
func (f *inflight) lastDelivery() *lifecycle.Delivery {
	if f.life == nil {
		return nil
	}
	return f.life.LastDelivery()
}

// EncodingFailed returns the outcome of an operation that the protocol cannot express.
// The agent has not received it.
func EncodingFailed(id vedette.OperationID, err error) vedette.Outcome {
	out := failedOutcome(http.StatusInternalServerError, "InternalError", err.Error())
	if vedette.KindOf(err) == vedette.Invalid {
		out = failedOutcome(http.StatusBadRequest, "BadRequest", err.Error())
	}
	out.ID = id
	return out
}

func failedOutcome(status int, reason, message string) vedette.Outcome {
	return lifecycle.Failed(status, reason, message)
}
