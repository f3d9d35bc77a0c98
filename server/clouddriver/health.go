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

// health answers UP as long as the database does. That no agent is connected is
// told and changes nothing: a new installation has none, and one whose agents
// are all away still answers from what is stored.
func (a *api) health(w http.ResponseWriter, r *http.Request, _ pathParams) error {
	ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
	defer cancel()
	view := healthView{Status: "UP", Components: map[string]componentView{
		"db":     {Status: "UP"},
		"agents": {Status: "UP", Details: map[string]any{"connected": a.AgentCount()}},
	}}
	code := http.StatusOK
	if err := a.Store.Ping(ctx); err != nil {
		a.Log.Warn("database does not answer", "error", err)
		code, view.Status = http.StatusServiceUnavailable, "DOWN"
		view.Components["db"] = componentView{Status: "DOWN", Details: map[string]any{"error": "the database does not answer; the server's log tells why"}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(view) // a reader that is gone is no failure of ours
	return nil
}
