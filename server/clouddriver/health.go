package clouddriver

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// healthStore tells whether the database can be used.
type healthStore interface {
	Ping(ctx context.Context) error
	WriteProblem() sqldb.WriteProblem
}

type healthView struct {
	Status     string                   `json:"status"`
	Components map[string]componentView `json:"components"`
}

type componentView struct {
	Status  string         `json:"status"`
	Details map[string]any `json:"details,omitempty"`
}

const pingTimeout = 2 * time.Second

// databaseProblem returns why the database cannot be used; empty if it can.
func (a *api) databaseProblem(ctx context.Context) string {
	if err := a.Store.Ping(ctx); err != nil {
		a.Log.WarnContext(ctx, "database does not answer", "error", err)
		return "the database does not answer; see the server's log"
	}
	if problem := a.Store.WriteProblem(); problem != "" {
		return problem.Message() + "; see the server's log"
	}
	return ""
}

// health answers UP if the database responds and takes writes. The number of connected agents has no effect,
// because a new installation has no agents, and a server without agents still answers from the
// store.
func (a *api) health(w http.ResponseWriter, r *http.Request, _ web.Params) error {
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
	if problem := a.databaseProblem(ctx); problem != "" {
		code, view.Status = http.StatusServiceUnavailable, "DOWN"
		view.Components["db"] = componentView{Status: "DOWN", Details: map[string]any{"error": problem}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(view) // an error means that the client is gone
	return nil
}
