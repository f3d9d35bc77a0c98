package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestStoppingServerAnswersErrors checks that a request that the server does not complete because it stops gets an error. Without one,
// net/http sends an empty response with status 200.
func TestStoppingServerAnswersErrors(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w := httptest.NewRecorder()
	(&api{}).handleErrors(func(http.ResponseWriter, *http.Request) error {
		return fmt.Errorf("accept an operation: %w", ctx.Err())
	})(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/vedette/operations", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "try again") {
		t.Errorf("got %d %s, want 503 that says to try again", w.Code, w.Body)
	}
}
