package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/vedette-io/vedette/internal/tracing"
	"github.com/vedette-io/vedette/server/middleware"
)

// TestSpansContinueTheCallersTrace checks which requests are recorded, and that they continue the caller's trace.
func TestSpansContinueTheCallersTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, tt := range []struct {
		path, header string
		status       int
		spans        int
		failed       bool
	}{
		{"/kubernetes/ops", "", 200, 2, false},
		{"/kubernetes/ops", parent, 404, 2, false},
		{"/kubernetes/ops", "nonsense", 503, 2, true},
		{"/health/readiness", parent, 200, 0, false},
		{"/ready", "", 503, 0, false},
	} {
		exporter := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
		handler := middleware.Trace(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, span := tracing.Start(r.Context(), "child")
			span.End()
			w.WriteHeader(tt.status)
		}), provider)
		r := httptest.NewRequest(http.MethodPost, tt.path, nil)
		r.Header.Set("traceparent", tt.header)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		got := exporter.GetSpans()
		if len(got) != tt.spans {
			t.Errorf("%+v: got %d spans", tt, len(got))
			continue
		}
		if len(got) == 0 {
			continue
		}
		request := got[1]
		if got[0].Parent.SpanID() != request.SpanContext.SpanID() || (request.Status.Code == codes.Error) != tt.failed ||
			request.Parent.IsValid() != (tt.header == parent) {
			t.Errorf("%+v: got %+v", tt, got)
		}
	}
}
