package assignment

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// AgentUpdate is what a server tells the others about an agent that is connected to it.
type AgentUpdate struct {
	Member   MemberID // at that server
	ID       vedette.AgentID
	ZoneID   string
	Load     int64 // the weights of the accounts that it reports
	IsSilent bool
	// Heard is for how long the agent was heard regularly, Settled since when it is connected and was not silent. Both were so when it was
	// told, so counted from when that arrives they are too short and never too long.
	Heard, Settled time.Duration
}

// Likeness is equal for agents that have registered an account alike.
type Likeness [16]byte

// StandbyUpdate is an agent that could report an account.
type StandbyUpdate struct {
	Member    MemberID
	Likeness  Likeness
	IsFailing bool // the agent reports an error of the account
}

// AccountUpdate is what a server tells the others about an account that its agents have registered.
type AccountUpdate struct {
	Account vedette.AccountName
	// Term is that in which an agent of the server reports the account, or in which the server has released it; 0 if neither.
	Term     vedette.Term
	IsHeld   bool
	Standbys []StandbyUpdate
}

func (t *AccountUpdate) isEmpty() bool { return t.Term == 0 && len(t.Standbys) == 0 }

func (t *AccountUpdate) equals(other *AccountUpdate) bool {
	return t.Term == other.Term && t.IsHeld == other.IsHeld && slices.Equal(t.Standbys, other.Standbys)
}

// peer is another server, as it has described itself. Nothing that it says is believed without the store: it only makes this server
// look there, or offer accounts.
type peer struct {
	joinedAt   time.Time // when it was heard for the first time, or again
	heardAt    time.Time
	isDraining bool
	agents     map[MemberID]*remoteAgent
	accounts   map[vedette.AccountName]AccountUpdate
	// balanceAfter is when the next account is offered to it only to balance agents, because it did not take the last one.
	balanceAfter time.Time
	// misses are agents in a row that did not go there although it has the fewest. Until ignoredUntil, it counts as one that agents do
	// not reach.
	misses       int
	ignoredUntil time.Time
}

// remoteAgent is an agent of another server.
type remoteAgent struct {
	AgentUpdate

	server       vedette.ServerID
	heardSince   time.Time
	settledSince time.Time
}

const (
	// UpdateInterval is how often a server tells others something, even if nothing has changed.
	UpdateInterval = time.Second
	// PeerTimeout is after what silence of a server nothing is offered to its agents.
	PeerTimeout = 3 * UpdateInterval
	// maxUpdateLoad is more than any agent has, and does not overflow.
	maxUpdateLoad = math.MaxInt64 >> 20
	// What one server may tell: more is ignored, and comes to its agents when they register accounts that nobody has.
	maxUpdateAgents   = 100_000
	maxUpdateAccounts = 200_000
)

func (f *Fleet) peerUpdate(e PeerUpdated) {
	p := f.peers[e.Server]
	if p == nil {
		p = &peer{joinedAt: f.now, agents: map[MemberID]*remoteAgent{}, accounts: map[vedette.AccountName]AccountUpdate{}}
		f.peers[e.Server] = p
	}
	p.heardAt, p.isDraining = f.now, e.IsDraining
	for _, t := range e.Agents {
		if len(p.agents) >= maxUpdateAgents && p.agents[t.Member] == nil {
			continue
		}
		t.Load = min(max(0, t.Load), maxUpdateLoad)
		p.agents[t.Member] = &remoteAgent{t, e.Server, f.now.Add(-max(0, t.Heard)), f.now.Add(-max(0, t.Settled))}
	}
	for _, id := range e.Left {
		delete(p.agents, id)
	}
	for _, t := range e.Accounts {
		if len(t.Standbys) == 0 {
			delete(p.accounts, t.Account)
		} else if _, known := p.accounts[t.Account]; known || len(p.accounts) < maxUpdateAccounts {
			p.accounts[t.Account] = t
		}
		if t.Term != 0 {
			f.hint(e.Server, t)
		}
	}
}

// peerLost forgets what a server has said. It says all again when it is heard again.
func (f *Fleet) peerLost(e PeerLost) { delete(f.peers, e.Server) }

// hint handles that another server says that it has, or has released, an account.
func (f *Fleet) hint(server vedette.ServerID, t AccountUpdate) {
	a := f.accounts[t.Account]
	switch {
	case a == nil:
	case t.IsHeld && t.Term > a.knownTerm():
		f.look(a)
	case t.IsHeld || a.elsewhere == nil || t.Term < a.elsewhere.Term:
	case a.elsewhere.Server == server:
		f.endElsewhere(ElsewhereEnded{Account: a.name, Term: t.Term}) // the store is asked before it is assigned
	default:
		f.look(a)
	}
}

// knownTerm returns the term in which somebody has the account; 0 if nobody has, as far as is known.
func (a *account) knownTerm() vedette.Term {
	switch {
	case a.cacher != 0:
		return a.term
	case a.elsewhere != nil:
		return a.elsewhere.Term
	}
	return 0
}

// look asks who has an account, once at a time.
func (f *Fleet) look(a *account) {
	if !a.isLooking {
		a.isLooking = true
		f.emit(Look{a.name})
	}
}

// looked compares who has an account with what the fleet knows. An account to which something happens is left alone: the store decides
// by its term.
func (f *Fleet) looked(e Looked) {
	a := f.accounts[e.Account]
	if a == nil {
		return
	}
	a.isLooking = false
	former := f.members[a.cacher]
	switch {
	case e.Err != nil || !a.isAtRest():
	case former != nil && e.Elsewhere != nil && e.Elsewhere.Term > a.term:
		f.loseTo(a, e.Elsewhere)
		f.proceed(a)
	case former != nil && (e.Exists && e.Term > a.term || !e.Exists && e.Term == a.term):
		f.revoke(Revoked{Member: former.id, Account: a.name, Term: a.term, Reason: ErrOutdated})
	case former != nil:
	case e.Elsewhere != nil && e.Elsewhere.Term > a.knownTerm():
		f.setElsewhere(a, e.Elsewhere)
		f.proceed(a)
	case e.Elsewhere == nil && a.elsewhere != nil:
		f.endElsewhere(ElsewhereEnded{Account: a.name, Term: max(a.elsewhere.Term, e.Term)})
	}
}

// ErrOutdated means that the store has a later term of an account than that of its cacher.
var ErrOutdated = vedette.Errorf(vedette.Conflict, "another agent has taken over the account")

// loseTo makes the cacher a standby, because an agent of another server has taken over.
func (f *Fleet) loseTo(a *account, e *Elsewhere) {
	former := f.members[a.cacher]
	f.carry(a, nil)
	a.cacher = 0
	a.increase = nil
	a.gap = cacherGap{}
	f.setElsewhere(a, e)
	f.send(former, Assignment{Account: a.name, Role: Standby})
	f.log.Info("an agent of another server reports the account now", "account", a.name, "agent", e.Agent, "server", e.Server,
		"former", former.ID)
}

// setElsewhere notes that the store has given an account to an agent of another server. So it needs nothing any more of what this server
// was about to do.
func (f *Fleet) setElsewhere(a *account, e *Elsewhere) {
	a.elsewhere, a.handover = e, false
	a.unreleased, a.uncertain = false, false
	a.releasedTerm = 0
	f.endDeferral(a)
	f.endOffer(a, e)
}

// likenessOf returns what agents that register an account alike have in common.
func likenessOf(shape string, p *Prepared) Likeness {
	h := sha256.New()
	write := func(text string) {
		h.Write(binary.AppendUvarint(nil, uint64(len(text))))
		h.Write([]byte(text))
	}
	write(shape)
	for _, name := range slices.Sorted(maps.Keys(p.digests)) {
		write(name)
		digest := p.digests[name]
		h.Write(digest[:])
	}
	return Likeness(h.Sum(nil))
}

// touch notes that what is told of an account may have changed.
func (f *Fleet) touch(a *account) {
	if f.isShared {
		f.touched[a] = struct{}{}
	}
}

// emitUpdates emits what has changed for other servers.
func (f *Fleet) emitUpdates() {
	if len(f.touched) == 0 {
		return
	}
	var changed []AccountUpdate
	for a := range f.touched {
		if t := a.currentUpdate(); !t.equals(&a.sent) {
			a.sent = t
			changed = append(changed, t)
		}
	}
	clear(f.touched)
	if len(changed) > 0 {
		slices.SortFunc(changed, func(a, b AccountUpdate) int { return cmp.Compare(a.Account, b.Account) })
		f.emit(SendUpdate{Accounts: changed})
	}
}

// currentUpdate returns what other servers should know. Standbys of an account that is reported here do not matter to them: they
// end with this server.
func (a *account) currentUpdate() AccountUpdate {
	t := AccountUpdate{Account: a.name}
	if a.cacher != 0 {
		t.Term, t.IsHeld = a.term, true
		return t
	}
	if a.isAtRest() && a.elsewhere == nil {
		t.Term = a.releasedTerm
	}
	for _, m := range a.candidates {
		if m.roles[a.name].Role == Standby {
			t.Standbys = append(t.Standbys, StandbyUpdate{m.id, m.registered[a.name].likeness, m.failing[a.name]})
		}
	}
	return t
}

func (f *Fleet) currentUpdate(m *member) AgentUpdate {
	return AgentUpdate{Member: m.id, ID: m.ID, ZoneID: m.ZoneID, Load: m.load, IsSilent: m.liveness.isSilent(), Heard: m.liveness.heardFor(),
		Settled: f.settledFor(m)}
}

// updateAgents emits what has changed of agents: at once whether they are heard, and their loads each second.
func (f *Fleet) updateAgents(withLoads bool) {
	if !f.isShared {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(f.members)) {
		m := f.members[id]
		l := &m.liveness
		now := sentState{true, l.isSilent(), l.heardTicks > 0, l.returnedAt, m.sent.load}
		if withLoads {
			now.load = m.load
		}
		if now != m.sent {
			m.sent = now
			f.emit(SendUpdate{Agents: []AgentUpdate{f.currentUpdate(m)}})
		}
	}
}

// sentState is what decides whether other servers are told of an agent again.
type sentState struct {
	isUpdated         bool
	isSilent, isHeard bool
	returnedAt        time.Time
	load              int64
}

// Updates returns all that other servers should know.
func (f *Fleet) Updates() (agents []AgentUpdate, accounts []AccountUpdate) {
	for _, m := range f.members {
		agents = append(agents, f.currentUpdate(m))
	}
	for _, a := range f.accounts {
		if t := a.currentUpdate(); !t.isEmpty() {
			accounts = append(accounts, t)
		}
	}
	return agents, accounts
}
