package request

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/internal/tracing"
)

// sendFunc sends one request: Do or Stream of a cluster.
type sendFunc func(context.Context, kube.Request) (*http.Response, error)

// logged sends a request, logs it and records its span. Neither has its query, body or response,
// because these can hold the data of a Secret.
func (s *Sender) logged(ctx context.Context, send sendFunc, req kube.Request) (*http.Response, error) {
	method, started := cmp.Or(req.Method, http.MethodGet), time.Now()
	ctx, span := tracing.Start(ctx, method+" API server",
		attribute.String("http.request.method", method), attribute.String("url.path", req.Path))
	defer span.End() // when the response begins; it is read later
	resp, err := send(ctx, req)
	status := 0 // no response
	if err == nil {
		status = resp.StatusCode
	}
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status < 200 || status >= 400 {
		tracing.SetFailed(span, http.StatusText(status))
	}
	s.cfg.Log.DebugContext(ctx, "request to the API server", "method", method, "path", req.Path, "status", status,
		"dryRun", s.dryRun, "duration", time.Since(started), "error", err)
	return resp, err
}
