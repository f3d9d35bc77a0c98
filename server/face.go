package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"
)

// face is what REST callers see: the views once the store is there, and before
// that an honest answer.
type face struct {
	log    *slog.Logger
	views  atomic.Pointer[http.Handler]
	reason atomic.Pointer[string]
}

func newFace(log *slog.Logger) *face {
	f := &face{log: log}
	starting := "the server is starting"
	f.reason.Store(&starting)
	return f
}

// show answers with the views from now on.
func (f *face) show(views http.Handler) { f.views.Store(&views) }

// down says why there are no views yet.
func (f *face) down(err error) {
	reason := err.Error()
	f.reason.Store(&reason)
}

// ServeHTTP implements http.Handler.
func (f *face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if views := f.views.Load(); views != nil {
		(*views).ServeHTTP(w, r)
		return
	}
	reason := *f.reason.Load()
	body := map[string]any{"error": map[string]string{"kind": "unavailable", "message": reason}}
	if r.URL.Path == "/health" {
		body = map[string]any{"status": "DOWN", "components": map[string]any{
			"db": map[string]any{"status": "DOWN", "details": map[string]string{"error": reason}},
		}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "5")
	w.WriteHeader(http.StatusServiceUnavailable)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		f.log.Debug("answer not sent", "error", err)
	}
}
