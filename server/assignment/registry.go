// Package assignment decides which agent reports which account. Of the agents that may report an
// account, one is its cacher. The others are standbys. The one with the fewest objects takes over as
// soon as the cacher is gone. A Balancer moves accounts between agents that have registered them alike.
//
// Guarantee: at most one agent writes an account's changes. Each new cacher gets a term that is
// higher than all earlier terms of the account, and the store rejects writes of any other term.
// Therefore a registry that is wrong, late or duplicated does no harm.
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

// termStore is the part of the store that keeps terms and freshness.
type termStore interface {
	Acquire(ctx context.Context, account vedette.AccountName, h store.Holder) (vedette.Term, error)
	Release(ctx context.Context, account vedette.AccountName, term vedette.Term) error
	RecordLastSeen(ctx context.Context, sightings []store.LastSeen) error
	Marks(ctx context.Context, account vedette.AccountName) ([]store.FeedStatus, error)
	ReleaseAll(ctx context.Context) error
}

// registrar decides who may register an account. It returns the stored account, which an existing
// registration does not change.
type registrar interface {
	Register(ctx context.Context, a vedette.Account) (store.AccountRow, error)
}

// Role is an agent's role in an account.
type Role string

// The roles. These values are part of the API.
const (
	Cacher  Role = "cacher"
	Standby Role = "standby"
	Refused Role = "refused"
	// Unreachable means that the agent is configured with the account but cannot reach its cluster.
	// No Assignment has this role.
	Unreachable Role = "reaching"
)

// Assignment is an agent's role in one account.
type Assignment struct {
	Account vedette.AccountName
	Role    Role
	Term    vedette.Term                  // only with role Cacher
	Marks   map[vedette.Feed]vedette.Mark // only with role Cacher: up to where each feed is stored
	Message string                        // only with role Refused: the reason
	Notice  string                        // for operators, not sent to the agent; may say more than Message
	// Conflict is the cluster of a refused agent if the name belongs to another one; otherwise nil.
	// It is for operators and not sent to the agent.
	Conflict *vedette.Cluster
	// ErrorKind is the kind of the agent's account error. It is set only by Role and Roles.
	ErrorKind vedette.ErrorKind
	// Stalled reports whether changes of the account wait for the database. It is set only by Role and
	// Roles.
	Stalled bool
}

// Registry assigns accounts to the agents of one server. It is safe for concurrent use.
type Registry struct {
	server    vedette.ServerID
	store     termStore
	registrar registrar
	log       *slog.Logger
	changes   changeCounter

	storedFreshness map[vedette.AccountName]store.LastSeen // freshness as stored; used by storeFreshness only

	mu         sync.Mutex
	slots      map[vedette.AccountName]*slot
	members    map[*Member]bool
	onAssigned []func() // called when an account has a new cacher
}

// New returns an empty registry of one server.
func New(server vedette.ServerID, b termStore, r registrar, log *slog.Logger) *Registry {
	return &Registry{server: server, store: b, registrar: r, log: log,
		slots: map[vedette.AccountName]*slot{}, members: map[*Member]bool{}}
}

// Recover releases the accounts that an earlier process held when it ended, because none of their
// agents is connected to this process. Call it once, before the first agent connects.
func (r *Registry) Recover(ctx context.Context) error { return r.store.ReleaseAll(ctx) }

// Run fills empty slots that the store could not fill earlier, and stores each account's freshness
// so that it survives a restart. It also looks for agents with the same ID, and for silent ones. It
// returns when ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { // in its own goroutine because it may wait for the database
		runEvery(ctx, 15*time.Second, func() { r.storeFreshness(ctx) })
		return nil
	})
	group.Go(func() error {
		runEvery(ctx, duplicateInterval, func() { r.findDuplicates(time.Now()) })
		return nil
	})
	group.Go(func() error { return newSilenceWatch(r).run(ctx) })
	runEvery(ctx, time.Second, func() { r.fillSlots(ctx) })
	return group.Wait()
}

// runEvery calls do at each interval until ctx ends.
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

// storeFreshness stores the freshness of the accounts for which it has changed.
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
			r.log.Warn("retrying to store freshness", "accounts", len(changed), "error", err)
		}
		return
	}
	r.storedFreshness = stored
}

// maxConcurrentFills is how many slots are filled at once, because an account that is locked in the
// database must not delay the others.
const maxConcurrentFills = 8

// fillSlots fills the slots that need it.
func (r *Registry) fillSlots(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(maxConcurrentFills)
	for _, s := range r.allSlots() {
		if s.needsFill() {
			group.Go(func() error { s.fill(ctx); return nil })
		}
	}
	_ = group.Wait() // no function returns an error
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
		s = &slot{registry: r, account: name, sem: make(chan struct{}, 1), weight: baseWeight}
		r.slots[name] = s
	}
	return s
}

// findSlot returns an account's slot, or nil if no agent has registered the account. It does not
// create one, because agents may report account errors for any name, including invented ones.
func (r *Registry) findSlot(name vedette.AccountName) *slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slots[name]
}

// discard removes a slot that no agent uses, so that names that were registered once take no
// memory. The caller must hold the slot's lock. Callers that found the slot earlier get
// errDiscarded and look it up again.
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

// Freshness returns the time up to which an account is known to be complete, and whether an agent
// reports it now.
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

// Cacher returns the agent that reports an account and its term, or nil if there is none.
func (r *Registry) Cacher(account vedette.AccountName) (*Member, vedette.Term) {
	r.mu.Lock()
	s := r.slots[account]
	r.mu.Unlock()
	if s == nil {
		return nil, 0
	}
	return s.current()
}

// Registered returns the cluster of an account as an agent last registered it; the zero Cluster if the
// agent has not registered the account.
func (r *Registry) Registered(m *Member, account vedette.AccountName) vedette.Cluster {
	return m.registration(account).Cluster
}

// OnAssigned registers f to be called whenever an account has a new cacher. f must not block.
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

// Members returns the connected agents.
func (r *Registry) Members() []*Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	members := make([]*Member, 0, len(r.members))
	for m := range r.members {
		members = append(members, m)
	}
	return members
}
