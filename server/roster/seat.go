package roster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// seat is one account's place: the agents that may serve it, in the order in
// which they came, and the one that does.
type seat struct {
	roster  *Roster
	account vedette.AccountName

	mu     sync.Mutex // held while the store is asked, so that an account changes hands one at a time
	queue  []*Member
	holder *Member
	term   vedette.Term
	owed   bool // the store has not been told that nobody holds the term any more
}

func (s *seat) current() (*Member, vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holder, s.term
}

// add puts an agent at the end of the queue. One that holds the seat already
// gets it anew: it has registered again because it starts over.
func (s *seat) add(ctx context.Context, m *Member) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.enter(s.account) {
		return nil
	}
	if !slices.Contains(s.queue, m) {
		s.queue = append(s.queue, m)
	}
	if s.holder != nil && s.holder != m {
		m.tell(Assignment{Account: s.account, Role: Standby})
		return nil
	}
	return s.giveLocked(ctx, m)
}

// giveLocked makes an agent the cacher, in a new term.
func (s *seat) giveLocked(ctx context.Context, m *Member) error {
	s.holder = nil
	term, err := s.roster.book.Take(ctx, s.account, store.Holder{Agent: m.ID, Server: s.roster.server, Shape: m.shapeOf(s.account)})
	if err != nil {
		return fmt.Errorf("make agent %s the cacher of %s: %w", m.ID, s.account, err)
	}
	feeds, err := s.roster.book.Marks(ctx, s.account)
	if err != nil {
		return fmt.Errorf("read marks of %s: %w", s.account, err)
	}
	marks := make(map[vedette.Feed]vedette.Mark, len(feeds))
	for _, f := range feeds {
		marks[f.Feed] = f.Mark
	}
	s.holder, s.term, s.owed = m, term, false
	s.roster.log.Info("account has a cacher", "account", s.account, "agent", m.ID, "term", term)
	m.tell(Assignment{Account: s.account, Role: Cacher, Term: term, Marks: marks})
	s.roster.tellSeated()
	return nil
}

// remove takes an agent out of the queue, and gives the seat on if it was its.
func (s *seat) remove(ctx context.Context, m *Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(other *Member) bool { return other == m })
	if s.holder == m {
		s.vacateLocked(ctx)
	}
}

// void is remove for an agent that the store has refused.
func (s *seat) void(ctx context.Context, m *Member, term vedette.Term, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder != m || s.term != term {
		return
	}
	s.roster.log.Warn("account taken from its cacher", "account", s.account, "agent", m.ID, "term", term, "error", reason)
	s.queue = slices.DeleteFunc(s.queue, func(other *Member) bool { return other == m })
	m.tell(Assignment{Account: s.account, Role: Refused, Message: showable(reason)})
	s.vacateLocked(ctx)
}

// showable is what an agent may be told of an error.
func showable(err error) string {
	if vedette.KindOf(err) == "" {
		return "internal error; the server's log has the details"
	}
	return err.Error()
}

func (s *seat) vacateLocked(ctx context.Context) {
	s.holder, s.owed = nil, true
	if err := s.releaseLocked(ctx); err != nil {
		s.roster.log.Warn("account could not be released; tried again", "account", s.account, "error", err)
	}
	s.nextLocked(ctx)
}

// releaseLocked tells the store that nobody holds the account, from when on its
// grace period counts. A next cacher's term makes it needless.
func (s *seat) releaseLocked(ctx context.Context) error {
	if !s.owed {
		return nil
	}
	err := s.roster.book.Release(ctx, s.account, s.term)
	s.owed = err != nil
	return err
}

// fill gives a seat that nobody holds to the first who waits for it, and tells
// the store where that could not be told in time.
func (s *seat) fill(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder != nil {
		return
	}
	if len(s.queue) > 0 {
		s.nextLocked(ctx)
	}
	if err := s.releaseLocked(ctx); err != nil && ctx.Err() == nil {
		s.roster.log.Debug("account can't be released yet", "account", s.account, "error", err)
	}
}

// nextLocked gives the seat to the first in the queue that can be given it. A
// store that does not answer leaves it empty, and Run tries again.
func (s *seat) nextLocked(ctx context.Context) {
	for _, m := range slices.Clone(s.queue) {
		err := s.giveLocked(ctx, m)
		if err == nil {
			return
		}
		s.roster.log.Warn("account waits for a cacher", "account", s.account, "agent", m.ID, "error", err)
	}
}
