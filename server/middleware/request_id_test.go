package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/server/middleware"
)

// TestRequestHasOneIDEverywhere checks which id a request gets, and that handler, response and log have the same.
func TestRequestHasOneIDEverywhere(t *testing.T) {
	for _, tt := range []struct {
		name    string
		headers map[string]string
		want    string // "" means a new one
	}{
		{"no header", nil, ""},
		{"the caller's id", map[string]string{"X-Request-Id": "r1", "X-SPINNAKER-EXECUTION-ID": "e1"}, "r1"},
		{"Orca's execution", map[string]string{"X-SPINNAKER-EXECUTION-ID": "e1", "X-SPINNAKER-REQUEST-ID": "g1"}, "e1"},
		{"Gate's request", map[string]string{"X-SPINNAKER-REQUEST-ID": "g1"}, "g1"},
		{"an id that could forge a line", map[string]string{"X-Request-Id": "a level=ERROR", "X-SPINNAKER-EXECUTION-ID": "e1"}, "e1"},
		{"an id that is too long", map[string]string{"X-Request-Id": strings.Repeat("x", requestid.MaxBytes+1)}, ""},
	} {
		for _, level := range []string{"info", "debug"} {
			var out strings.Builder
			log, err := logging.New(logging.Config{Level: level}, &out, nil)
			if err != nil {
				t.Fatal(err)
			}
			var inHandler string
			handler := middleware.RequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inHandler = requestid.Of(r.Context())
				w.WriteHeader(http.StatusTeapot)
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Errorf("%s: the response cannot be flushed: %v", tt.name, err)
				}
			}), log)
			r := httptest.NewRequest(http.MethodGet, "/some/path?secret=x", nil)
			for name, value := range tt.headers {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if inHandler == "" || tt.want != "" && inHandler != tt.want || w.Header().Get("X-Request-Id") != inHandler {
				t.Errorf("%s: got %q in the handler and %q in the response, want %q", tt.name, inHandler, w.Header().Get("X-Request-Id"), tt.want)
			}
			line := out.String()
			if level == "info" && line != "" {
				t.Errorf("%s: got %s at level info, want nothing", tt.name, line)
			}
			if level == "debug" && (!strings.Contains(line, "path=/some/path status=418") || !strings.Contains(line, "request="+inHandler) ||
				strings.Contains(line, "secret")) {
				t.Errorf("%s: got %s", tt.name, line)
			}
		}
	}
}

// TestIDsOfRequestsWithoutOneDiffer checks that two requests never share a new id.
func TestIDsOfRequestsWithoutOneDiffer(t *testing.T) {
	ids := map[string]bool{}
	log, err := logging.New(logging.Config{}, &strings.Builder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	handler := middleware.RequestID(http.NotFoundHandler(), log)
	for range 10 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		ids[w.Header().Get("X-Request-Id")] = true
	}
	if len(ids) != 10 {
		t.Errorf("got %d ids for 10 requests", len(ids))
	}
}
