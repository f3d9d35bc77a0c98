package assignment

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Load is what the agents of this server do.
type Load struct {
	Agents int
	// Reported accounts have an agent that reports them and has no error, or waits for its turn to
	// list them. Failing ones have one with an error, Stalled ones one whose changes wait for the
	// database. Orphaned accounts have none at present.
	Reported, Failing, Stalled, Orphaned int
	// Refused and Unreachable are roles of agents in accounts, which other agents may report.
	Refused, Unreachable int
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
	// Age is how long ago the account was complete; 0 if no agent reports it, or did before.
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
	for _, s := range r.allSlots() {
		m, _ := s.current()
		if m == nil {
			yield(AccountLoad{Account: s.account, State: Orphaned})
			continue
		}
		yield(m.accountLoad(s, now))
	}
}

// accountLoad returns the load of an account that the agent reports.
func (m *Member) accountLoad(s *slot, now time.Time) AccountLoad {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, freshAt := AccountLoad{Account: s.account, State: Reported}, m.freshAt
	stalled, isStalled := m.stalls[s.account]
	switch {
	case isStalled:
		l.State, freshAt = Stalled, stalled.freshAt
	case m.errors[s.account].Message != "" && m.errors[s.account].Kind != vedette.Waiting:
		l.State = Failing
	}
	if freshAt.IsZero() {
		freshAt = m.Connected
	}
	if !freshAt.IsZero() {
		l.Age = max(0, now.Sub(freshAt))
	}
	return l
}

// addRoles adds the accounts that the agent cannot report.
func (m *Member) addRoles(l *Load) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.roles {
		switch a.Role {
		case Refused:
			l.Refused++
		case Unreachable:
			l.Unreachable++
		case Cacher, Standby:
		}
	}
}
