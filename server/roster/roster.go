// Package roster knows which agent serves which account: all that may, and the
// one that does. The one is the account's cacher; the others stand by, in the
// order in which they came, and the first of them takes over as soon as the
// cacher is gone.
//
// Guarantee: at most one agent writes an account's changes. The roster gives
// each cacher a term that is higher than all before it, and the store refuses
// whoever writes with another; the roster itself may be wrong, late or twice
// there, and nothing is harmed.
package roster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// book is where terms are kept.
type book interface {
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
	// Reaching is an agent that is configured with an account and can't reach its
	// cluster. It is no role that an Assignment gives.
	Reaching Role = "reaching"
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

// Roster is safe for concurrent use.
type Roster struct {
	server    vedette.ServerID
	book      book
	registrar registrar
	log       *slog.Logger

	recorded map[vedette.AccountName]store.LastSeen // what is stored of freshness; recordSeen's own

	mu      sync.Mutex
	seats   map[vedette.AccountName]*seat
	members map[*Member]bool
	seated  []func() // called when an account has a new holder
}

// New returns an empty roster of one server.
func New(server vedette.ServerID, b book, r registrar, log *slog.Logger) *Roster {
	return &Roster{server: server, book: b, registrar: r, log: log,
		seats: map[vedette.AccountName]*seat{}, members: map[*Member]bool{}}
}

// Recover releases the accounts that a former process of this store held when
// it ended: none of their agents is connected to this one yet. It is called
// once, before the first agent is let in.
func (r *Roster) Recover(ctx context.Context) error { return r.book.ReleaseAll(ctx) }

// Run gives seats that the store would not give when they fell vacant to those
// who wait for them, and keeps in the store how fresh each account is, so that
// it is known after a restart. It returns when ctx ends.
func (r *Roster) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { // apart, because it may wait for the database
		every(ctx, 15*time.Second, func() { r.recordSeen(ctx) })
		return nil
	})
	every(ctx, time.Second, func() { r.fillSeats(ctx) })
	return group.Wait()
}

// every does something again and again, until ctx ends.
func every(ctx context.Context, pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
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

// recordSeen stores the freshness of those accounts that have got fresher.
func (r *Roster) recordSeen(ctx context.Context) {
	var news []store.LastSeen
	recorded := map[vedette.AccountName]store.LastSeen{}
	for _, s := range r.allSeats() {
		m, term := s.current()
		if m == nil {
			continue
		}
		now := store.LastSeen{Account: s.account, Term: term, At: m.FreshOf(s.account)}
		if before := r.recorded[s.account]; !now.At.IsZero() && (before.Term != term || now.At.After(before.At)) {
			news = append(news, now)
		}
		recorded[s.account] = now
	}
	if len(news) == 0 {
		return
	}
	if err := r.book.RecordLastSeen(ctx, news); err != nil {
		if ctx.Err() == nil {
			r.log.Warn("freshness could not be stored; tried again", "accounts", len(news), "error", err)
		}
		return
	}
	r.recorded = recorded
}

// seatsAtOnce is how many seats are looked after at once: an account that is locked
// in the database must not hold up all others.
const seatsAtOnce = 8

// fillSeats looks after the seats of which there is something to do.
func (r *Roster) fillSeats(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(seatsAtOnce)
	for _, s := range r.allSeats() {
		if s.unsettled() {
			group.Go(func() error { s.fill(ctx); return nil })
		}
	}
	_ = group.Wait() // none of them fails
}

func (r *Roster) allSeats() []*seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	seats := make([]*seat, 0, len(r.seats))
	for _, s := range r.seats {
		seats = append(seats, s)
	}
	return seats
}

func (r *Roster) seat(name vedette.AccountName) *seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seats[name]
	if s == nil {
		s = &seat{roster: r, account: name, turn: make(chan struct{}, 1)}
		r.seats[name] = s
	}
	return s
}

// seatOf returns an account's seat, or nil where no agent ever registered it: agents
// may speak of accounts that they can't reach, and of any that they make up.
func (r *Roster) seatOf(name vedette.AccountName) *seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seats[name]
}

// discard forgets a seat that nobody has to do with, so that names that were asked
// for once cost nothing. It needs the seat's turn. Who has found the seat before
// and asks for it now is told to look again.
func (r *Roster) discard(s *seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder == nil && len(s.queue) == 0 && !s.owed {
		s.discarded = true
		delete(r.seats, s.account)
	}
}

// Fresh returns up to when an account is known to be complete, and whether an
// agent is reporting it now.
func (r *Roster) Fresh(account vedette.AccountName) (at time.Time, live bool) {
	r.mu.Lock()
	s := r.seats[account]
	r.mu.Unlock()
	if s == nil {
		return time.Time{}, false
	}
	m, _ := s.current()
	if m == nil {
		return time.Time{}, false
	}
	return m.FreshOf(account), true
}

// Holder returns the agent that serves an account, and its term; nil where none
// does.
func (r *Roster) Holder(account vedette.AccountName) (*Member, vedette.Term) {
	r.mu.Lock()
	s := r.seats[account]
	r.mu.Unlock()
	if s == nil {
		return nil, 0
	}
	return s.current()
}

// OnSeated has f called whenever an account has got a new holder. f must not wait.
func (r *Roster) OnSeated(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seated = append(r.seated, f)
}

func (r *Roster) tellSeated() {
	r.mu.Lock()
	seated := r.seated
	r.mu.Unlock()
	for _, f := range seated {
		f()
	}
}

// Members returns the agents that are connected.
func (r *Roster) Members() []*Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	members := make([]*Member, 0, len(r.members))
	for m := range r.members {
		members = append(members, m)
	}
	return members
}
