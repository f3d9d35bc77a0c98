package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/rest"
)

// Agent is a connected agent.
type Agent struct {
	ID            vedette.AgentID
	Version       string
	Hostname      string
	ZoneID        string
	Replicas      int              // of the workload of the agent's pod, when the agent started; 0 if unknown
	Server        vedette.ServerID // the server that it is connected to
	Connected     time.Time
	LastHeartbeat time.Time
	Accounts      []AgentAccount
	Message       string // what is wrong with the agent itself; empty for nothing
	Config        AgentConfig
	Conditions    []vedette.Condition // of the agent itself
}

// AgentConfig says which configuration an agent uses. The zero value is for agents that do not say.
type AgentConfig struct {
	Since   time.Time // when it took effect
	Current bool      // whether all that the agent's files contain is in effect
	Reason  string    // one word
	Message string
}

// AgentAccount is an account that an agent registered.
type AgentAccount struct {
	Name    vedette.AccountName
	Role    Role
	Message string // why the agent cannot report it; empty if it can
	Notice  string // what is wrong with the registration; also part of Message
	// Conflict is the agent's cluster if the agent was refused because another cluster has the name.
	Conflict *vedette.Cluster
	// ErrorKind is the kind of what the agent reports in Message; empty if it reports nothing
	ErrorKind vedette.ErrorKind
	// Stalled reports whether changes that the agent has sent wait for the database; Message then says
	// why, unless it says something else.
	Stalled    bool
	Conditions []vedette.Condition
}

// Role is the role of an agent for an account. The values are part of the API.
type Role string

// Roles of agents.
const (
	Cacher  Role = "cacher"  // reports the account
	Standby Role = "standby" // waits while another agent reports the account
	Refused Role = "refused" // is rejected; the message gives the reason
	// Reaching means that the agent cannot reach the account's cluster. The message gives
	// the reason.
	Reaching Role = "reaching"
)

type agentView struct {
	ID            vedette.AgentID    `json:"id"`
	Version       string             `json:"version"`
	Hostname      string             `json:"hostname,omitempty"`
	ZoneID        string             `json:"zoneId,omitempty"`
	Replicas      int                `json:"replicas,omitempty"`
	Server        vedette.ServerID   `json:"server"`
	Connected     timestamp          `json:"connected"`
	LastHeartbeat timestamp          `json:"lastPulse"`
	Accounts      []agentAccountView `json:"accounts"`
	Message       string             `json:"message,omitempty"`
	Conditions    []conditionView    `json:"conditions,omitempty"`
}

// conditionView is a condition as objects of Kubernetes have them.
type conditionView struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"` // True or False
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   timestamp `json:"since"`
	// LastTransitionTime is Since, under the name that objects of Kubernetes have for it.
	LastTransitionTime timestamp `json:"lastTransitionTime"`
}

func newConditionView(c vedette.Condition) conditionView {
	v := conditionView{Type: c.Type, Status: "False", Reason: c.Reason, Message: c.Message, Since: timestamp(c.Since),
		LastTransitionTime: timestamp(c.Since)}
	if c.Holds {
		v.Status = "True"
	}
	return v
}

// cursor is the place of an agent in the order of all agents. An ID alone is not enough, because
// agents may share one by mistake.
func (v agentView) cursor() []string {
	return []string{string(v.ID), time.Time(v.Connected).UTC().Format("2006-01-02T15:04:05.000000000Z")}
}

type agentAccountView struct {
	Name    vedette.AccountName `json:"name"`
	Role    Role                `json:"role"`
	Message string              `json:"message,omitempty"`
}

// agentListView says also of which servers it has no agents.
type agentListView struct {
	listView[agentView]

	Warnings []string `json:"warnings,omitempty"`
}

func (a *api) listAgents(w http.ResponseWriter, r *http.Request) error {
	values, err := parameters.Parse(r, "account", "limit", "cursor")
	if err != nil {
		return err
	}
	limit, after, err := parameters.Paging(values, 2)
	if err != nil {
		return err
	}
	patterns, err := parameters.Accounts(values)
	if err != nil {
		return err
	}
	list := agentListView{listView: listView[agentView]{Items: []agentView{}}}
	agents, silent := a.Fleet.Agents(r.Context())
	for _, server := range silent {
		list.Warnings = append(list.Warnings, "server "+string(server)+" does not answer, so the agents that are connected to it are missing")
	}
	for _, agent := range agents {
		v := newAgentView(agent)
		if !patterns.SelectAll() && !v.serves(patterns) {
			continue
		}
		list.Total++
		switch {
		case after != nil && slices.Compare(v.cursor(), after) <= 0: // of an earlier page
		case len(list.Items) < limit:
			list.Items = append(list.Items, v)
		default:
			list.Cursor = parameters.NewCursor(list.Items[limit-1].cursor()...)
		}
	}
	if list.Total == 0 && len(silent) == 0 {
		if err := a.checkAccounts(r, patterns); err != nil {
			return err
		}
	}
	return rest.WriteJSON(w, r, list)
}

func newAgentView(a Agent) agentView {
	v := agentView{ID: a.ID, Version: a.Version, Hostname: a.Hostname, ZoneID: a.ZoneID, Replicas: a.Replicas, Server: a.Server,
		Connected: timestamp(a.Connected), LastHeartbeat: timestamp(a.LastHeartbeat), Message: a.Message,
		Accounts: make([]agentAccountView, len(a.Accounts))}
	for i, account := range a.Accounts {
		v.Accounts[i] = agentAccountView{Name: account.Name, Role: account.Role, Message: account.Message}
	}
	if a.Config != (AgentConfig{}) {
		v.Conditions = append(v.Conditions, a.Config.condition())
	}
	for _, c := range a.Conditions {
		v.Conditions = append(v.Conditions, newConditionView(c))
	}
	return v
}

// condition returns whether the agent uses all that its files contain.
func (c AgentConfig) condition() conditionView {
	return newConditionView(vedette.Condition{Type: "ConfigCurrent", Holds: c.Current, Reason: c.Reason, Message: c.Message, Since: c.Since})
}

func (v agentView) serves(patterns parameters.Patterns) bool {
	for _, a := range v.Accounts {
		if patterns.Match(a.Name) {
			return true
		}
	}
	return false
}
