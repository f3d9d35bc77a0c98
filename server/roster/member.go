package roster

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
	roster *Roster
	assign func(Assignment) // does not wait; for one account one call at a time

	mu         sync.Mutex
	fresh      time.Time
	roles      map[vedette.AccountName]Assignment
	registered map[vedette.AccountName]vedette.Account // as the agent last said, without namespaces
	stall      map[vedette.AccountName]stall           // of accounts whose changes wait for the database
	gone       bool
}

// stall is what is known of an account while its changes wait.
type stall struct {
	fresh   time.Time // up to when it was complete before
	message string
}

// Join takes a connected agent in. assign is called, from any goroutine, with
// each role that the agent gets; for one account never twice at once.
func (r *Roster) Join(a Agent, assign func(Assignment)) *Member {
	m := &Member{Agent: a, roster: r, assign: assign, roles: map[vedette.AccountName]Assignment{},
		registered: map[vedette.AccountName]vedette.Account{}, stall: map[vedette.AccountName]stall{}}
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
	var vacant []*seat // all are left before the store is asked about any
	for name := range accounts {
		if s := m.roster.seatOf(name); s != nil && s.dismiss(m) {
			vacant = append(vacant, s)
		}
	}
	for _, s := range vacant {
		s.pass(ctx)
	}
	m.roster.mu.Lock()
	defer m.roster.mu.Unlock()
	delete(m.roster.members, m)
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
		err := m.roster.seat(a.Name).register(ctx, m, namespaces)
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
	if s := m.roster.seatOf(name); s != nil {
		s.remove(ctx, m)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.roles, name)
	delete(m.registered, name)
}

// Void says that the store takes nothing more of an account in a term, and why:
// the account was given to another agent by another server, or removed, or what
// this agent said of it makes no sense. The agent registers again after a while.
func (m *Member) Void(ctx context.Context, name vedette.AccountName, term vedette.Term, reason error) {
	m.roster.seat(name).void(ctx, m, term, reason)
}

// Trouble notes what keeps the agent from reporting an account. An account that
// it has not registered is shown as one that it can't reach.
func (m *Member) Trouble(name vedette.AccountName, message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, known := m.roles[name]
	switch {
	case !known:
		a = Assignment{Account: name, Role: Reaching}
	case a.Role == Reaching && message == "":
		delete(m.roles, name)
		return
	}
	a.Message = message
	m.roles[name] = a
}

// SetFresh says that all that the agent knew at that time, by this server's clock,
// is stored. A time to come counts as now.
func (m *Member) SetFresh(at time.Time) {
	if now := time.Now(); at.After(now) {
		at = now
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at.After(m.fresh) {
		m.fresh = at
	}
}

// Fresh returns the last time given to SetFresh.
func (m *Member) Fresh() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fresh
}

// Stall says that an account's changes wait for the database, and why, while those of
// the agent's other accounts are stored: the account gets no fresher. It may be said
// again.
func (m *Member) Stall(name vedette.AccountName, reason error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, stalled := m.stall[name]
	if !stalled {
		s.fresh = m.fresh
	}
	s.message = showable(reason)
	m.stall[name] = s
}

// Resume ends Stall.
func (m *Member) Resume(name vedette.AccountName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stall, name)
}

// FreshOf is Fresh for one account.
func (m *Member) FreshOf(name vedette.AccountName) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, stalled := m.stall[name]; stalled {
		return s.fresh
	}
	return m.fresh
}

// Roles returns the agent's roles by account, for operators: a Message has what
// the agent says of the account, what it was not told itself, or else what keeps
// the account from being stored.
func (m *Member) Roles() map[vedette.AccountName]Assignment {
	m.mu.Lock()
	defer m.mu.Unlock()
	roles := maps.Clone(m.roles)
	for name, a := range roles {
		a.Message = a.shown()
		if s, stalled := m.stall[name]; stalled && a.Message == "" {
			a.Message = s.message
		}
		roles[name] = a
	}
	return roles
}

// shown is the Message for operators.
func (a Assignment) shown() string {
	switch {
	case a.Notice == "":
		return a.Message
	case a.Message == "":
		return a.Notice
	}
	return a.Message + "; " + a.Notice
}

// tell gives the agent a role. What it says of its trouble outlives that.
func (m *Member) tell(a Assignment) {
	kept := Assignment{Account: a.Account, Role: a.Role, Term: a.Term, Notice: a.Notice}
	if a.Notice == "" {
		kept.Message = a.Message
	}
	m.mu.Lock()
	m.roles[a.Account] = kept
	m.mu.Unlock()
	m.assign(a)
}

// notice is what operators were last told of the agent's registration of an account.
// It is logged when it changes: an agent may register as often as it likes.
func (m *Member) notice(name vedette.AccountName) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roles[name].Notice
}

// enter notes that the agent has asked for an account, and reports whether it is
// still there.
func (m *Member) enter(name vedette.AccountName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, known := m.roles[name]; (!known || a.Role == Reaching) && !m.gone {
		m.roles[name] = Assignment{Account: name, Role: Standby}
	}
	return !m.gone
}
