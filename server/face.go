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
	ready  *readiness
	views  atomic.Pointer[http.Handler]
	reason atomic.Pointer[string]
}

func newFace(log *slog.Logger, ready *readiness) *face {
	f := &face{log: log, ready: ready}
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
	if r.URL.Path == livenessPath || r.URL.Path == readinessPath {
		f.probe(w, r)
		return
	}
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
	w.Header().Set("Retry-After", "5")
	f.write(w, http.StatusServiceUnavailable, body)
}

// The paths and the states that Spring Boot has for probes, and with it Clouddriver.
const (
	livenessPath  = "/health/liveness"
	readinessPath = "/health/readiness"

	stateUp           = "UP"
	stateOutOfService = "OUT_OF_SERVICE"
)

// probe answers what decides whether the server is restarted, and whether it is
// sent requests. As long as it can answer it lives: no restart brings a database
// back.
func (f *face) probe(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		f.write(w, http.StatusMethodNotAllowed, map[string]string{"message": r.URL.Path + " is read only"})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	reason := f.ready.reason()
	if r.URL.Path == livenessPath || reason == "" {
		f.write(w, http.StatusOK, map[string]any{"status": stateUp})
		return
	}
	f.write(w, http.StatusServiceUnavailable, map[string]any{"status": stateOutOfService, "components": map[string]any{
		"readinessState": map[string]any{"status": stateOutOfService, "details": map[string]string{"reason": reason}},
	}})
}

func (f *face) write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		f.log.Debug("answer not sent", "error", err)
	}
}
