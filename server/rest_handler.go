package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// streamBytes bounds the streams of changes, of which each takes 512 KiB while it
// waits. A stream lasts, so that who finds no room is told so soon.
const streamBytes = 128 << 20

// newRESTHandler are all that readers can ask for.
func (s *Server) newRESTHandler(st *store.Store, hub *ingest.Hub, assignments *assignment.Registry, agentServer *agentserver.Server, dispatcher *dispatch.Dispatcher, tasks *task.Tasks) (http.Handler, error) {
	authority, err := authorize.New(authorize.Config{Fiat: s.cfg.Fiat, Log: s.log,
		Properties: func(ctx context.Context, account vedette.AccountName) (vedette.Properties, error) {
			row, err := st.Account(ctx, account)
			return row.Properties, err
		}})
	if err != nil {
		return nil, err
	}
	readLimiter := readlimit.New(readlimit.Config{Bytes: s.cfg.ReadBytes})
	mux := http.NewServeMux()
	mux.Handle("/vedette/v1/", api.New(api.Config{
		ReadLimiter: readLimiter, StreamLimiter: readlimit.NewUniform(readlimit.Config{Bytes: streamBytes, Wait: time.Second}),
		Store: st, Hub: hub, Fleet: fleet{assignments, s.cfg.ID}, Dispatch: dispatcher, Log: s.log, Version: s.cfg.Version,
		StaleAfter: 4 * s.cfg.AgentServer.HeartbeatInterval(), Authorizer: authority,
	}))
	cfg := s.cfg.Clouddriver
	cfg.ReadLimiter = readLimiter
	cfg.Store, cfg.AgentCount, cfg.Log, cfg.Authorizer, cfg.Dispatch, cfg.Tasks = st, agentServer.Agents, s.log, authority, dispatcher, tasks
	cfg.Connected = func(account vedette.AccountName) bool {
		_, live := assignments.Freshness(account)
		return live
	}
	clouddriverHandler := clouddriver.New(cfg)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A ServeMux redirects paths with two slashes, which Orca sends for
		// cluster-scoped objects, so only our own paths go through one.
		if strings.HasPrefix(r.URL.Path, "/vedette/v1/") {
			mux.ServeHTTP(w, r)
			return
		}
		clouddriverHandler.ServeHTTP(w, r)
	}), nil
}

// fleet shows the roster as the API has it.
type fleet struct {
	assignments *assignment.Registry
	server      vedette.ServerID
}

// Agents implements what the API asks for.
func (f fleet) Agents() []api.Agent {
	var agents []api.Agent
	for _, m := range f.assignments.Members() {
		a := api.Agent{ID: m.ID, Version: m.Version, Hostname: m.Hostname, ZoneID: m.ZoneID, Server: f.server, Connected: m.Connected, LastHeartbeat: m.Freshness()}
		for _, role := range m.Roles() {
			a.Accounts = append(a.Accounts, api.AgentAccount{Name: role.Account, Role: api.Role(role.Role), Message: role.Message, Notice: role.Notice})
		}
		slices.SortFunc(a.Accounts, func(x, y api.AgentAccount) int { return strings.Compare(string(x.Name), string(y.Name)) })
		agents = append(agents, a)
	}
	slices.SortFunc(agents, func(x, y api.Agent) int { return strings.Compare(string(x.ID), string(y.ID)) })
	return agents
}

// Freshness implements what the API asks for.
func (f fleet) Freshness(account vedette.AccountName) (time.Time, bool) {
	return f.assignments.Freshness(account)
}
