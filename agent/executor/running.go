package executor

import (
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// RunningOperation describes an operation that has not ended, or a log that is being read. It has no
// arguments, because these may hold a manifest of a Secret.
type RunningOperation struct {
	ID        vedette.OperationID `json:"id"`
	Account   vedette.AccountName `json:"account"`
	Verb      vedette.Verb        `json:"verb,omitempty"` // empty if this agent does not know it
	DryRun    bool                `json:"dryRun,omitempty"`
	Kind      string              `json:"kind,omitempty"` // of the target, as the caller wrote it
	Namespace string              `json:"namespace,omitempty"`
	Name      string              `json:"name,omitempty"`
	RequestID string              `json:"request,omitempty"`
	Received  time.Time           `json:"received"`
	Deadline  time.Time           `json:"deadline,omitzero"`
}

func newRunningOperation(op vedette.Operation, now time.Time) RunningOperation {
	target := vedette.TargetOf(op.Args)
	r := RunningOperation{ID: op.ID, Account: op.Account, DryRun: op.DryRun, Kind: target.Kind, Namespace: target.Namespace, Name: target.Name,
		RequestID: op.RequestID, Received: now, Deadline: op.Deadline}
	if op.Args != nil {
		r.Verb = op.Args.Verb()
	}
	return r
}

// RunningOperations returns the operations that have not ended, and the logs that are being read,
// the oldest first.
func (x *Executor) RunningOperations() []RunningOperation {
	x.mu.Lock()
	defer x.mu.Unlock()
	var running []RunningOperation
	for _, e := range x.entries {
		if !e.isFinished() || e.isStream {
			running = append(running, e.running)
		}
	}
	slices.SortFunc(running, func(a, b RunningOperation) int {
		if order := a.Received.Compare(b.Received); order != 0 {
			return order
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return running
}
