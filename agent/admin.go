package agent

import (
	"net/http"
	"runtime"
	"time"

	"github.com/vedette-io/vedette/agent/executor"
	"github.com/vedette-io/vedette/internal/admin"
)

// handleAdmin adds the paths for operators, which the guard protects. Lists have the parameters limit
// and offset, and the header X-Total-Count.
//
//	GET /ready                    200 or 503; only trusted callers see the reasons
//	GET /version                  of the agent
//	GET /accounts                 filters Config.Name, Config.Dynamic and State.Name
//	GET /accounts/{name}/version  of the account's cluster
//	GET /operations               what runs now; filter account
//	GET /watches                  filters account and state
func (a *Agent) handleAdmin(mux *http.ServeMux) {
	mux.HandleFunc("GET /ready", a.getReady)
	for path, handle := range map[string]http.HandlerFunc{
		"/version": a.getVersion, "/accounts": a.listAccounts, "/accounts/{name}/version": a.getClusterVersion,
		"/operations": a.listOperations, "/watches": a.listWatches,
	} {
		mux.Handle("GET "+path, a.cfg.Admin.Require(handle))
	}
}

type readyView struct {
	Ready bool `json:"ready"`
	// Reasons are why the agent is not ready. Warnings are errors of accounts, which do not affect it.
	// Only trusted callers see them.
	Reasons  []string `json:"reasons,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func (a *Agent) getReady(w http.ResponseWriter, r *http.Request) {
	status := a.Status()
	view, code := readyView{Ready: status.Error == ""}, http.StatusOK
	if !view.Ready {
		code = http.StatusServiceUnavailable
	}
	if a.cfg.Admin.Trusts(r) {
		view.addReasons(status)
	}
	admin.WriteJSON(w, code, view)
}

func (v *readyView) addReasons(s Status) {
	if s.Error != "" {
		v.Reasons = append(v.Reasons, "not connected to the server: "+s.Error)
	}
	if s.Config != nil && s.Config.Error != "" {
		v.Warnings = append(v.Warnings, "the configuration of "+s.Config.Since.UTC().Format(time.RFC3339)+" stays in effect: "+s.Config.Error)
	}
	for _, account := range s.Accounts {
		if account.Error != "" {
			v.Warnings = append(v.Warnings, "account "+string(account.Name)+" is "+account.State+": "+account.Error)
		}
	}
}

func (a *Agent) getVersion(w http.ResponseWriter, _ *http.Request) {
	admin.WriteJSON(w, http.StatusOK, map[string]string{"version": a.cfg.Uplink.Version, "agentId": string(a.cfg.Uplink.Agent),
		"goVersion": runtime.Version()})
}

func (a *Agent) listOperations(w http.ResponseWriter, r *http.Request) {
	q, err := admin.ParseQuery(r.URL.Query(), "account")
	if err != nil {
		admin.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	var matching []executor.RunningOperation
	for _, op := range a.executor.RunningOperations() {
		if q.Matches("account", string(op.Account)) {
			matching = append(matching, op)
		}
	}
	admin.WriteList(w, q, matching)
}
