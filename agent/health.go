package agent

import (
	"encoding/json"
	"log/slog"
	"net/http"
)

// Handler serves GET /health: 200 while the agent is connected to its server,
// 503 with the reason while it is not. Accounts whose clusters can't be reached
// are told of and change nothing: another replica could do no better.
func Handler(a *Agent, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		status := a.Status()
		answer := struct {
			Health string `json:"status"`
			Status
		}{"UP", status}
		w.Header().Set("Content-Type", "application/json")
		if status.Error != "" {
			answer.Health = "DOWN"
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			log.Debug("answer not sent", "error", err)
		}
	})
	return mux
}
