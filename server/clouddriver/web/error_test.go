package web_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver/web"
)

// TestStoppingServerAnswersErrors checks that a request that the server does not complete because it stops gets an error. Without one,
// net/http sends an empty response with status 200.
func TestStoppingServerAnswersErrors(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/kubernetes/ops", nil)
	web.Fail(slog.New(slog.DiscardHandler))(w, r, fmt.Errorf("accept a task: %w", ctx.Err()))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "try again") {
		t.Errorf("got %d %s, want 503 that says to try again", w.Code, w.Body)
	}
}
