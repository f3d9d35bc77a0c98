package assignment

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Load is what the agents of this server do.
type Load struct {
	Agents int
	// Reported accounts have an agent that reports them and no error, or wait for their first list. Failing ones have one with an
	// error, Stalled ones one whose changes wait for the database. Waiting accounts have none at
	// present.
	Reported, Failing, Stalled, Waiting int
	// Refused and Unreachable are roles of agents in accounts, which other agents may report.
	Refused, Unreachable int
	// Oldest is how long ago the account that is furthest behind was complete, among those that an
	// agent reports.
	Oldest time.Duration
}

// Load returns the load. It takes time in proportion to the number of accounts, and waits for
// nothing.
func (r *Registry) Load() Load {
	now := time.Now()
	var l Load
	for _, s := range r.allSlots() {
		m, _ := s.current()
		if m == nil {
			l.Waiting++
			continue
		}
		m.addTo(&l, s, now)
	}
	for _, m := range r.Members() {
		l.Agents++
		m.addRoles(&l)
	}
	return l
}

// addTo adds an account that the agent reports.
func (m *Member) addTo(l *Load, s *slot, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	freshAt := m.freshAt
	stalled, isStalled := m.stalls[s.account]
	switch {
	case isStalled:
		l.Stalled++
		freshAt = stalled.freshAt
	case m.errors[s.account].Message != "" && m.errors[s.account].Kind != vedette.Waiting:
		l.Failing++
	default:
		l.Reported++
	}
	if freshAt.IsZero() {
		freshAt = m.Connected
	}
	if !freshAt.IsZero() {
		l.Oldest = max(l.Oldest, now.Sub(freshAt))
	}
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
