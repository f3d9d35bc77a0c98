// Package tracing starts spans of OpenTelemetry below those of a context, and passes traces on from
// server to agent. It exports nothing; package otlp does.
//
// Only the entries of the programs, REST requests at the server and operations at the agent, know a
// provider of tracers. Everything below finds it in the span of its context. Without a provider
// nothing is recorded.
package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name of our instrumentation.
const scope = "github.com/vedette-io/vedette"

// header is the header of W3C's trace context.
const header = "traceparent"

// MaxParentBytes is the longest parent that Parent returns and WithParent accepts.
const MaxParentBytes = 128

// Start starts a span below the one of a context. If that is not sampled, it is returned itself, and
// ending it has no effect.
func Start(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsSampled() {
		return ctx, span
	}
	return StartBy(ctx, span.TracerProvider(), name, attributes...)
}

// StartBy starts a span by a provider, as the entries of the programs do.
func StartBy(ctx context.Context, provider trace.TracerProvider, name string,
	attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return provider.Tracer(scope).Start(ctx, name, trace.WithAttributes(attributes...))
}

// SetFailed marks a span as failed. The description must not contain data of objects.
func SetFailed(span trace.Span, description string) { span.SetStatus(codes.Error, description) }

// Inherit returns a context with the span of another one, for work that outlives a request.
func Inherit(ctx, request context.Context) context.Context {
	span := trace.SpanFromContext(request)
	if !span.SpanContext().IsSampled() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, span)
}

// Parent returns the span of a context for another program; "" if it is not sampled.
func Parent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[header]
}

// WithParent returns a context below a span of another program. It reports whether that is valid and
// sampled.
func WithParent(ctx context.Context, parent string) (context.Context, bool) {
	if parent == "" || len(parent) > MaxParentBytes {
		return ctx, false
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{header: parent})
	return ctx, trace.SpanContextFromContext(ctx).IsSampled()
}

// WithHeader returns a context below the span that a request names, if it names one.
func WithHeader(ctx context.Context, h http.Header) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
}
