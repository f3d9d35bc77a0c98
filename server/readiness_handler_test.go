package server

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestConfigIsReadOnly checks who answers requests for the configuration.
func TestConfigIsReadOnly(t *testing.T) {
	config := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "settings") })
	for _, tt := range []struct {
		method string
		config http.Handler
		status int
	}{
		{http.MethodGet, config, http.StatusOK},
		{http.MethodPost, config, http.StatusMethodNotAllowed},
		{http.MethodGet, nil, http.StatusServiceUnavailable}, // as each path that is not known yet
	} {
		h := newReadinessHandler(slog.New(slog.DiscardHandler), nil)
		h.config = tt.config
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, "/config", nil))
		if w.Code != tt.status {
			t.Errorf("%s: got %d %s, want %d", tt.method, w.Code, w.Body, tt.status)
		}
	}
}
