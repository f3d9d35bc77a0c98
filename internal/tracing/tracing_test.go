package tracing_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/vedette-io/vedette/internal/tracing"
)

// TestSpansOfTwoPrograms passes a trace on as a server does to an agent, after the request that
// caused it has ended.
func TestSpansOfTwoPrograms(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	ctx, request := tracing.StartBy(t.Context(), provider, "request")
	request.End()
	background, operation := tracing.Start(tracing.Inherit(context.Background(), ctx), "operation", attribute.String("account", "a"))
	parent := tracing.Parent(background)
	agentCtx, ok := tracing.WithParent(context.Background(), parent)
	if !ok {
		t.Fatalf("%q is not accepted", parent)
	}
	_, execution := tracing.StartBy(agentCtx, provider, "execution")
	tracing.SetFailed(execution, "409")
	execution.End()
	operation.End()
	got := spans.GetSpans()
	if len(got) != 3 || got[1].Name != "execution" || got[1].Parent.SpanID() != got[2].SpanContext.SpanID() ||
		got[2].Parent.SpanID() != got[0].SpanContext.SpanID() || got[1].SpanContext.TraceID() != got[0].SpanContext.TraceID() ||
		got[1].Status.Description != "409" {
		t.Errorf("got %+v", got)
	}
}

// TestNothingIsRecordedWithoutSampling checks contexts without a span, and with one that is not
// sampled.
func TestNothingIsRecordedWithoutSampling(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	never := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.NeverSample()))
	unsampled, _ := tracing.StartBy(t.Context(), never, "request")
	for name, ctx := range map[string]context.Context{"no span": t.Context(), "not sampled": unsampled} {
		child, span := tracing.Start(ctx, "child")
		span.End()
		if parent := tracing.Parent(child); parent != "" {
			t.Errorf("%s: got parent %q, want none", name, parent)
		}
		if inherited := tracing.Inherit(context.Background(), ctx); inherited != context.Background() {
			t.Errorf("%s: the span is inherited", name)
		}
	}
	if got := spans.GetSpans(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestParentsOfOthers checks that bad parents are ignored.
func TestParentsOfOthers(t *testing.T) {
	const valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for parent, want := range map[string]bool{
		valid: true, "": false, "x": false, valid[:len(valid)-1]: false,
		strings.TrimSuffix(valid, "01") + "00":                      false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01":   false,
		strings.Repeat("0", tracing.MaxParentBytes+1):               false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-\xff": false,
	} {
		ctx, got := tracing.WithParent(t.Context(), parent)
		if got != want || got && tracing.Parent(ctx) != parent {
			t.Errorf("%q: got %v, want %v", parent, got, want)
		}
	}
	if got := tracing.Parent(tracing.WithHeader(t.Context(), http.Header{"Traceparent": {valid}})); got != valid {
		t.Errorf("got %q of a header, want %q", got, valid)
	}
}

func FuzzWithParent(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Fuzz(func(t *testing.T, parent string) {
		ctx, ok := tracing.WithParent(t.Context(), parent)
		if got := tracing.Parent(ctx); ok != (got != "") {
			t.Errorf("%q: got %v and %q", parent, ok, got)
		}
	})
}
