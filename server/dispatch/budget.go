package dispatch

import (
	"context"
	"errors"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
)

const (
	// operationCopies is how often a document of an operation is in memory while the operation is under way:
	// with its caller, and in the message to the agent.
	operationCopies = 2
	// operationBytes is what an operation takes besides its documents.
	operationBytes = 8 << 10
	// maxWaiting is how many operations of an account wait for memory, because they take some already.
	maxWaiting = 4
)

// newBudget returns the memory of operations under way. One account may hold a quarter, so that accounts
// whose agents do not answer leave room for others.
func newBudget(bytes int64) *fair.Line {
	return fair.New(fair.Config{Capacity: bytes, Share: bytes / 4, Queue: maxWaiting})
}

// costOf returns the memory that an operation takes until it has ended, also after its caller has left.
func costOf(args vedette.Args) int64 { return costOfDocuments(documentsOf(args)) }

func costOfDocuments(bytes int64) int64 { return operationBytes + operationCopies*bytes }

// documentsOf returns the bytes of the documents of an operation.
func documentsOf(args vedette.Args) int64 {
	switch a := args.(type) {
	case vedette.ApplyArgs:
		return int64(len(a.Manifest))
	case vedette.PatchArgs:
		return int64(len(a.Patch))
	case vedette.VersionArgs:
		return int64(len(a.Manifest))
	}
	return 0
}

// admit waits for the memory of an operation, but not longer than an operation waits for its agent.
func (d *Dispatcher) admit(ctx context.Context, op vedette.Operation) (*fair.Grant, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.cfg.AgentWait, fair.ErrTimeout)
	defer cancel()
	ctx, cancelDeadline := context.WithDeadlineCause(ctx, op.Deadline, fair.ErrTimeout)
	defer cancelDeadline()
	return d.budget.Acquire(ctx, string(op.Account), costOf(op.Args))
}

// notAdmittedOutcome returns the outcome of an operation that found no memory.
func (d *Dispatcher) notAdmittedOutcome(op vedette.Operation, err error) vedette.Outcome {
	out := failedOutcome(http.StatusServiceUnavailable, "Busy", "other operations of account "+string(op.Account)+
		", or of all accounts, have used the memory that this server has for operations under way, so nothing was done: try again when some have "+
		"ended, or send smaller manifests. GET /vedette/v1/operations?state=pending lists them")
	if !errors.Is(err, fair.ErrTimeout) && !errors.Is(err, fair.ErrQueueFull) {
		out = vedette.Outcome{State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Canceled",
			Message: "the caller left while the operation waited for memory of this server; nothing was done"}
	}
	out.ID = op.ID
	return out
}
