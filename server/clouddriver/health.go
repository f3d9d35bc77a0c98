package clouddriver

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

type healthView struct {
	Status     string                   `json:"status"`
	Components map[string]componentView `json:"components"`
}

type componentView struct {
	Status  string         `json:"status"`
	Details map[string]any `json:"details,omitempty"`
}

const pingTimeout = 2 * time.Second

// health answers UP if the database responds. The number of connected agents has no effect,
// because a new installation has no agents, and a server without agents still answers from the
// store.
func (a *api) health(w http.ResponseWriter, r *http.Request, _ pathParams) error {
	ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
	defer cancel()
	view := healthView{Status: "UP", Components: map[string]componentView{
		"db":     {Status: "UP"},
		"agents": {Status: "UP", Details: map[string]any{"connected": a.AgentCount()}},
	}}
	if a.ConfigDetails != nil { // it is UP, because the last good configuration is in effect
		view.Components["config"] = componentView{Status: "UP", Details: a.ConfigDetails()}
	}
	code := http.StatusOK
	if err := a.Store.Ping(ctx); err != nil {
		a.Log.WarnContext(ctx, "database does not answer", "error", err)
		code, view.Status = http.StatusServiceUnavailable, "DOWN"
		view.Components["db"] = componentView{Status: "DOWN",
			Details: map[string]any{"error": "the database does not answer; see the server's log"}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(view) // an error means that the client is gone
	return nil
}
