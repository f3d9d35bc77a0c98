package assignment

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
)

// Agent describes an agent, as it introduced itself when it connected.
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
	assign   func(Assignment) // must not block; calls for one account do not overlap
	joinedAt time.Time
	load     atomic.Int64 // the weights of the accounts of which the agent is the cacher
	silence  silence

	mu         sync.Mutex
	returnedAt time.Time // when the agent was last heard again after it had been silent
	freshAt    time.Time
	heardAt    time.Time // when SetFreshness was last called
	duplicates string    // which agents have the same ID; empty for none
	roles      map[vedette.AccountName]Assignment
	registered map[vedette.AccountName]vedette.Account // as last registered, without namespaces
	stalls     map[vedette.AccountName]stall           // accounts whose changes wait for the database
	errors     map[vedette.AccountName]AccountError    // as last reported by the agent; survives a new role
	config     ConfigStatus
	gone       bool
}

// AccountError is what prevents an agent from reporting an account, or a part of it.
type AccountError struct {
	Kind    vedette.ErrorKind // empty if the agent did not say
	Message string            // empty for no error
}

// stall describes an account whose changes wait for the database.
type stall struct {
	freshAt time.Time // the account's freshness when it stalled
	message string
}

// Join adds a connected agent. It calls assign, from any goroutine, with each role that the agent
// gets. Calls for one account do not overlap.
func (r *Registry) Join(a Agent, assign func(Assignment)) *Member {
	m := &Member{Agent: a, registry: r, assign: assign, joinedAt: time.Now(), roles: map[vedette.AccountName]Assignment{},
		registered: map[vedette.AccountName]vedette.Account{}, stalls: map[vedette.AccountName]stall{},
		errors: map[vedette.AccountName]AccountError{}}
	m.silence.sharedChanged = make(chan struct{}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[m] = true
	return m
}

// Leave removes the agent and hands its accounts over to the standby agents.
func (m *Member) Leave(ctx context.Context) {
	m.mu.Lock()
	m.gone = true
	accounts := maps.Clone(m.roles)
	m.mu.Unlock()
	var vacated []*slot // leave all slots before waiting for the store
	for name := range accounts {
		if s := m.registry.findSlot(name); s != nil && s.removeMember(m, Left) {
			vacated = append(vacated, s)
		}
	}
	handOverAll(ctx, vacated)
	m.registry.mu.Lock()
	defer m.registry.mu.Unlock()
	delete(m.registry.members, m)
}

// handOverAll assigns many slots, several at a time, because an agent may have thousands of accounts.
func handOverAll(ctx context.Context, vacated []*slot) {
	var group errgroup.Group
	group.SetLimit(maxConcurrentFills)
	for _, s := range vacated {
		group.Go(func() error { s.handOver(ctx); return nil })
	}
	_ = group.Wait() // no function returns an error
}

// Register requests a role in an account. The role is passed to the function that Join got. An
// error comes from the store; the caller retries.
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

// registration returns the account as the agent last registered it.
func (m *Member) registration(name vedette.AccountName) vedette.Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.registered[name]
}

// Deregister gives up the agent's role in an account.
func (m *Member) Deregister(ctx context.Context, name vedette.AccountName) {
	if s := m.registry.findSlot(name); s != nil {
		s.remove(ctx, m)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.roles, name)
	delete(m.registered, name)
	delete(m.errors, name)
}

// Revoke removes the agent as cacher because the store rejects its writes of an account in this
// term: another server assigned the account to another agent, the account was removed, or what the
// agent reports is invalid. The agent registers again later.
func (m *Member) Revoke(ctx context.Context, name vedette.AccountName, term vedette.Term, reason error) {
	m.registry.getOrCreateSlot(name).revoke(ctx, m, term, reason)
}

// SetAccountError records what prevents the agent from reporting an account, or clears it if
// there is no message. An account that the agent has not registered gets the role Unreachable.
func (m *Member) SetAccountError(name vedette.AccountName, e AccountError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, known := m.roles[name]
	if e.Message == "" {
		delete(m.errors, name)
		if a.Role == Unreachable {
			delete(m.roles, name)
		}
		return
	}
	m.errors[name] = e
	if !known {
		m.roles[name] = Assignment{Account: name, Role: Unreachable}
	}
}

// SetFreshness records that everything that the agent knew at that time is stored. The time is by
// this server's clock; a time in the future counts as now.
func (m *Member) SetFreshness(at time.Time) {
	if now := time.Now(); at.After(now) {
		at = now
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heardAt = time.Now()
	if at.After(m.freshAt) {
		m.freshAt = at
	}
}

// Freshness returns the latest time that was passed to SetFreshness.
func (m *Member) Freshness() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.freshAt
}

// Stall records that an account's changes wait for the database, and why. Changes of the agent's
// other accounts are still stored, so only this account's freshness stops. Stall may be called
// again to change the reason.
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

// Resume ends what Stall started.
func (m *Member) Resume(name vedette.AccountName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stalls, name)
}

// AccountFreshness returns the freshness of one account: the agent's, unless the account is
// stalled.
func (m *Member) AccountFreshness(name vedette.AccountName) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, stalled := m.stalls[name]; stalled {
		return s.freshAt
	}
	return m.freshAt
}

// Roles returns the agent's roles by account, for operators. A role's Message holds the agent's
// account error and the notice for operators, or else the reason why the account is stalled.
func (m *Member) Roles() map[vedette.AccountName]Assignment {
	m.mu.Lock()
	defer m.mu.Unlock()
	roles := maps.Clone(m.roles)
	for name, a := range roles {
		roles[name] = m.forOperatorsLocked(a)
	}
	return roles
}

// Role returns the agent's role for one account, as Roles does.
func (m *Member) Role(account vedette.AccountName) (a Assignment, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok = m.roles[account]
	return m.forOperatorsLocked(a), ok
}

func (m *Member) forOperatorsLocked(a Assignment) Assignment {
	e := m.errors[a.Account]
	a.ErrorKind, a.Message = e.Kind, joinMessages(e.Message, cmp.Or(a.Notice, a.Message))
	s, stalled := m.stalls[a.Account]
	a.Stalled = stalled
	if stalled && a.Message == "" {
		a.Message = s.message
	}
	return a
}

func joinMessages(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// setAssignment gives the agent a role. The agent's account error is kept.
func (m *Member) setAssignment(a Assignment) {
	shown := Assignment{Account: a.Account, Role: a.Role, Term: a.Term, Notice: a.Notice, Conflict: a.Conflict}
	if a.Notice == "" {
		shown.Message = a.Message
	}
	m.mu.Lock()
	m.roles[a.Account] = shown
	m.mu.Unlock()
	m.assign(a)
}

// lastNotice returns the last notice about the agent's registration of an account. A notice is
// logged only when it changes, because an agent may register as often as it likes.
func (m *Member) lastNotice(name vedette.AccountName) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roles[name].Notice
}

// setStandby records that the agent has registered an account, and reports whether the agent is
// still connected.
func (m *Member) setStandby(name vedette.AccountName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, known := m.roles[name]; (!known || a.Role == Unreachable) && !m.gone {
		m.roles[name] = Assignment{Account: name, Role: Standby}
	}
	return !m.gone
}
