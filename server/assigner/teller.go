package assigner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
)

// Told is what a server tells another one next. What is told of an agent or of an account replaces what was told of it before.
type Told struct {
	Agents     []assignment.ToldAgent
	Left       []assignment.MemberID
	Accounts   []assignment.ToldAccount
	Offers     []assignment.Offer
	Declined   []Declined
	IsDraining bool
}

// Declined says that a server does not take an account that it was offered.
type Declined struct {
	Account vedette.AccountName
	Number  assignment.Attempt
}

// Limits of what is told.
const (
	// MaxTold is how many agents and accounts are told at once.
	MaxTold = 1000
	// maxOffers is how many offers and answers to offers wait for a server. Those that do not fit are not made, and are taken for declined.
	maxOffers = 20_000
)

// teller tells other servers about the agents of this one. What waits for a slow server is at most one piece of news for each agent and
// account.
type teller struct {
	mu         sync.Mutex
	listeners  map[*Listener]struct{}
	isDraining bool
}

// Listener is another server that is told. Next is called by one goroutine.
type Listener struct {
	teller *teller
	server vedette.ServerID

	// Guarded by the teller's mutex:
	agents   map[assignment.MemberID]assignment.ToldAgent
	left     map[assignment.MemberID]struct{}
	accounts map[vedette.AccountName]assignment.ToldAccount
	offers   []assignment.Offer
	declined []Declined
	isClosed bool          // a later listener of the same server has replaced it
	news     chan struct{} // holds a token when there is something to tell
}

// Listen returns a listener for another server, which is first told all. A server has one; a new one ends the last. The caller must call
// Close.
func (r *Registry) Listen(server vedette.ServerID) *Listener {
	l := &Listener{teller: &r.teller, server: server, agents: map[assignment.MemberID]assignment.ToldAgent{},
		left: map[assignment.MemberID]struct{}{}, accounts: map[vedette.AccountName]assignment.ToldAccount{}, news: make(chan struct{}, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	agents, accounts := r.fleet.Told()
	r.teller.add(l, agents, accounts)
	return l
}

func (t *teller) add(l *Listener, agents []assignment.ToldAgent, accounts []assignment.ToldAccount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listeners == nil {
		t.listeners = map[*Listener]struct{}{}
	}
	for other := range t.listeners {
		if other.server == l.server {
			other.isClosed = true
			delete(t.listeners, other)
			other.wakeLocked()
		}
	}
	t.listeners[l] = struct{}{}
	l.putLocked(assignment.Tell{Agents: agents, Accounts: accounts})
}

// Close ends the listener.
func (l *Listener) Close() {
	l.teller.mu.Lock()
	defer l.teller.mu.Unlock()
	delete(l.teller.listeners, l)
}

func (l *Listener) wakeLocked() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *Listener) putLocked(e assignment.Tell) {
	for _, a := range e.Agents {
		l.agents[a.Member] = a
	}
	for _, id := range e.Left {
		delete(l.agents, id)
		l.left[id] = struct{}{}
	}
	for _, a := range e.Accounts {
		l.accounts[a.Account] = a
	}
	l.wakeLocked()
}

// tell tells all listeners.
func (t *teller) tell(e assignment.Tell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l := range t.listeners {
		l.putLocked(e)
	}
}

func (t *teller) drain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isDraining = true
}

// send calls put with the listener of a server, and reports whether there is one with room.
func (t *teller) send(server vedette.ServerID, put func(*Listener)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l := range t.listeners {
		if l.server == server && len(l.offers)+len(l.declined) < maxOffers {
			put(l)
			l.wakeLocked()
			return true
		}
	}
	return false
}

// ErrReplaced means that a server listens anew.
var ErrReplaced = errors.New("the server listens anew")

// Next waits for what is told next, at most assignment.TellInterval: then it is told that there is nothing.
func (l *Listener) Next(ctx context.Context) (Told, error) {
	timer := time.NewTimer(assignment.TellInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return Told{}, context.Cause(ctx)
	case <-l.news:
	case <-timer.C:
	}
	return l.take()
}

func (l *Listener) take() (Told, error) {
	l.teller.mu.Lock()
	defer l.teller.mu.Unlock()
	if l.isClosed {
		return Told{}, ErrReplaced
	}
	told := Told{IsDraining: l.teller.isDraining, Agents: takeSome(l.agents), Accounts: takeSome(l.accounts)}
	for id := range l.left {
		told.Left = append(told.Left, id)
	}
	clear(l.left)
	n := min(len(l.offers), MaxTold)
	told.Offers, l.offers = slices.Clone(l.offers[:n]), slices.Delete(l.offers, 0, n)
	n = min(len(l.declined), MaxTold)
	told.Declined, l.declined = slices.Clone(l.declined[:n]), slices.Delete(l.declined, 0, n)
	if len(l.agents)+len(l.accounts)+len(l.offers)+len(l.declined) > 0 {
		l.wakeLocked()
	}
	return told, nil
}

func takeSome[K comparable, V any](all map[K]V) (some []V) {
	for key, v := range all {
		if len(some) == MaxTold {
			break
		}
		some = append(some, v)
		delete(all, key)
	}
	return some
}
