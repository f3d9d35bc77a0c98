package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/gate"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/roster"
	"github.com/vedette-io/vedette/server/store"
)

// views are all that readers can ask for.
func (s *Server) views(st *store.Store, hub *ingest.Hub, seats *roster.Roster, door *gate.Gate) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /health", healthOf(st, door))
	mux.Handle("/vedette/v1/", api.New(api.Config{
		Store: st, Hub: hub, Fleet: fleet{seats, s.cfg.ID}, Log: s.log, Version: s.cfg.Version,
		StaleAfter: 4 * s.cfg.Gate.Interval(),
	}))
	return mux
}

// fleet shows the roster as the API has it.
type fleet struct {
	roster *roster.Roster
	server vedette.ServerID
}

// Agents implements what the API asks for.
func (f fleet) Agents() []api.Agent {
	var agents []api.Agent
	for _, m := range f.roster.Members() {
		a := api.Agent{ID: m.ID, Version: m.Version, Hostname: m.Hostname, ZoneID: m.ZoneID, Server: f.server, Connected: m.Connected, LastPulse: m.Fresh()}
		for _, role := range m.Roles() {
			a.Accounts = append(a.Accounts, api.AgentAccount{Name: role.Account, Role: api.Role(role.Role), Message: role.Message})
		}
		slices.SortFunc(a.Accounts, func(x, y api.AgentAccount) int { return strings.Compare(string(x.Name), string(y.Name)) })
		agents = append(agents, a)
	}
	slices.SortFunc(agents, func(x, y api.Agent) int { return strings.Compare(string(x.ID), string(y.ID)) })
	return agents
}

// Freshness implements what the API asks for.
func (f fleet) Freshness(account vedette.AccountName) (time.Time, bool) {
	return f.roster.Fresh(account)
}

// healthOf answers whether the server can do its work: the database must answer.
func healthOf(st *store.Store, door *gate.Gate) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
		defer cancel()
		status, code := "UP", http.StatusOK
		db := map[string]any{"status": "UP"}
		if err := st.Ping(ctx); err != nil {
			status, code = "DOWN", http.StatusServiceUnavailable
			db = map[string]any{"status": "DOWN", "details": map[string]string{"error": err.Error()}}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "components": map[string]any{
			"db": db, "agents": map[string]any{"status": "UP", "details": map[string]int{"connected": door.Agents()}},
		}})
	}
}
