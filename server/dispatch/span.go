package dispatch

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/tracing"
)

// startSpan starts the span of an operation, from its acceptance to its end.
func startSpan(ctx context.Context, op vedette.Operation) (context.Context, trace.Span) {
	return tracing.Start(ctx, "operation "+string(verbOf(op)), attribute.String("vedette.operation", string(op.ID)),
		attribute.String("vedette.account", string(op.Account)), attribute.String("vedette.origin", op.Origin))
}

// endSpan ends the span with the outcome. Messages of clusters are left out, because they can be long
// and quote what was sent.
func (f *inflight) endSpan(out vedette.Outcome) {
	if last := f.lastDelivery(); last != nil {
		f.span.SetAttributes(attribute.String("vedette.agent", string(last.Agent.ID)))
	}
	f.span.SetAttributes(attribute.String("vedette.state", string(out.State)), attribute.Int("vedette.status", out.Status))
	if out.State != vedette.Done {
		tracing.SetFailed(f.span, out.Reason)
	}
	f.span.End()
}
