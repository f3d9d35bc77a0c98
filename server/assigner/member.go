package assigner

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
)

// Member is a connected agent.
type Member struct {
	assignment.Agent
	id       assignment.MemberID
	registry *Registry
	assign   func(assignment.Assignment) // must not block; calls do not overlap
	joinedAt time.Time
	hasLeft  bool // guarded by the registry's mutex

	receivingSince atomic.Int64 // since when the server waits for a message, as time since the agent joined; 0 while it does not wait
	aliveInterval  atomic.Int64 // that the agent has announced
	isShared       atomic.Bool
	sharedChanged  chan struct{} // holds a token after isShared has changed
	askedToLeave   chan string   // holds why the agent is to connect to another server

	mu         sync.Mutex
	freshAt    time.Time
	heardAt    time.Time                                   // when SetFreshness was last called
	listsAges  bool                                        // the agent knows up to when each account is complete
	ages       map[vedette.AccountName]vedette.AccountAge  // of accounts that were listed; only if listsAges
	duplicates string                                      // which agents have the same ID; empty for none
	stalls     map[vedette.AccountName]stall               // accounts whose changes wait for the database
	errors     map[vedette.AccountName]AccountError        // as last reported by the agent; survives a new role
	conditions map[vedette.AccountName][]vedette.Condition // those of the agent itself under ""
	config     ConfigStatus
}

// AccountError is what prevents an agent from reporting an account, or a part of it.
type AccountError struct {
	Kind    vedette.ErrorKind // empty if the agent did not say
	Message string            // empty for no error
}

// stall describes an account whose changes wait for the database.
type stall struct {
	freshAt, completeAt time.Time // the account's when it stalled
	message             string
}

// Role is an agent's role in an account, and what the agent reports about the account, for operators.
type Role struct {
	assignment.Assignment
	// ErrorKind is the kind of the agent's account error.
	ErrorKind vedette.ErrorKind
	// Stalled reports whether changes of the account wait for the database.
	Stalled    bool
	Conditions []vedette.Condition
}

// Join adds a connected agent. It calls assign, from any goroutine, with each role that the agent
// gets. Calls do not overlap.
func (r *Registry) Join(a assignment.Agent, assign func(assignment.Assignment)) *Member {
	m := &Member{Agent: a, registry: r, assign: assign, joinedAt: time.Now(), sharedChanged: make(chan struct{}, 1),
		askedToLeave: make(chan string, 1),
		stalls:       map[vedette.AccountName]stall{}, errors: map[vedette.AccountName]AccountError{}}
	r.mu.Lock()
	r.lastMember++
	m.id = r.lastMember
	r.members[m.id] = m
	r.mu.Unlock()
	r.step(assignment.Joined{Member: m.id, Agent: a})
	return m
}

// Leave removes the agent and hands its accounts over to the standby agents. The agent is removed when Leave returns, even if ctx ends
// before the standbys have taken over.
func (m *Member) Leave(ctx context.Context) {
	r := m.registry
	r.mu.Lock()
	m.hasLeft = true
	r.mu.Unlock()
	_, _ = r.request(ctx, func(id assignment.Request) assignment.Event { // what failed is retried
		return assignment.Left{Member: m.id, Request: id}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, m.id)
}

// Register requests a role in an account. The role is passed to the function that Join got. An
// error comes from the store; the caller retries.
func (m *Member) Register(ctx context.Context, a vedette.Account) error {
	prepared := assignment.Prepare(a.Properties)
	_, err := m.registry.request(ctx, func(id assignment.Request) assignment.Event {
		return assignment.Registered{Member: m.id, Account: a, Prepared: prepared, Request: id}
	})
	return err
}

// Deregister gives up the agent's role in an account.
func (m *Member) Deregister(ctx context.Context, name vedette.AccountName) {
	_, _ = m.registry.request(ctx, func(id assignment.Request) assignment.Event {
		return assignment.Deregistered{Member: m.id, Account: name, Request: id}
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.errors, name)
	delete(m.conditions, name)
	delete(m.ages, name)
}

// Revoke removes the agent as cacher because the store rejects its writes of an account in this
// term: another server assigned the account to another agent, the account was removed, or what the
// agent reports is invalid. The agent registers again later.
func (m *Member) Revoke(ctx context.Context, name vedette.AccountName, term vedette.Term, reason error) {
	_, _ = m.registry.request(ctx, func(id assignment.Request) assignment.Event {
		return assignment.Revoked{Member: m.id, Account: name, Term: term, Reason: reason, Request: id}
	})
}

// send tells the agent its role.
func (m *Member) send(a assignment.Assignment) {
	m.mu.Lock()
	if m.ages[a.Account].Term != a.Term { // of a term that has ended
		delete(m.ages, a.Account)
	}
	m.mu.Unlock()
	m.assign(a)
}

// SetAccountError records what prevents the agent from reporting an account, or clears it if
// there is no message. An account that the agent has not registered gets the role Reaching.
func (m *Member) SetAccountError(name vedette.AccountName, e AccountError) {
	m.mu.Lock()
	if e.Message == "" {
		delete(m.errors, name)
	} else {
		m.errors[name] = e
	}
	m.mu.Unlock()
	m.registry.step(assignment.ErrorReported{Member: m.id, Account: name, IsSet: e.Message != ""})
}

// Stall records that an account's changes wait for the database, and why. Changes of the agent's
// other accounts are still stored, so only this account's freshness stops. Stall may be called
// again to change the reason.
func (m *Member) Stall(name vedette.AccountName, reason error) {
	term := m.term(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	s, stalled := m.stalls[name]
	if !stalled {
		s.freshAt, s.completeAt = m.accountFreshnessLocked(name, term)
	}
	s.message = assignment.PublicMessage(reason)
	m.stalls[name] = s
}

// Resume ends what Stall started.
func (m *Member) Resume(name vedette.AccountName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stalls, name)
}

// Roles returns the agent's roles by account, for operators. A role's Message holds the agent's
// account error and the notice for operators, or else the reason why the account is stalled.
func (m *Member) Roles() map[vedette.AccountName]Role {
	roles := map[vedette.AccountName]Role{}
	m.registry.mu.Lock()
	m.registry.fleet.Roles(m.id, func(a assignment.Assignment) { roles[a.Account] = Role{Assignment: a} })
	m.registry.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.errors {
		if _, known := roles[name]; !known {
			roles[name] = reaching(name)
		}
	}
	for name, role := range roles {
		roles[name] = m.forOperatorsLocked(role)
	}
	return roles
}

// Role returns the agent's role for one account, as Roles does.
func (m *Member) Role(account vedette.AccountName) (role Role, ok bool) {
	m.registry.mu.Lock()
	role.Assignment, ok = m.registry.fleet.Role(m.id, account)
	m.registry.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, hasError := m.errors[account]; !ok && hasError {
		role, ok = reaching(account), true
	}
	return m.forOperatorsLocked(role), ok
}

func reaching(account vedette.AccountName) Role {
	return Role{Assignment: assignment.Assignment{Account: account, Role: assignment.Reaching}}
}

func (m *Member) forOperatorsLocked(role Role) Role {
	e := m.errors[role.Account]
	role.ErrorKind, role.Message = e.Kind, joinMessages(e.Message, cmp.Or(role.Notice, role.Message))
	s, stalled := m.stalls[role.Account]
	role.Stalled, role.Conditions = stalled, slices.Clone(m.conditions[role.Account])
	if stalled && role.Message == "" {
		role.Message = s.message
	}
	return role
}

func joinMessages(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// term returns the term in which the agent is the cacher of an account; 0 if it is not.
func (m *Member) term(account vedette.AccountName) vedette.Term {
	m.registry.mu.Lock()
	defer m.registry.mu.Unlock()
	role, _ := m.registry.fleet.Role(m.id, account)
	return role.Term
}

// BeginReceive records that the server waits for a message of the agent from now on.
func (m *Member) BeginReceive() { m.receivingSince.Store(max(1, int64(time.Since(m.joinedAt)))) }

// EndReceive records that a message has arrived, and that the server waits for none until the next
// BeginReceive.
func (m *Member) EndReceive() { m.receivingSince.Store(0) }

// SilentFor returns how long the server has waited for a message of the agent. Time in which the
// server did not wait for one does not count.
func (m *Member) SilentFor() time.Duration {
	since := m.receivingSince.Load()
	if since == 0 {
		return 0
	}
	return time.Since(m.joinedAt) - time.Duration(since)
}

// SetAliveInterval records at which interval the agent announced to send messages; 0 for none. Agents announce it
// with each message.
func (m *Member) SetAliveInterval(d time.Duration) {
	if m.aliveInterval.Swap(int64(d)) != int64(d) {
		m.registry.step(assignment.AliveAnnounced{Member: m.id, Interval: d})
	}
}

// IsShared reports whether the agent has an account that other agents have, too. Such an agent is
// asked to show more often that it is alive.
func (m *Member) IsShared() bool { return m.isShared.Load() }

// SharedChanged returns a channel that is ready after IsShared has changed. It has one reader.
func (m *Member) SharedChanged() <-chan struct{} { return m.sharedChanged }

// AskedToLeave returns a channel of the reasons why the agent is asked to connect to another server. It has one reader.
func (m *Member) AskedToLeave() <-chan string { return m.askedToLeave }

func (m *Member) askToLeave(reason string) {
	select {
	case m.askedToLeave <- reason:
	default: // it is about to be asked
	}
}

func (m *Member) setShared(isShared bool) {
	m.isShared.Store(isShared)
	select {
	case m.sharedChanged <- struct{}{}:
	default:
	}
}
