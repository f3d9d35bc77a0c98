package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/server/middleware"
)

// readinessHandler passes requests to the REST handler once the store is open. Before that it
// answers with the reason why the server is not available.
type readinessHandler struct {
	log     *slog.Logger
	ready   *readiness
	version string
	config  http.Handler // serves the configuration; may be nil
	handler atomic.Pointer[http.Handler]
	reason  atomic.Pointer[string]
}

func newReadinessHandler(log *slog.Logger, ready *readiness) *readinessHandler {
	h := &readinessHandler{log: log, ready: ready}
	starting := "the server is starting"
	h.reason.Store(&starting)
	return h
}

// setReady makes handler answer all requests from now on.
func (h *readinessHandler) setReady(handler http.Handler) { h.handler.Store(&handler) }

// setUnavailable sets the reason why the REST handler is not available yet.
func (h *readinessHandler) setUnavailable(err error) {
	reason := err.Error()
	h.reason.Store(&reason)
}

func (h *readinessHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case livenessPath, readinessPath, readyPath, versionPath:
		middleware.SetRoute(r, "GET "+r.URL.Path)
		h.answerRead(w, r, http.HandlerFunc(h.probe))
		return
	case configreload.Path:
		if h.config != nil {
			middleware.SetRoute(r, "GET "+r.URL.Path)
			h.answerRead(w, r, h.config)
			return
		}
	}
	if handler := h.handler.Load(); handler != nil {
		(*handler).ServeHTTP(w, r)
		return
	}
	reason := *h.reason.Load()
	body := map[string]any{"error": map[string]string{"kind": "unavailable", "message": reason}}
	if r.URL.Path == healthPath {
		body = map[string]any{"status": stateDown, "components": map[string]any{
			"db": map[string]any{"status": stateDown, "details": map[string]string{"error": reason}},
		}}
	}
	w.Header().Set("Retry-After", "5")
	h.write(w, http.StatusServiceUnavailable, body)
}

// The paths and states of Spring Boot's probes, which Clouddriver has.
const (
	healthPath    = "/health"
	livenessPath  = "/health/liveness"
	readinessPath = "/health/readiness"

	// The same paths as at agents.
	readyPath   = "/ready"
	versionPath = "/version"

	stateUp           = "UP"
	stateDown         = "DOWN"
	stateOutOfService = "OUT_OF_SERVICE"
)

// answerRead lets a handler answer requests that change nothing.
func (h *readinessHandler) answerRead(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		h.write(w, http.StatusMethodNotAllowed, map[string]string{"message": r.URL.Path + " is read-only"})
		return
	}
	handler.ServeHTTP(w, r)
}

// probe answers liveness and readiness probes, and which version this is. A server that can answer is alive, because
// restarting it would not bring a database back.
func (h *readinessHandler) probe(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	reason := h.ready.reason()
	switch r.URL.Path {
	case versionPath:
		h.write(w, http.StatusOK, map[string]string{"version": h.version})
		return
	case readyPath:
		h.writeReady(w, reason)
		return
	}
	if r.URL.Path == livenessPath || reason == "" {
		h.write(w, http.StatusOK, map[string]any{"status": stateUp})
		return
	}
	h.write(w, http.StatusServiceUnavailable, map[string]any{"status": stateOutOfService, "components": map[string]any{
		"readinessState": map[string]any{"status": stateOutOfService, "details": map[string]string{"reason": reason}},
	}})
}

// writeReady answers like agents do, with all reasons in a list.
func (h *readinessHandler) writeReady(w http.ResponseWriter, reason string) {
	if reason == "" {
		h.write(w, http.StatusOK, map[string]any{"ready": true})
		return
	}
	h.write(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "reasons": []string{reason}})
}

func (h *readinessHandler) write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		h.log.Debug("response not sent", "error", err)
	}
}
