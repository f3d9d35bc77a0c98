package agent

import (
	"encoding/json"
	"log/slog"
	"net/http"
)

// Handler serves the health of an agent:
//
//	GET /health            200 while the agent is connected to its server, else 503
//	GET /health/readiness  the same
//	GET /health/liveness   200 while the agent's own loops run, whatever the state of its
//	                       server and clusters, because a restart would not help these
//
// Unreachable clusters do not affect readiness, because another replica could not reach
// them either. Only requests that Config.Admin trusts get account names and errors, because
// errors name addresses and quote responses.
//
// The paths for operators are described at handleAdmin.
func Handler(a *Agent, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	ready := func(w http.ResponseWriter, r *http.Request) {
		status := a.Status()
		answer := health{Health: "UP"}
		if status.Error != "" {
			answer.Health = "DOWN"
		}
		if a.cfg.Admin.Trusts(r) {
			answer.Status = &status
		}
		answer.write(w, log)
	}
	mux.HandleFunc("GET /health", ready)
	mux.HandleFunc("GET /health/readiness", ready)
	mux.HandleFunc("GET /health/liveness", func(w http.ResponseWriter, _ *http.Request) {
		answer := health{Health: "UP"}
		if !a.liveness.isAlive() {
			answer.Health = "DOWN"
		}
		answer.write(w, log)
	})
	a.handleAdmin(mux)
	return mux
}

// health is the body of all responses.
type health struct {
	Health  string `json:"status"`
	*Status        // nil if the caller is not trusted
}

func (h health) write(w http.ResponseWriter, log *slog.Logger) {
	w.Header().Set("Content-Type", "application/json")
	if h.Health != "UP" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if err := json.NewEncoder(w).Encode(h); err != nil {
		log.Debug("cannot send the health response", "error", err)
	}
}
