package assigner

import (
	"maps"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
)

// SetFreshness records that everything that the agent knew at that time is stored. The time is by
// this server's clock; a time in the future counts as now.
func (m *Member) SetFreshness(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setFreshnessLocked(at)
}

// SetAccountFreshness is SetFreshness for an agent that knows up to when each account is complete. The
// time does not hold for the accounts in ages, and not for those that were never listed in their present
// term: whatever the agent said before it had them was not about them.
func (m *Member) SetAccountFreshness(at time.Time, ages map[vedette.AccountName]vedette.AccountAge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at = earlier(at, time.Now())
	known := make(map[vedette.AccountName]vedette.AccountAge, len(m.ages)+len(ages))
	for name, age := range m.ages { // not as late as freshAt, which an earlier heartbeat has set without the account
		age.Live, age.All = later(age.Live, at), later(age.All, at)
		known[name] = age
	}
	maps.Copy(known, ages)
	m.listsAges, m.ages = true, known
	m.setFreshnessLocked(at)
}

func (m *Member) setFreshnessLocked(at time.Time) {
	now := time.Now()
	if at.After(now) {
		at = now
	}
	m.heardAt = now
	if at.After(m.freshAt) {
		m.freshAt = at
	}
}

// LastHeartbeat returns when the last heartbeat of the agent was read. The first ones of an agent without accounts are read some seconds
// after they arrive, because they are compressed together. Until then it returns when the last message arrived, which shows as well
// that the agent is there.
func (m *Member) LastHeartbeat() time.Time {
	if at := m.lastHeard(); !at.IsZero() {
		return at
	}
	since := m.receivingSince.Load()
	if since == 0 { // a message is being handled
		return time.Now()
	}
	return m.joinedAt.Add(time.Duration(since))
}

// AccountFreshness returns up to when the live feeds of one account are complete; zero if it is unknown. An
// account that is stalled stays where it was.
func (m *Member) AccountFreshness(name vedette.AccountName) time.Time {
	return m.freshnessIn(name, m.term(name))
}

// freshnessIn is AccountFreshness of the agent's present or last term.
func (m *Member) freshnessIn(name vedette.AccountName, term vedette.Term) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, stalled := m.stalls[name]; stalled {
		return s.freshAt
	}
	live, _ := m.accountFreshnessLocked(name, term)
	return live
}

// AccountCompleteness returns up to when all feeds of an account are complete, also those that are not live, unless they
// never were; zero if it is unknown.
func (m *Member) AccountCompleteness(name vedette.AccountName) time.Time {
	return m.completenessIn(name, m.term(name))
}

// completenessIn is AccountCompleteness of the agent's present or last term.
func (m *Member) completenessIn(name vedette.AccountName, term vedette.Term) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.listsAges {
		return time.Time{}
	}
	if s, stalled := m.stalls[name]; stalled {
		return s.completeAt
	}
	_, all := m.accountFreshnessLocked(name, term)
	return all
}

// accountFreshnessLocked returns up to when an account is complete: its live feeds, and all.
func (m *Member) accountFreshnessLocked(name vedette.AccountName, term vedette.Term) (live, all time.Time) {
	if !m.listsAges {
		return m.freshAt, m.freshAt
	}
	age, known := m.ages[name]
	if !known || age.Term != term {
		return time.Time{}, time.Time{}
	}
	return earlier(age.Live, m.freshAt), earlier(age.All, m.freshAt)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// lastSeen returns the freshness to store for an account whose cacher the agent is, or was until now.
func (m *Member) lastSeen(name vedette.AccountName, term vedette.Term) registry.LastSeen {
	seen := registry.LastSeen{Account: name, Term: term, At: m.freshnessIn(name, term)}
	// Feeds that work differ by less. Those of a lost cluster all fail, and nothing else says when they were complete.
	if complete := m.completenessIn(name, term); seen.At.Sub(complete) > freshnessInterval || seen.At.IsZero() {
		seen.Complete = complete
	}
	return seen
}

// changesOf returns what the store does not know yet.
func changesOf(current, stored registry.LastSeen) registry.LastSeen {
	if stored.Term != current.Term {
		return current
	}
	if !current.At.After(stored.At) {
		current.At = time.Time{}
	}
	if !current.Complete.After(stored.Complete) {
		current.Complete = time.Time{}
	}
	return current
}

func isKnown(seen registry.LastSeen) bool { return !seen.At.IsZero() || !seen.Complete.IsZero() }
