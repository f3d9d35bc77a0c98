package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/coherence"
)

// fleet returns api's view of the agents.
func (v *services) fleet() fleet {
	f := fleet{assignments: v.assignments, server: v.server, others: v.coherence}
	if v.peers != nil {
		f.remote = v.peers.agents
	}
	return f
}

// fleet implements api's view of the connected agents.
type fleet struct {
	assignments *assigner.Registry
	server      vedette.ServerID
	others      *coherence.Coherence // nil if no other server shares the database
	remote      *peerAgents          // the same
}

// Agents returns the connected agents, ordered by ID and by the time since when they are connected.
func (f fleet) Agents(ctx context.Context) (agents []api.Agent, silent []vedette.ServerID) {
	agents = f.localAgents()
	if f.remote != nil {
		others := f.remote.current(ctx)
		agents, silent = slices.Concat(agents, others.agents), others.silent
	}
	return sortAgents(agents), silent
}

func (f fleet) localAgents() (agents []api.Agent) {
	for _, m := range f.assignments.Members() {
		a := f.newAgent(m)
		for _, role := range m.Roles() {
			a.Accounts = append(a.Accounts, newAgentAccount(role))
		}
		slices.SortFunc(a.Accounts, func(x, y api.AgentAccount) int { return strings.Compare(string(x.Name), string(y.Name)) })
		agents = append(agents, a)
	}
	return agents
}

// records returns the same agents for Clouddriver's API.
func (f fleet) records(ctx context.Context) (agents []clouddriver.Agent, silent []vedette.ServerID) {
	all, silent := f.Agents(ctx)
	for _, a := range all {
		agent := clouddriver.Agent{ID: a.ID, Server: a.Server, ZoneID: a.ZoneID, LastHeartbeat: a.LastHeartbeat}
		for _, account := range a.Accounts {
			agent.Accounts = append(agent.Accounts, clouddriver.AgentAccount{Name: account.Name, Reports: account.Role == api.Cacher,
				StandsBy: account.Role == api.Standby, Message: account.Message})
		}
		agents = append(agents, agent)
	}
	return agents, silent
}

// AgentsOf returns the connected agents with a role for an account, with that role only.
func (f fleet) AgentsOf(ctx context.Context, account vedette.AccountName) []api.Agent {
	var agents []api.Agent
	for _, m := range f.assignments.Members() {
		if role, ok := m.Role(account); ok {
			a := f.newAgent(m)
			a.Accounts = []api.AgentAccount{newAgentAccount(role)}
			agents = append(agents, a)
		}
	}
	if f.remote == nil {
		return sortAgents(agents)
	}
	for _, a := range f.remote.current(ctx).agents {
		i := slices.IndexFunc(a.Accounts, func(x api.AgentAccount) bool { return x.Name == account })
		if i >= 0 {
			a.Accounts = a.Accounts[i : i+1 : i+1]
			agents = append(agents, a)
		}
	}
	return sortAgents(agents)
}

func (f fleet) newAgent(m *assigner.Member) api.Agent {
	return api.Agent{ID: m.ID, Version: m.Version, Hostname: m.Hostname, ZoneID: m.ZoneID, Replicas: m.Replicas, Server: f.server,
		Connected: m.Connected, LastHeartbeat: m.LastHeartbeat(), Message: m.Notice(), Config: api.AgentConfig(m.Config()),
		Conditions: m.Conditions("")}
}

func newAgentAccount(role assigner.Role) api.AgentAccount {
	return api.AgentAccount{Name: role.Account, Role: api.Role(role.Assignment.Role), Message: role.Message, Notice: role.Notice,
		ErrorKind: role.ErrorKind, Conflict: role.Conflict, Stalled: role.Stalled, Conditions: role.Conditions}
}

func sortAgents(agents []api.Agent) []api.Agent {
	slices.SortFunc(agents, func(x, y api.Agent) int {
		return cmp.Or(strings.Compare(string(x.ID), string(y.ID)), x.Connected.Compare(y.Connected))
	})
	return agents
}

// Freshness returns the time up to which an account is complete, and whether an agent reports it
// now.
func (f fleet) Freshness(account vedette.AccountName) (time.Time, bool) {
	at, live := f.assignments.Freshness(account)
	if live || f.others == nil {
		return at, live
	}
	r, isReported := f.others.Reported(account)
	return r.FreshAt, isReported
}

// Completeness returns the time up to which also those feeds of an account are complete that are not live.
func (f fleet) Completeness(account vedette.AccountName) time.Time {
	if m, _ := f.assignments.Cacher(account); m != nil {
		return m.AccountCompleteness(account)
	}
	if f.others == nil {
		return time.Time{}
	}
	r, _ := f.others.Reported(account)
	return r.CompleteAt
}
