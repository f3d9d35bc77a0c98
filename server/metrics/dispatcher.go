package metrics

import (
	"context"
	"time"

	"github.com/vedette-io/vedette"
)

// dispatcher executes operations.
type dispatcher interface {
	Execute(ctx context.Context, op vedette.Operation) vedette.Outcome
}

// Dispatcher executes operations and measures them.
type Dispatcher struct {
	next    dispatcher
	metrics *Metrics
}

// MeasureOperations returns a dispatcher that measures what next executes.
func (m *Metrics) MeasureOperations(next dispatcher) *Dispatcher { return &Dispatcher{next, m} }

// Execute executes an operation.
func (d *Dispatcher) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	running := d.metrics.operationsActive.WithLabelValues()
	running.Inc()
	defer running.Dec()
	start := time.Now()
	out := d.next.Execute(ctx, op)
	d.metrics.operationEnded(op.Args.Verb(), out.State, time.Since(start))
	return out
}

// AwaitEnd waits for an operation that another server has accepted. It returns an error if the next dispatcher cannot.
func (d *Dispatcher) AwaitEnd(ctx context.Context, server vedette.ServerID, id vedette.OperationID) error {
	next, ok := d.next.(interface {
		AwaitEnd(ctx context.Context, server vedette.ServerID, id vedette.OperationID) error
	})
	if !ok {
		return vedette.Errorf(vedette.Unavailable, "operation %s was accepted by server %s, which cannot be asked", id, server)
	}
	return next.AwaitEnd(ctx, server, id)
}
