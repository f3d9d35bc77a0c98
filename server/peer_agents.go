package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/latest"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/peer"
)

// AgentsJSON implements peer.Fleet.
func (v *services) AgentsJSON() ([]byte, error) {
	return json.Marshal(agentsMessage{time.Now(), fleet{assignments: v.assignments, server: v.server}.localAgents()})
}

// agentsMessage is what a server tells others about its agents. Its times are by its own clock, which Now shows.
type agentsMessage struct {
	Now    time.Time
	Agents []api.Agent
}

// shift makes the times those of a clock that shows now, when the message was made.
func (m *agentsMessage) shift(now time.Time) {
	by := now.Sub(m.Now)
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	moveAll := func(conditions []vedette.Condition) {
		for i := range conditions {
			move(&conditions[i].Since)
		}
	}
	for i := range m.Agents {
		a := &m.Agents[i]
		move(&a.Connected)
		move(&a.LastHeartbeat)
		move(&a.Config.Since)
		moveAll(a.Conditions)
		for j := range a.Accounts {
			moveAll(a.Accounts[j].Conditions)
		}
	}
}

const (
	// peerAgentsAge is how old what others have said may be. However many readers ask, each server is asked once in that time.
	peerAgentsAge = time.Second
	// peerAgentsTimeout is how long a server may take to say it.
	peerAgentsTimeout = 2 * time.Second
)

// peerAgents knows the agents that are connected to other servers.
type peerAgents struct {
	self    vedette.ServerID
	client  *peer.Client
	members *membership.Membership
	last    latest.Value[agentsOfOthers]
}

// agentsOfOthers are the agents of the servers that have answered. It is not changed.
type agentsOfOthers struct {
	agents []api.Agent
	silent []vedette.ServerID // servers that have not
	readAt time.Time
}

// current returns the agents. If ctx ends before, none is known.
func (p *peerAgents) current(ctx context.Context) *agentsOfOthers {
	notBefore := time.Now().Add(-peerAgentsAge)
	all, err := p.last.Get(ctx, func(a *agentsOfOthers) bool { return !a.readAt.Before(notBefore) },
		func(ctx context.Context, _ *agentsOfOthers) (*agentsOfOthers, error) { return p.read(ctx), nil })
	if err != nil {
		return &agentsOfOthers{silent: p.others()}
	}
	return all
}

func (p *peerAgents) others() (ids []vedette.ServerID) {
	for id := range p.members.Current() {
		if id != p.self {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// read asks all servers at once.
func (p *peerAgents) read(ctx context.Context) *agentsOfOthers {
	ctx, cancel := context.WithTimeout(ctx, peerAgentsTimeout)
	defer cancel()
	all := &agentsOfOthers{readAt: time.Now()}
	ids := p.others()
	answers, errs := make([][]api.Agent, len(ids)), make([]error, len(ids))
	var asking sync.WaitGroup
	for i, id := range ids {
		asking.Go(func() { answers[i], errs[i] = p.ask(ctx, id) })
	}
	asking.Wait()
	for i, id := range ids {
		if errs[i] != nil {
			all.silent = append(all.silent, id)
		}
		all.agents = append(all.agents, answers[i]...)
	}
	return all
}

func (p *peerAgents) ask(ctx context.Context, id vedette.ServerID) ([]api.Agent, error) {
	asked := time.Now() // before the answer was made, so that nothing looks more recent than it is
	text, err := p.client.AgentsJSON(ctx, id)
	if err != nil {
		return nil, err
	}
	var m agentsMessage
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read what server %s says about its agents: %w", id, err)
	}
	m.shift(asked)
	for i := range m.Agents {
		m.Agents[i].Server = id // whatever it says
	}
	return m.Agents, nil
}
