package assignment

import (
	"cmp"
	"sync"
)

// ChangeReason is why an account got another cacher.
type ChangeReason string

// The reasons.
const (
	Joined       ChangeReason = "joined"   // no agent reported the account
	Left         ChangeReason = "left"     // the cacher disconnected, or its configuration no longer has the account
	Rejected     ChangeReason = "rejected" // the registration or the writes of the cacher were rejected
	FellSilent   ChangeReason = "silent"   // a standby took over from a silent agent
	Balancing    ChangeReason = "balance"  // the Balancer moved the account
	BalancedBack ChangeReason = "returned" // the Balancer moved the account back, because it was not up to date after its move
)

var changeReasons = []ChangeReason{Joined, Left, Rejected, FellSilent, Balancing, BalancedBack}

// CacherChanges counts the changes of cachers for one reason.
type CacherChanges struct {
	Done   int64 // accounts that got another cacher
	Failed int64 // attempts that failed, for example because the database did not answer; the next one counts anew
}

// changeCounter counts changes of cachers. It is safe for concurrent use.
type changeCounter struct {
	mu     sync.Mutex
	counts map[ChangeReason]CacherChanges
}

func (c *changeCounter) add(reason ChangeReason, n CacherChanges) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[ChangeReason]CacherChanges{}
	}
	sum := c.counts[reason]
	c.counts[reason] = CacherChanges{sum.Done + n.Done, sum.Failed + n.Failed}
}

// CacherChanges returns how many accounts got another cacher since the server started, for each
// reason.
func (r *Registry) CacherChanges() map[ChangeReason]CacherChanges {
	r.changes.mu.Lock()
	defer r.changes.mu.Unlock()
	counts := map[ChangeReason]CacherChanges{}
	for _, reason := range changeReasons {
		counts[reason] = r.changes.counts[reason]
	}
	return counts
}

// vacancy is why the account has no cacher, or is about to get another one. The zero value is for an
// account that no agent reports. It belongs to the slot.
type vacancy struct {
	reason ChangeReason
	former *Member // the cacher while the store is asked for a new term; nil if it has left
}

// beginMove notes why the cacher is about to be replaced.
func (s *slot) beginMove(reason ChangeReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vacancy.reason = reason
}

// countChangeLocked counts that an agent has become the cacher. A cacher that was assigned again is no
// change.
func (s *slot) countChangeLocked(m *Member) {
	if s.vacancy.former != m {
		s.registry.changes.add(s.vacancy.reasonOrJoined(), CacherChanges{Done: 1})
	}
	s.vacancy = vacancy{}
}

// vacateLocked notes why the cacher has left. Without a standby, the reason of the next change is Joined.
func (s *slot) vacateLocked(m *Member, reason ChangeReason) {
	if m != s.cacher && m != s.vacancy.former {
		return
	}
	s.vacancy = vacancy{}
	if len(s.queue) > 0 {
		s.vacancy.reason = reason
	}
}

// countFailure counts an attempt to assign a cacher that failed.
func (s *slot) countFailure() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registry.changes.add(s.vacancy.reasonOrJoined(), CacherChanges{Failed: 1})
}

func (v vacancy) reasonOrJoined() ChangeReason { return cmp.Or(v.reason, Joined) }
