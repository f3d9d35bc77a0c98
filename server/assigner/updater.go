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

// Update is the next message of a server to another one. What it says about an agent or an account replaces what was said before.
type Update struct {
	Agents     []assignment.AgentUpdate
	Left       []assignment.MemberID
	Accounts   []assignment.AccountUpdate
	Offers     []assignment.Offer
	Declined   []Declined
	IsDraining bool
}

// Declined says that a server does not take an account that it was offered.
type Declined struct {
	Account vedette.AccountName
	Number  assignment.Attempt
}

// Limits of updates.
const (
	// MaxUpdates is how many agents and accounts an update has.
	MaxUpdates = 1000
	// maxOffers is how many offers and answers to offers wait for a server. Those that do not fit are not made, and are taken for declined.
	maxOffers = 20_000
)

// updater tells other servers about the agents of this one. What waits for a slow server is at most one piece of news for each agent and
// account.
type updater struct {
	mu         sync.Mutex
	listeners  map[*Listener]struct{}
	isDraining bool
}

// Listener is another server that is told. Next is called by one goroutine.
type Listener struct {
	updater *updater
	server  vedette.ServerID

	// Guarded by the updater's mutex:
	agents   map[assignment.MemberID]assignment.AgentUpdate
	left     map[assignment.MemberID]struct{}
	accounts map[vedette.AccountName]assignment.AccountUpdate
	offers   []assignment.Offer
	declined []Declined
	isClosed bool          // a later listener of the same server has replaced it
	news     chan struct{} // holds a token when there is something to tell
}

// Listen returns a listener for another server, which is first told all. A server has one; a new one ends the last. The caller must call
// Close.
func (r *Registry) Listen(server vedette.ServerID) *Listener {
	l := &Listener{updater: &r.updater, server: server, agents: map[assignment.MemberID]assignment.AgentUpdate{},
		left: map[assignment.MemberID]struct{}{}, accounts: map[vedette.AccountName]assignment.AccountUpdate{}, news: make(chan struct{}, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	agents, accounts := r.fleet.Updates()
	r.updater.add(l, agents, accounts)
	return l
}

func (u *updater) add(l *Listener, agents []assignment.AgentUpdate, accounts []assignment.AccountUpdate) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.listeners == nil {
		u.listeners = map[*Listener]struct{}{}
	}
	for other := range u.listeners {
		if other.server == l.server {
			other.isClosed = true
			delete(u.listeners, other)
			other.wakeLocked()
		}
	}
	u.listeners[l] = struct{}{}
	l.putLocked(assignment.SendUpdate{Agents: agents, Accounts: accounts})
}

// Close ends the listener.
func (l *Listener) Close() {
	l.updater.mu.Lock()
	defer l.updater.mu.Unlock()
	delete(l.updater.listeners, l)
}

func (l *Listener) wakeLocked() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *Listener) putLocked(e assignment.SendUpdate) {
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

// enqueue puts an update into the queues of all listeners.
func (u *updater) enqueue(e assignment.SendUpdate) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for l := range u.listeners {
		l.putLocked(e)
	}
}

func (u *updater) drain() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.isDraining = true
}

// send calls put with the listener of a server, and reports whether there is one with room.
func (u *updater) send(server vedette.ServerID, put func(*Listener)) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for l := range u.listeners {
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

// Next waits for the next update, at most for assignment.UpdateInterval: then it returns an empty one.
func (l *Listener) Next(ctx context.Context) (Update, error) {
	timer := time.NewTimer(assignment.UpdateInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return Update{}, context.Cause(ctx)
	case <-l.news:
	case <-timer.C:
	}
	return l.take()
}

func (l *Listener) take() (Update, error) {
	l.updater.mu.Lock()
	defer l.updater.mu.Unlock()
	if l.isClosed {
		return Update{}, ErrReplaced
	}
	update := Update{IsDraining: l.updater.isDraining, Agents: takeSome(l.agents), Accounts: takeSome(l.accounts)}
	for id := range l.left {
		update.Left = append(update.Left, id)
	}
	clear(l.left)
	n := min(len(l.offers), MaxUpdates)
	update.Offers, l.offers = slices.Clone(l.offers[:n]), slices.Delete(l.offers, 0, n)
	n = min(len(l.declined), MaxUpdates)
	update.Declined, l.declined = slices.Clone(l.declined[:n]), slices.Delete(l.declined, 0, n)
	if len(l.agents)+len(l.accounts)+len(l.offers)+len(l.declined) > 0 {
		l.wakeLocked()
	}
	return update, nil
}

func takeSome[K comparable, V any](all map[K]V) (some []V) {
	for key, v := range all {
		if len(some) == MaxUpdates {
			break
		}
		some = append(some, v)
		delete(all, key)
	}
	return some
}
