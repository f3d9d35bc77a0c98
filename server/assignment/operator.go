package assignment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// wantChange queues an operator's change of an account. The store makes it while no agent can register the name.
func (f *Fleet) wantChange(e ChangeWanted) {
	registered := vedette.Account{Name: e.Account}
	if e.Change == Transfer {
		var err error
		if registered, err = f.findConflict(e.Account, e.Agent); err != nil {
			f.replyNow(e.Request, err)
			return
		}
	}
	f.expect(e.Request)
	a := f.accountOf(e.Account)
	a.waiting = append(a.waiting, job{kind: operatorChange, change: e.Change, registered: registered, request: e.Request})
	f.proceed(a)
}

func (f *Fleet) startChange(a *account, j job) {
	attempt := f.begin(a, Changing, j)
	f.emit(MakeChange{Account: j.registered, Attempt: attempt, Request: j.request})
}

// changed ends the roles of the agents of the former cluster, or of all agents if the account was removed. Refused agents register
// again by themselves, within seconds.
func (f *Fleet) changed(e Changed) {
	a := f.answered(e.Account, e.Attempt, Changing)
	if a == nil {
		return
	}
	j := a.job
	if e.Err != nil {
		f.end(a, j, e.Err)
		return
	}
	a.elsewhere = nil // its term has ended
	for _, m := range slices.Clone(a.candidates) {
		former := m.registered[a.name].Cluster
		switch {
		case j.change == Removal:
			f.removeCandidate(a, m, ReasonJoined)
			f.send(m, Assignment{Account: a.name, Role: Refused,
				Message: "an operator has removed the account: it is registered again, unless it leaves the agent's configuration"})
			f.requests[j.request].agents = append(f.requests[j.request].agents, m.ID)
		case !former.Same(j.registered.Cluster):
			f.refuse(a, m, vedette.Errorf(vedette.Conflict, "an operator has given the account name %s to %s; agent %s registers %s under it",
				a.name, j.registered.Cluster, m.ID, former))
		}
	}
	a.awaiting = append(a.awaiting, j.request) // until the next agent has taken over
	j.request = 0
	f.end(a, j, nil)
}

// findConflict returns an account as a refused agent registered it. An empty agent means the only refused cluster.
func (f *Fleet) findConflict(name vedette.AccountName, agent vedette.AgentID) (vedette.Account, error) {
	var refused []*member
	for _, m := range f.members {
		if role := m.roles[name]; role.Conflict != nil && (agent == "" || m.ID == agent) {
			refused = append(refused, m)
		}
	}
	slices.SortFunc(refused, func(a, b *member) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.id, b.id)) })
	if len(refused) == 0 {
		who := "no agent"
		if agent != "" {
			who = "agent " + string(agent)
		}
		return vedette.Account{}, vedette.Errorf(vedette.NotFound,
			"%s wants to register account %s for another cluster: there is nothing to accept", who, name)
	}
	first := refused[0].registered[name]
	var choices []string
	for _, m := range refused {
		choices = append(choices, fmt.Sprintf("agent %s for %s", m.ID, m.registered[name].Cluster))
	}
	for _, m := range refused[1:] {
		if !m.registered[name].Cluster.Same(first.Cluster) {
			return vedette.Account{}, vedette.Errorf(vedette.Invalid, "several clusters want the account name %s: choose one by its agent: %s", name,
				strings.Join(choices[:min(len(choices), 20)], "; "))
		}
	}
	return first.Account, nil
}
