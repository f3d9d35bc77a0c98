package operate

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/vedette-io/vedette/agent/kube"
)

// sendFunc sends one request: Do or Stream of a cluster.
type sendFunc func(context.Context, kube.Request) (*http.Response, error)

// logged sends a request and logs it. The line has no query, body or response, because these can
// hold the data of a Secret.
func (r *run) logged(ctx context.Context, send sendFunc, req kube.Request) (*http.Response, error) {
	started := time.Now()
	resp, err := send(ctx, req)
	status := 0 // no response
	if err == nil {
		status = resp.StatusCode
	}
	r.operator.cfg.Log.DebugContext(ctx, "request to the API server", "method", cmp.Or(req.Method, http.MethodGet), "path", req.Path,
		"status", status, "dryRun", r.dryRun, "duration", time.Since(started), "error", err)
	return resp, err
}
