package assignment

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// Agent is what an agent says of itself when it connects.
type Agent struct {
	ID        vedette.AgentID
	Version   string
	Hostname  string
	ZoneID    string
	Connected time.Time
}

// Member is a connected agent.
type Member struct {
	Agent
	registry *Registry
	assign   func(Assignment) // does not wait; for one account one call at a time

	mu         sync.Mutex
	freshAt    time.Time
	roles      map[vedette.AccountName]Assignment
	registered map[vedette.AccountName]vedette.Account // as the agent last said, without namespaces
	stalls     map[vedette.AccountName]stall           // of accounts whose changes wait for the database
	gone       bool
}

// stall is what is known of an account while its changes wait.
type stall struct {
	freshAt time.Time // up to when it was complete before
	message string
}

// Join takes a connected agent in. assign is called, from any goroutine, with
// each role that the agent gets; for one account never twice at once.
func (r *Registry) Join(a Agent, assign func(Assignment)) *Member {
	m := &Member{Agent: a, registry: r, assign: assign, roles: map[vedette.AccountName]Assignment{},
		registered: map[vedette.AccountName]vedette.Account{}, stalls: map[vedette.AccountName]stall{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[m] = true
	return m
}

// Leave takes the agent out: its accounts go to those that stand by.
func (m *Member) Leave(ctx context.Context) {
	m.mu.Lock()
	m.gone = true
	accounts := maps.Clone(m.roles)
	m.mu.Unlock()
	var vacated []*slot // all are left before the store is asked about any
	for name := range accounts {
		if s := m.registry.findSlot(name); s != nil && s.removeMember(m) {
			vacated = append(vacated, s)
		}
	}
	for _, s := range vacated {
		s.handOver(ctx)
	}
	m.registry.mu.Lock()
	defer m.registry.mu.Unlock()
	delete(m.registry.members, m)
}

// Register asks for a role in an account. The answer comes through assign; an
// error is the store's, and the caller tries again.
func (m *Member) Register(ctx context.Context, a vedette.Account) error {
	namespaces := a.Namespaces
	a.Namespaces = nil
	m.mu.Lock()
	m.registered[a.Name] = a
	m.mu.Unlock()
	for {
		err := m.registry.getOrCreateSlot(a.Name).register(ctx, m, namespaces)
		if !errors.Is(err, errDiscarded) {
			return err
		}
	}
}

// registration is what the agent last said of an account.
func (m *Member) registration(name vedette.AccountName) vedette.Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.registered[name]
}

// Deregister gives the role in an account back.
func (m *Member) Deregister(ctx context.Context, name vedette.AccountName) {
	if s := m.registry.findSlot(name); s != nil {
		s.remove(ctx, m)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.roles, name)
	delete(m.registered, name)
}

// Revoke says that the store takes nothing more of an account in a term, and why:
// the account was given to another agent by another server, or removed, or what
// this agent said of it makes no sense. The agent registers again after a while.
func (m *Member) Revoke(ctx context.Context, name vedette.AccountName, term vedette.Term, reason error) {
	m.registry.getOrCreateSlot(name).revoke(ctx, m, term, reason)
}

// SetAccountError notes what keeps the agent from reporting an account. An account that
// it has not registered is shown as one that it can't reach.
func (m *Member) SetAccountError(name vedette.AccountName, message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, known := m.roles[name]
	switch {
	case !known:
		a = Assignment{Account: name, Role: Unreachable}
	case a.Role == Unreachable && message == "":
		delete(m.roles, name)
		return
	}
	a.Message = message
	m.roles[name] = a
}

// SetFreshness says that all that the agent knew at that time, by this server's clock,
// is stored. A time to come counts as now.
func (m *Member) SetFreshness(at time.Time) {
	if now := time.Now(); at.After(now) {
		at = now
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at.After(m.freshAt) {
		m.freshAt = at
	}
}

// Freshness returns the last time given to SetFresh.
func (m *Member) Freshness() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.freshAt
}

// Stall says that an account's changes wait for the database, and why, while those of
// the agent's other accounts are stored: the account gets no fresher. It may be said
// again.
func (m *Member) Stall(name vedette.AccountName, reason error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, stalled := m.stalls[name]
	if !stalled {
		s.freshAt = m.freshAt
	}
	s.message = publicMessage(reason)
	m.stalls[name] = s
}

// Resume ends Stall.
func (m *Member) Resume(name vedette.AccountName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stalls, name)
}

// AccountFreshness is Fresh for one account.
func (m *Member) AccountFreshness(name vedette.AccountName) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, stalled := m.stalls[name]; stalled {
		return s.freshAt
	}
	return m.freshAt
}

// Roles returns the agent's roles by account, for operators: a Message has what
// the agent says of the account, what it was not told itself, or else what keeps
// the account from being stored.
func (m *Member) Roles() map[vedette.AccountName]Assignment {
	m.mu.Lock()
	defer m.mu.Unlock()
	roles := maps.Clone(m.roles)
	for name, a := range roles {
		a.Message = a.displayMessage()
		if s, stalled := m.stalls[name]; stalled && a.Message == "" {
			a.Message = s.message
		}
		roles[name] = a
	}
	return roles
}

// displayMessage is the Message for operators.
func (a Assignment) displayMessage() string {
	switch {
	case a.Notice == "":
		return a.Message
	case a.Message == "":
		return a.Notice
	}
	return a.Message + "; " + a.Notice
}

// setAssignment gives the agent a role. What it says of its trouble outlives that.
func (m *Member) setAssignment(a Assignment) {
	shown := Assignment{Account: a.Account, Role: a.Role, Term: a.Term, Notice: a.Notice}
	if a.Notice == "" {
		shown.Message = a.Message
	}
	m.mu.Lock()
	m.roles[a.Account] = shown
	m.mu.Unlock()
	m.assign(a)
}

// lastNotice is what operators were last told of the agent's registration of an account.
// It is logged when it changes: an agent may register as often as it likes.
func (m *Member) lastNotice(name vedette.AccountName) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roles[name].Notice
}

// setStandby notes that the agent has asked for an account, and reports whether it is
// still there.
func (m *Member) setStandby(name vedette.AccountName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, known := m.roles[name]; (!known || a.Role == Unreachable) && !m.gone {
		m.roles[name] = Assignment{Account: name, Role: Standby}
	}
	return !m.gone
}
