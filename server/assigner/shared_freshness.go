package assigner

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
)

const (
	// followAge is how old the freshness of an account may be that begins to follow the others, and leaveAge that of one that goes on to:
	// what is stored of all is the oldest of them.
	followAge = freshnessInterval
	leaveAge  = 2 * freshnessInterval
)

// sharedFreshness decides how the freshness of accounts is stored: once for all that are fresh, so that nearly nothing is written however
// many they are, and separately for the others. It does no I/O. docs/decisions/0193 says more.
//
// No stored time may be later than the account's. So an account that is less fresh is stored separately before the
// time of all rises. One whose answer from the store was lost may follow or not.
type sharedFreshness struct {
	followers map[vedette.AccountName]follower
	separate  map[vedette.AccountName]registry.LastSeen // as last stored, of accounts that do not follow
	at        time.Time                                 // as last stored
}

// follower is an account that follows, or may.
type follower struct {
	term      vedette.Term
	seen      time.Time // up to when it was complete, as last known
	isCertain bool      // the store has it
}

// freshnessPlan is what to store, in this order. What cannot be stored ends it.
type freshnessPlan struct {
	separate []registry.LastSeen
	leaving  []vedette.AccountName // of those in separate
	// at is up to when all accounts that follow are complete; zero if nothing of them is to be stored. joining are those that begin to.
	at      time.Time
	joining []registry.LastSeen

	current []registry.LastSeen // of all accounts
}

func newSharedFreshness() sharedFreshness {
	return sharedFreshness{followers: map[vedette.AccountName]follower{}, separate: map[vedette.AccountName]registry.LastSeen{}}
}

// plan returns what to store for the accounts that agents report now.
func (s *sharedFreshness) plan(now time.Time, current []registry.LastSeen) freshnessPlan {
	p := freshnessPlan{current: current}
	gone := map[vedette.AccountName]bool{}
	for name := range s.followers {
		gone[name] = true
	}
	for _, c := range current {
		f, follows := s.followers[c.Account]
		follows = follows && f.term == c.Term // what is stored of an earlier term counts no more
		if s.mayFollow(now, c, follows) {
			delete(gone, c.Account)
			s.follow(&p, c, follows && f.isCertain)
			continue
		}
		if !follows {
			delete(gone, c.Account)
			delete(s.followers, c.Account)
			p.storeSeparately(changesOf(c, s.separate[c.Account]))
			continue
		}
		f.seen = later(f.seen, c.At)
		s.followers[c.Account] = f
	}
	if p.at.Equal(s.at) && len(p.joining) == 0 {
		p.at = time.Time{}
	}
	for name := range gone {
		f := s.followers[name]
		f.isCertain = false // until it is stored that it has left
		s.followers[name] = f
		p.leaving = append(p.leaving, name)
		p.separate = append(p.separate, registry.LastSeen{Account: name, Term: f.term, At: f.seen})
	}
	return p
}

func (*sharedFreshness) mayFollow(now time.Time, c registry.LastSeen, follows bool) bool {
	age := now.Sub(c.At)
	return !c.At.IsZero() && (age < followAge || follows && age < leaveAge)
}

func (s *sharedFreshness) follow(p *freshnessPlan, c registry.LastSeen, isCertain bool) {
	s.followers[c.Account] = follower{term: c.Term, seen: c.At, isCertain: isCertain}
	if p.at.IsZero() || c.At.Before(p.at) {
		p.at = c.At
	}
	if !isCertain {
		p.joining = append(p.joining, registry.LastSeen{Account: c.Account, Term: c.Term, At: c.At})
	}
	// What failing feeds were complete up to has a row of its own.
	update := changesOf(c, s.separate[c.Account])
	update.At = time.Time{}
	p.storeSeparately(update)
}

func (p *freshnessPlan) storeSeparately(update registry.LastSeen) {
	if isKnown(update) {
		p.separate = append(p.separate, update)
	}
}

// ended notes that the freshness of accounts was stored separately because their terms have ended.
func (s *sharedFreshness) ended(all []registry.LastSeen) {
	for _, seen := range all {
		if s.followers[seen.Account].term == seen.Term {
			delete(s.followers, seen.Account)
		}
	}
}

// storedSeparately notes that the first part of a plan is stored.
func (s *sharedFreshness) storedSeparately(p freshnessPlan) {
	for _, name := range p.leaving {
		delete(s.followers, name)
	}
	clear(s.separate)
	for _, c := range p.current {
		s.separate[c.Account] = c
	}
}

// joined notes that all of a plan is stored.
func (s *sharedFreshness) joined(p freshnessPlan) {
	s.at = p.at
	for _, c := range p.joining {
		f := s.followers[c.Account]
		f.isCertain = true
		s.followers[c.Account] = f
	}
}
