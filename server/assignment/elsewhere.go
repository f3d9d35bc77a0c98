package assignment

import "github.com/vedette-io/vedette"

// Elsewhere says that an agent that is connected to another server is the cacher of an account. That server decides about the account,
// until the agent leaves or the server ends.
type Elsewhere struct {
	Server vedette.ServerID
	Agent  vedette.AgentID
	Term   vedette.Term
}

// Elsewhere returns who is the cacher of an account at another server; nil if nobody is, as far as the fleet knows.
func (f *Fleet) Elsewhere(name vedette.AccountName) *Elsewhere {
	if a := f.accounts[name]; a != nil {
		return a.elsewhere
	}
	return nil
}

// EachElsewhere calls yield with each account whose cacher is connected to another server.
func (f *Fleet) EachElsewhere(yield func(vedette.AccountName, Elsewhere)) {
	for name, a := range f.accounts {
		if a.elsewhere != nil {
			yield(name, *a.elsewhere)
		}
	}
}

// comesBack reports whether an agent that registers an account is the one that holds it at another server: it has lost that connection,
// which the other server may notice later. It counts once for each connection. Otherwise two agents that were given the same id would take
// the account from each other for ever.
func (j job) comesBack() bool {
	return j.isFirst && j.stored.Elsewhere != nil && j.stored.Elsewhere.Agent == j.member.ID
}

// standBy makes an agent a standby of an account whose cacher is connected to another server. If the account was assigned here, that
// assignment has ended.
func (f *Fleet) standBy(a *account, j job) {
	f.addCandidate(a, j.member)
	if former := f.members[a.cacher]; former != nil {
		f.carry(a, nil)
		a.gap.former = a.cacher
		a.cacher, a.increase = 0, nil
		if former != j.member {
			f.send(former, Assignment{Account: a.name, Role: Standby})
		}
	}
	f.setElsewhere(a, j.stored.Elsewhere)
	if a.carrier == j.member {
		f.carry(a, nil)
	}
	f.makeStandby(a, j)
	f.end(a, j, nil)
}

// endElsewhere promotes an agent of an account whose cacher at another server is gone. What is said of an earlier term comes late.
func (f *Fleet) endElsewhere(e ElsewhereEnded) {
	a := f.accounts[e.Account]
	if a == nil || a.elsewhere == nil || a.elsewhere.Term > e.Term {
		return
	}
	a.elsewhere = nil
	if a.isAtRest() && a.cacher == 0 && len(a.candidates) > 0 {
		f.promote(a, true)
	}
	f.proceed(a)
	f.forget(a)
}
