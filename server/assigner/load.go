package assigner

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
)

// Load is what the agents of this server do.
type Load struct {
	Agents int
	// Reported accounts have an agent that reports them and has no error, or waits for its turn to
	// list them. Failing ones have one with an error, Stalled ones one whose changes wait for the
	// database. Orphaned accounts have none at present.
	Reported, Failing, Stalled, Orphaned int
	// Refused and Reaching are roles of agents in accounts, which other agents may report.
	Refused, Reaching int
	// Oldest is how long ago the account that is furthest behind was complete, among those that an
	// agent reports.
	Oldest time.Duration
}

// AccountState is what happens to the changes of an account.
type AccountState string

// The states, as Load explains them.
const (
	Reported AccountState = "reported"
	Failing  AccountState = "failing"
	Stalled  AccountState = "stalled"
	Orphaned AccountState = "orphaned"
)

// AccountLoad is what an agent of this server does for one account.
type AccountLoad struct {
	Account vedette.AccountName
	State   AccountState
	// Age is how long ago the account was complete; 0 if no agent reports it. Until the agent says it, what is stored counts, or for
	// how long the account has been registered if it was never read.
	Age time.Duration
}

// Load returns the load. It takes time in proportion to the number of accounts, and waits for
// nothing.
func (r *Registry) Load() Load {
	var l Load
	r.eachAccount(func(a AccountLoad) {
		switch a.State {
		case Reported:
			l.Reported++
		case Failing:
			l.Failing++
		case Stalled:
			l.Stalled++
		case Orphaned:
			l.Orphaned++
		}
		l.Oldest = max(l.Oldest, a.Age)
	})
	for _, m := range r.Members() {
		l.Agents++
		m.addRoles(&l)
	}
	return l
}

// AccountLoads returns the load of each account, in any order. It costs as much as Load.
func (r *Registry) AccountLoads() (loads []AccountLoad) {
	r.eachAccount(func(a AccountLoad) { loads = append(loads, a) })
	return loads
}

func (r *Registry) eachAccount(yield func(AccountLoad)) {
	now := time.Now()
	for _, h := range r.holders() {
		if h.member == nil {
			yield(AccountLoad{Account: h.account, State: Orphaned})
			continue
		}
		yield(h.member.accountLoad(h, now))
	}
}

func (m *Member) accountLoad(h holder, now time.Time) AccountLoad {
	account := h.account
	m.mu.Lock()
	defer m.mu.Unlock()
	l := AccountLoad{Account: account, State: Reported}
	_, freshAt := m.accountFreshnessLocked(account, h.term)
	stalled, isStalled := m.stalls[account]
	switch {
	case isStalled:
		l.State, freshAt = Stalled, stalled.completeAt
	case m.errors[account].Message != "" && m.errors[account].Kind != vedette.Waiting:
		l.State = Failing
	}
	if freshAt.IsZero() {
		freshAt = h.completeAt
	}
	if !freshAt.IsZero() {
		l.Age = max(0, now.Sub(freshAt))
	}
	return l
}

// addRoles adds the accounts that the agent cannot report.
func (m *Member) addRoles(l *Load) {
	for _, role := range m.Roles() {
		switch role.Role {
		case assignment.Refused:
			l.Refused++
		case assignment.Reaching:
			l.Reaching++
		case assignment.Cacher, assignment.Standby:
		}
	}
}
