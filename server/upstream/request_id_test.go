package upstream

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/server/middleware"
)

// TestRequestIDsArePassedOn checks that the upstream Clouddriver gets the id that is in the log of this
// server: of requests that are passed on, and of those whose answers are merged.
func TestRequestIDsArePassedOn(t *testing.T) {
	w := newWorld(t, nil)
	w.local.answer, w.theirs.answer = answerJSON(http.StatusOK, "[]"), answerJSON(http.StatusOK, "[]")
	server := httptest.NewServer(middleware.RequestID(w.handler, slog.New(slog.DiscardHandler)))
	t.Cleanup(server.Close)
	w.url = server.URL
	for _, path := range []string{"/securityGroups/aws", "/task"} {
		for _, tt := range []struct{ name, header, id, want string }{
			{"of an execution", "X-SPINNAKER-EXECUTION-ID", "01JEXECUTION", "01JEXECUTION"},
			{"of the caller", "X-Request-Id", "r-1", "r-1"},
			{"one that may not be in logs", "X-Request-Id", `a "b"`, ""},
			{"none", "X-Other", "x", ""},
		} {
			response, _ := w.send(t, http.MethodGet, path, "", tt.header, tt.id)
			want := response.Header.Get(requestid.Header)
			if tt.want != "" && want != tt.want || want == "" {
				t.Errorf("%s, %s: got the id %q in the response, want %q", path, tt.name, want, tt.want)
			}
			requests := w.theirs.requests()
			if len(requests) != 1 || len(requests[0].Header.Values(requestid.Header)) != 1 || requests[0].Header.Get(requestid.Header) != want {
				t.Errorf("%s, %s: the upstream Clouddriver got %v, want one request with the id %q", path, tt.name, requests, want)
			}
		}
	}
}
