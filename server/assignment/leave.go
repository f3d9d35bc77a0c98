package assignment

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
)

var errLeft = errors.New("the agent has left")

// leave removes an agent from all accounts.
func (f *Fleet) leave(e Left) {
	m := f.members[e.Member]
	if m == nil {
		f.replyNow(e.Request, nil)
		return
	}
	delete(f.members, m.id)
	if f.isShared {
		f.emit(SendUpdate{Left: []MemberID{m.id}})
	}
	f.expect(e.Request)
	for _, name := range slices.Sorted(maps.Keys(m.registered)) {
		f.removeMember(m, name, ReasonLeft, e.Request)
	}
	f.reply(e.Request, nil)
}

func (f *Fleet) deregister(e Deregistered) {
	m := f.members[e.Member]
	if m == nil {
		f.replyNow(e.Request, nil)
		return
	}
	delete(m.registered, e.Account)
	delete(m.roles, e.Account)
	delete(m.failing, e.Account)
	f.expect(e.Request)
	f.removeMember(m, e.Account, ReasonLeft, e.Request)
	f.reply(e.Request, nil)
}

// removeMember removes an agent from an account that it leaves. If it was the cacher, the request waits until another one has taken over.
func (f *Fleet) removeMember(m *member, name vedette.AccountName, reason ChangeReason, id Request) {
	a := f.accounts[name]
	if a == nil {
		return
	}
	f.dropRegistrations(a, m)
	term := a.term
	if f.removeCandidate(a, m, reason) {
		f.emit(KeepFreshness{Account: name, Member: m.id, Term: term})
		f.expect(id)
		a.awaiting = append(a.awaiting, id)
	}
	f.proceed(a)
}

// dropRegistrations ends the registrations of an agent that wait. Otherwise the store would be asked about each agent that came and went
// while it did not answer, and the namespaces of all would take memory.
func (f *Fleet) dropRegistrations(a *account, m *member) {
	a.waiting = slices.DeleteFunc(a.waiting, func(j job) bool {
		isDropped := j.kind == registration && j.member == m
		if isDropped {
			f.reply(j.request, errLeft)
		}
		return isDropped
	})
}

// removeCandidate removes an agent, and reports whether it was the cacher.
func (f *Fleet) removeCandidate(a *account, m *member, reason ChangeReason) bool {
	a.candidates = slices.DeleteFunc(a.candidates, func(other *member) bool { return other == m })
	f.noteGap(a, m, reason)
	if a.cacher != m.id {
		return false
	}
	f.endOffer(a, nil) // it may be taken all the same
	f.carry(a, nil)
	a.cacher = 0
	a.unreleased = true
	a.increase = nil
	a.handover = true
	return true
}

// revoke removes a cacher whose writes the store rejects.
func (f *Fleet) revoke(e Revoked) {
	a, m := f.accounts[e.Account], f.members[e.Member]
	if a == nil || m == nil || a.cacher != m.id || a.term != e.Term {
		f.replyNow(e.Request, nil)
		return
	}
	f.expect(e.Request)
	a.awaiting = append(a.awaiting, e.Request)
	if a.offer != nil && a.isAtRest() {
		f.giveWay(a, m)
		return
	}
	f.removeCandidate(a, m, ReasonRejected)
	f.send(m, Assignment{Account: a.name, Role: Refused, Message: PublicMessage(e.Reason)})
	f.log.Warn("cacher revoked", "account", a.name, "agent", m.ID, "term", e.Term, "error", e.Reason)
	f.proceed(a)
}

// giveWay makes a cacher a standby whose account was offered to another server, which has taken it, as it seems. The store is asked.
func (f *Fleet) giveWay(a *account, m *member) {
	f.carry(a, nil)
	a.cacher, a.increase = 0, nil
	f.send(m, Assignment{Account: a.name, Role: Standby})
	f.promoteNext(a, f.byLoad(a.candidates), false)
	f.proceed(a)
}

// isRefusal reports whether an error means that an agent may not report an account.
func isRefusal(err error) bool {
	switch vedette.KindOf(err) {
	case vedette.Invalid, vedette.Conflict, vedette.Denied:
		return true
	}
	return false
}

// refuse removes an agent and reports the reason: all of it to operators, but nothing about stored
// accounts to the agent.
func (f *Fleet) refuse(a *account, m *member, reason error) {
	if m.lastNotice(a.name) != reason.Error() {
		f.log.Warn("account refused", "account", a.name, "agent", m.ID, "error", reason)
	}
	f.removeCandidate(a, m, ReasonRejected)
	registered := m.registered[a.name].Account
	refusal := Assignment{Account: a.name, Role: Refused, Message: refusalMessage(registered, reason), Notice: reason.Error()}
	if vedette.KindOf(reason) == vedette.Conflict {
		refusal.Conflict = &registered.Cluster
	}
	f.send(m, refusal)
}

// refusalMessage returns the reason that the agent gets. It does not name the other cluster,
// because anyone who knows the identity of a cluster could register under it.
func refusalMessage(a vedette.Account, reason error) string {
	if vedette.KindOf(reason) != vedette.Conflict {
		return reason.Error()
	}
	message := fmt.Sprintf("the account name %[1]s belongs to another cluster than %[2]s: choose another name, or let an operator of the server give this name to your cluster "+
		"with `vedette accounts accept %[1]s`. The server's log and its list of agents show which cluster has the name", a.Name, a.Cluster)
	if a.Cluster.UID == "" {
		message += ". The agent may not read the uid of namespace kube-system, so the cluster is identified by its address and certificate only: " +
			"if one of these changed, allow the agent to get that namespace"
	}
	return message
}

// PublicMessage returns the text of an error that may be shown to agents.
func PublicMessage(err error) string {
	if vedette.KindOf(err) == "" {
		return "internal error: see the server's log"
	}
	return err.Error()
}
