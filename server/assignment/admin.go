package assignment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Transfer gives the name of an account to the cluster of an agent that was refused because another
// cluster has the name. It runs replace with the account as that agent registered it; no agent can
// register the name meanwhile. Then it refuses the agents of the former cluster. Refused agents of
// the new one register again by themselves, within seconds. An empty agent means the only refused
// cluster.
func (r *Registry) Transfer(ctx context.Context, name vedette.AccountName, agent vedette.AgentID,
	replace func(context.Context, vedette.Account) error) (vedette.Cluster, error) {
	account, err := r.findConflict(name, agent)
	if err != nil {
		return vedette.Cluster{}, err
	}
	return account.Cluster, r.withLockedSlot(ctx, name, func(s *slot) error {
		if err := replace(ctx, account); err != nil {
			return err
		}
		for _, m := range s.queued() {
			if former := m.registration(name).Cluster; !former.Same(account.Cluster) {
				s.refuse(ctx, m, vedette.Errorf(vedette.Conflict, "an operator has given the account name %s to %s; agent %s registers %s under it",
					name, account.Cluster, m.ID, former))
			}
		}
		return nil
	})
}

// Vacate runs remove, which removes an account; no agent can register the name meanwhile. Then it
// ends the roles of the account's agents, and returns these agents. They register the account again
// by themselves if they still have it.
func (r *Registry) Vacate(ctx context.Context, name vedette.AccountName, remove func(context.Context, vedette.AccountName) error) (
	agents []vedette.AgentID, err error) {
	err = r.withLockedSlot(ctx, name, func(s *slot) error {
		if err := remove(ctx, name); err != nil {
			return err
		}
		for _, m := range s.queued() {
			s.removeMember(m, Joined)
			m.setAssignment(Assignment{Account: name, Role: Refused, Message: "an operator has removed the account: it is registered again, unless it leaves the agent's configuration"})
			agents = append(agents, m.ID)
		}
		return nil
	})
	slices.Sort(agents)
	return agents, err
}

// withLockedSlot runs do while the slot of an account is locked.
func (r *Registry) withLockedSlot(ctx context.Context, name vedette.AccountName, do func(*slot) error) error {
	for {
		s := r.getOrCreateSlot(name)
		if err := s.lock(ctx); err != nil {
			return err
		}
		if s.isDiscarded() {
			s.unlock()
			continue
		}
		defer s.unlock()
		defer r.discard(s) // if no agent uses it
		return do(s)
	}
}

// findConflict returns an account as a refused agent registered it.
func (r *Registry) findConflict(name vedette.AccountName, agent vedette.AgentID) (vedette.Account, error) {
	var refused []*Member
	for _, m := range r.Members() {
		if role, ok := m.Role(name); ok && role.Conflict != nil && (agent == "" || m.ID == agent) {
			refused = append(refused, m)
		}
	}
	slices.SortFunc(refused, func(a, b *Member) int { return cmp.Compare(a.ID, b.ID) })
	if len(refused) == 0 {
		who := "no agent"
		if agent != "" {
			who = "agent " + string(agent)
		}
		return vedette.Account{}, vedette.Errorf(vedette.NotFound,
			"%s wants to register account %s for another cluster: there is nothing to accept", who, name)
	}
	first := refused[0].registration(name)
	var choices []string
	for _, m := range refused {
		choices = append(choices, fmt.Sprintf("agent %s for %s", m.ID, m.registration(name).Cluster))
	}
	for _, m := range refused[1:] {
		if !m.registration(name).Cluster.Same(first.Cluster) {
			return vedette.Account{}, vedette.Errorf(vedette.Invalid, "several clusters want the account name %s: choose one by its agent: %s", name,
				strings.Join(choices[:min(len(choices), 20)], "; "))
		}
	}
	return first, nil
}
