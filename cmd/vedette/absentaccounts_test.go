package main

import (
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestRefusedAndUnreachableAccountsAreNamed lists accounts while agents have some that the server has refused or whose clusters they cannot
// reach.
func TestRefusedAndUnreachableAccountsAreNamed(t *testing.T) {
	agent := func(id vedette.AgentID, accounts ...api.AgentAccount) api.Agent {
		return api.Agent{ID: id, Connected: time.Now(), LastHeartbeat: time.Now(), Accounts: accounts}
	}
	refused := api.AgentAccount{Name: "west", Role: api.Refused, Message: "another cluster owns the name"}
	unreachable := api.AgentAccount{Name: "north\x1b[31m", Role: api.Reaching, Message: "read the kubeconfig"}
	cacher := api.AgentAccount{Name: "east", Role: api.Cacher}
	for _, tt := range []struct {
		name    string
		account vedette.AccountName // that the server has; may be empty
		agents  []api.Agent
		args    string
		want    string // the error output
	}{
		{"no agent", "", nil, "", "No resources found.\nNo agent is connected.\n"},
		{"an agent without accounts", "", []api.Agent{agent("a")}, "", "No resources found.\n1 agent connected, but without accounts: see `vedette agents`.\n"},
		{"only refused accounts", "", []api.Agent{agent("a", refused), agent("b", refused, unreachable)}, "",
			"No resources found.\nAgents have 2 accounts that the server does not list (north?[31m and west): `vedette agents` shows why.\n"},
		{"a refused account beside another one", "east", []api.Agent{agent("a", cacher, refused)}, "",
			"Agents have 1 account that the server does not list (west): `vedette agents` shows why.\n"},
		{"one account is asked for", "east", []api.Agent{agent("a", cacher, refused)}, "east", ""},
		{"nothing is wrong", "east", []api.Agent{agent("a", cacher)}, "", ""},
		{"for scripts", "", []api.Agent{agent("a", refused)}, "-o json", ""},
	} {
		w := readtest.New(t)
		if tt.account != "" {
			w.Account(tt.account, "pods")
		}
		w.Fleet.SetAgents(tt.agents...)
		_, errOut, err := runCLI(t.Context(), append([]string{"accounts", "--server", serve(t, w)}, strings.Fields(tt.args)...)...)
		if err != nil || errOut != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, errOut, err, tt.want)
		}
	}
}
