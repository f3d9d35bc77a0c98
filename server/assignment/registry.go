// Package roster knows which agent serves which account: all that may, and the
// one that does. The one is the account's cacher; the others stand by, in the
// order in which they came, and the first of them takes over as soon as the
// cacher is gone.
//
// Guarantee: at most one agent writes an account's changes. The roster gives
// each cacher a term that is higher than all before it, and the store refuses
// whoever writes with another; the roster itself may be wrong, late or twice
// there, and nothing is harmed.
package assignment

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// termStore is where terms are kept.
type termStore interface {
	Acquire(ctx context.Context, account vedette.AccountName, h store.Holder) (vedette.Term, error)
	Release(ctx context.Context, account vedette.AccountName, term vedette.Term) error
	RecordLastSeen(ctx context.Context, sightings []store.LastSeen) error
	Marks(ctx context.Context, account vedette.AccountName) ([]store.FeedStatus, error)
	ReleaseAll(ctx context.Context) error
}

// registrar decides who may register an account. It returns what is stored of it,
// which a registration does not change.
type registrar interface {
	Register(ctx context.Context, a vedette.Account) (store.AccountRow, error)
}

// Role is what an agent is to an account.
type Role string

// The roles. They are part of the API.
const (
	Cacher  Role = "cacher"
	Standby Role = "standby"
	Refused Role = "refused"
	// Unreachable is an agent that is configured with an account and can't reach its
	// cluster. It is no role that an Assignment gives.
	Unreachable Role = "reaching"
)

// Assignment tells an agent its role.
type Assignment struct {
	Account vedette.AccountName
	Role    Role
	Term    vedette.Term                  // of a Cacher
	Marks   map[vedette.Feed]vedette.Mark // of a Cacher: how far each feed is stored
	Message string                        // of Refused: why
	Notice  string                        // what operators should know and the agent is not told; may be more than Message
}

// Registry is safe for concurrent use.
type Registry struct {
	server    vedette.ServerID
	store     termStore
	registrar registrar
	log       *slog.Logger

	storedFreshness map[vedette.AccountName]store.LastSeen // what is stored of freshness; storeFreshness's own

	mu         sync.Mutex
	slots      map[vedette.AccountName]*slot
	members    map[*Member]bool
	onAssigned []func() // called when an account has a new holder
}

// New returns an empty roster of one server.
func New(server vedette.ServerID, b termStore, r registrar, log *slog.Logger) *Registry {
	return &Registry{server: server, store: b, registrar: r, log: log,
		slots: map[vedette.AccountName]*slot{}, members: map[*Member]bool{}}
}

// Recover releases the accounts that a former process of this store held when
// it ended: none of their agents is connected to this one yet. It is called
// once, before the first agent is let in.
func (r *Registry) Recover(ctx context.Context) error { return r.store.ReleaseAll(ctx) }

// Run gives seats that the store would not give when they fell vacant to those
// who wait for them, and keeps in the store how fresh each account is, so that
// it is known after a restart. It returns when ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { // apart, because it may wait for the database
		runEvery(ctx, 15*time.Second, func() { r.storeFreshness(ctx) })
		return nil
	})
	runEvery(ctx, time.Second, func() { r.fillSlots(ctx) })
	return group.Wait()
}

// runEvery does something again and again, until ctx ends.
func runEvery(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// storeFreshness stores the freshness of those accounts that have got fresher.
func (r *Registry) storeFreshness(ctx context.Context) {
	var changed []store.LastSeen
	stored := map[vedette.AccountName]store.LastSeen{}
	for _, s := range r.allSlots() {
		m, term := s.current()
		if m == nil {
			continue
		}
		current := store.LastSeen{Account: s.account, Term: term, At: m.AccountFreshness(s.account)}
		if previous := r.storedFreshness[s.account]; !current.At.IsZero() && (previous.Term != term || current.At.After(previous.At)) {
			changed = append(changed, current)
		}
		stored[s.account] = current
	}
	if len(changed) == 0 {
		return
	}
	if err := r.store.RecordLastSeen(ctx, changed); err != nil {
		if ctx.Err() == nil {
			r.log.Warn("freshness could not be stored; tried again", "accounts", len(changed), "error", err)
		}
		return
	}
	r.storedFreshness = stored
}

// maxConcurrentFills is how many seats are looked after at once: an account that is locked
// in the database must not hold up all others.
const maxConcurrentFills = 8

// fillSlots looks after the seats of which there is something to do.
func (r *Registry) fillSlots(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(maxConcurrentFills)
	for _, s := range r.allSlots() {
		if s.needsFill() {
			group.Go(func() error { s.fill(ctx); return nil })
		}
	}
	_ = group.Wait() // none of them fails
}

func (r *Registry) allSlots() []*slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	slots := make([]*slot, 0, len(r.slots))
	for _, s := range r.slots {
		slots = append(slots, s)
	}
	return slots
}

func (r *Registry) getOrCreateSlot(name vedette.AccountName) *slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.slots[name]
	if s == nil {
		s = &slot{registry: r, account: name, sem: make(chan struct{}, 1)}
		r.slots[name] = s
	}
	return s
}

// findSlot returns an account's seat, or nil where no agent ever registered it: agents
// may speak of accounts that they can't reach, and of any that they make up.
func (r *Registry) findSlot(name vedette.AccountName) *slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slots[name]
}

// discard forgets a seat that nobody has to do with, so that names that were asked
// for once cost nothing. It needs the seat's turn. Who has found the seat before
// and asks for it now is told to look again.
func (r *Registry) discard(s *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cacher == nil && len(s.queue) == 0 && !s.releasePending {
		s.discarded = true
		delete(r.slots, s.account)
	}
}

// Freshness returns up to when an account is known to be complete, and whether an
// agent is reporting it now.
func (r *Registry) Freshness(account vedette.AccountName) (at time.Time, live bool) {
	r.mu.Lock()
	s := r.slots[account]
	r.mu.Unlock()
	if s == nil {
		return time.Time{}, false
	}
	m, _ := s.current()
	if m == nil {
		return time.Time{}, false
	}
	return m.AccountFreshness(account), true
}

// Cacher returns the agent that serves an account, and its term; nil where none
// does.
func (r *Registry) Cacher(account vedette.AccountName) (*Member, vedette.Term) {
	r.mu.Lock()
	s := r.slots[account]
	r.mu.Unlock()
	if s == nil {
		return nil, 0
	}
	return s.current()
}

// OnAssigned has f called whenever an account has got a new holder. f must not wait.
func (r *Registry) OnAssigned(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onAssigned = append(r.onAssigned, f)
}

func (r *Registry) notifyAssigned() {
	r.mu.Lock()
	callbacks := r.onAssigned
	r.mu.Unlock()
	for _, f := range callbacks {
		f()
	}
}

// Members returns the agents that are connected.
func (r *Registry) Members() []*Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	members := make([]*Member, 0, len(r.members))
	for m := range r.members {
		members = append(members, m)
	}
	return members
}
