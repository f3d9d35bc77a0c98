package middleware

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/internal/tracing"
)

// Trace records a span for each request, below that of the caller if it sends a traceparent. Probes
// are not recorded.
func Trace(next http.Handler, provider trace.TracerProvider) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ready" || strings.HasPrefix(r.URL.Path, "/health") {
			next.ServeHTTP(w, r)
			return
		}
		ctx, span := tracing.StartBy(tracing.WithHeader(r.Context(), r.Header), provider, r.Method+" REST",
			attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path),
			attribute.String("vedette.request", requestid.Of(r.Context())))
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		defer func() { // also if the handler panics to close the connection
			span.SetAttributes(attribute.Int("http.response.status_code", recorder.status))
			if recorder.status >= http.StatusInternalServerError {
				tracing.SetFailed(span, http.StatusText(recorder.status))
			}
			span.End()
		}()
		next.ServeHTTP(recorder, r.WithContext(ctx))
	})
}
