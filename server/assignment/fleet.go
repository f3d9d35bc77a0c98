// Package assignment decides which agent reports which account. Of the agents that may report an
// account, one is its cacher. The others are standbys. The one with the fewest objects takes over as
// soon as the cacher is gone, and accounts are moved between agents that have registered them alike.
//
// Agents of other servers that share the database may report accounts too. The server of the cacher decides about an account: it offers
// it to another server, which acquires it or declines (docs/decisions/0190).
//
// A Fleet is a state machine: events go in, effects come out. It does no I/O, reads no clock and has no
// lock. Package assigner executes the effects and returns what comes of them as events.
//
// Guarantee: at most one agent writes an account's changes. Each new cacher gets a term that is
// higher than all earlier terms of the account, and the store rejects writes of any other term.
// Therefore a fleet that is wrong, late or duplicated does no harm.
package assignment

import (
	"cmp"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// Config configures a Fleet.
type Config struct {
	// Balance says when accounts are moved to balance agents; nil for never.
	Balance *BalanceConfig
	// Server is the server of the fleet. IsShared says that others share its database, and are told what its agents have.
	Server   vedette.ServerID
	IsShared bool
}

// Fleet is the agents that are connected to one server, and their accounts. It is not safe for concurrent use.
type Fleet struct {
	members  map[MemberID]*member
	accounts map[vedette.AccountName]*account
	attempts Attempt              // the last one
	requests map[Request]*request // that are not answered yet
	changes  map[ChangeReason]CacherChanges
	ticked   time.Time // when accounts were last looked at
	silent   silentTakeovers
	balancer balancer
	spreader spreader

	server     vedette.ServerID
	isShared   bool
	isDraining bool
	peers      map[vedette.ServerID]*peer
	offered    map[*account]struct{} // to agents of other servers
	deferred   map[*account]struct{} // left to agents of other servers for a moment
	touched    map[*account]struct{} // of which other servers may have to be told

	// Of the event that is being handled:
	now     time.Time
	effects []Effect
	log     logger // adds to effects
}

// New returns a fleet without agents.
func New(cfg Config) *Fleet {
	f := &Fleet{members: map[MemberID]*member{}, accounts: map[vedette.AccountName]*account{}, requests: map[Request]*request{},
		changes: map[ChangeReason]CacherChanges{}, silent: silentTakeovers{taken: map[vedette.AgentID]int{}},
		spreader: spreader{stay: map[vedette.AgentID]time.Time{}},
		server:   cfg.Server, isShared: cfg.IsShared, peers: map[vedette.ServerID]*peer{}, offered: map[*account]struct{}{},
		deferred: map[*account]struct{}{}, touched: map[*account]struct{}{}}
	f.log = logger{f}
	if cfg.Balance != nil {
		f.balancer = balancer{enabled: true, cfg: cfg.Balance.withDefaults()}
	}
	return f
}

// Step handles an event, and returns what follows from it. The effects that name the same account must be executed in their
// order, also those of several steps; others in any order.
func (f *Fleet) Step(e Event, now time.Time) []Effect {
	f.now, f.effects = now, nil
	f.handle(e)
	f.emitUpdates()
	return f.effects
}

func (f *Fleet) handle(e Event) {
	switch e := e.(type) {
	case Joined:
		f.members[e.Member] = newMember(e.Member, e.Agent, f.now)
	case Left:
		f.leave(e)
	case Registered:
		f.register(e)
	case Deregistered:
		f.deregister(e)
	case Revoked:
		f.revoke(e)
	case ErrorReported:
		f.setError(e)
	case AliveAnnounced:
		f.setAliveInterval(e)
	case Admitted:
		f.admitted(e)
	case Acquired:
		f.acquired(e)
	case Released:
		f.released(e)
	case ChangeWanted:
		f.wantChange(e)
	case Changed:
		f.changed(e)
	case Tick:
		f.tick(e)
	case Counted:
		f.counted(e)
	case Examined:
		f.examined(e)
	default:
		f.handleServers(e)
	}
}

// handleServers handles what other servers do, and what follows from that.
func (f *Fleet) handleServers(e Event) {
	switch e := e.(type) {
	case ElsewhereEnded:
		f.endElsewhere(e)
	case PeerUpdated:
		f.peerUpdate(e)
	case PeerLost:
		f.peerLost(e)
	case Offered:
		f.take(e)
	case Declined:
		f.declined(e)
	case Looked:
		f.looked(e)
	case Draining:
		f.drain()
	}
}

func (f *Fleet) emit(e Effect) { f.effects = append(f.effects, e) }

// accountInterval is how often all accounts are looked at.
const accountInterval = time.Second

// tick does what is due. It is called each ListenInterval.
func (f *Fleet) tick(e Tick) {
	f.listen(e)
	isDue := f.now.Sub(f.ticked) >= accountInterval
	if isDue {
		f.ticked = f.now
		f.findShared()
		for _, a := range f.sortedAccounts() {
			f.retry(a)
		}
	}
	f.expireOffers()
	f.endDeferrals()
	f.takeOverFromSilent()
	if isDue {
		f.offerAll()
		f.balance()
		f.spread()
	}
	f.updateAgents(isDue)
}

// sortedAccounts returns the accounts by their names, so that equal events have equal effects.
func (f *Fleet) sortedAccounts() []*account {
	all := make([]*account, 0, len(f.accounts))
	for _, a := range f.accounts {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *account) int { return cmp.Compare(a.name, b.name) })
	return all
}

// request is a call that waits until accounts are at rest.
type request struct {
	open   int // accounts that are not
	agents []vedette.AgentID
	err    error
}

// expect lets a request wait for one more account.
func (f *Fleet) expect(id Request) {
	if id == 0 {
		return
	}
	r := f.requests[id]
	if r == nil {
		r = &request{}
		f.requests[id] = r
	}
	r.open++
}

// reply ends what expect began. The first error of a request is its error.
func (f *Fleet) reply(id Request, err error) {
	r := f.requests[id]
	if r == nil {
		return
	}
	r.open--
	if r.err == nil {
		r.err = err
	}
	if r.open > 0 {
		return
	}
	delete(f.requests, id)
	f.emit(Reply{Request: id, Agents: r.agents, Err: r.err})
}

// replyNow answers a request that need not wait for any account.
func (f *Fleet) replyNow(id Request, err error) {
	if id != 0 && f.requests[id] == nil {
		f.emit(Reply{Request: id, Err: err})
	}
}

// Cacher returns the agent that reports an account and its term; the zero MemberID if there is none.
func (f *Fleet) Cacher(name vedette.AccountName) (MemberID, vedette.Term) {
	a := f.accounts[name]
	if a == nil {
		return 0, 0
	}
	return a.cacher, a.term
}

// AccountStatus is who reports an account.
type AccountStatus struct {
	Account vedette.AccountName
	Cacher  MemberID // 0 for nobody
	Term    vedette.Term
	// CompleteAt is up to when the account was complete before the term, or else since when it is registered.
	CompleteAt time.Time
	// IsElsewhere says that an agent of another server reports it.
	IsElsewhere bool
}

// Accounts calls yield with each account that an agent has registered.
func (f *Fleet) Accounts(yield func(AccountStatus)) {
	for name, a := range f.accounts {
		yield(AccountStatus{name, a.cacher, a.term, a.completeAt, a.elsewhere != nil})
	}
}

// Registered returns the account as an agent last registered it, without namespaces; the zero Account if it has not.
func (f *Fleet) Registered(id MemberID, name vedette.AccountName) vedette.Account {
	if m := f.members[id]; m != nil {
		return m.registered[name].Account
	}
	return vedette.Account{}
}

// Role returns the role that an agent has in an account, for operators.
func (f *Fleet) Role(id MemberID, name vedette.AccountName) (a Assignment, ok bool) {
	if m := f.members[id]; m != nil {
		a, ok = m.roles[name]
	}
	return a, ok
}

// Roles calls yield with the roles that an agent has, for operators.
func (f *Fleet) Roles(id MemberID, yield func(Assignment)) {
	if m := f.members[id]; m != nil {
		for _, a := range m.roles {
			yield(a)
		}
	}
}
