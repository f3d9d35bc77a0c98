// Package queue decides which feed reads its snapshot next, within a Budget for all accounts of an agent.
package queue

import (
	"slices"
	"sync"
)

// TurnLength is how many snapshots an account begins before the next account has its turn. An
// ordinary account completes its first sync in one turn, so that some accounts are live early. An
// account with thousands of feeds does not delay the others. The turn of an account whose API server is
// silent is one snapshot.
const TurnLength = 16

// New returns an empty queue.
func New(b Budget) *Queue { return &Queue{budget: b.withDefaults()} }

// Queue decides which feed reads its snapshot next, within a Budget. Accounts take turns, in
// the order in which they came. An account whose own limit is reached does not hold up the others.
type Queue struct {
	budget Budget

	mu     sync.Mutex
	fast   int // snapshots that run with a shared permit
	verify int // verifications among them
	slow   int // snapshots that run and began without a shared permit
	total  int // all that run
	order  []*Account
	counts waitCounts // of all accounts
}

// Account holds the waiting feeds of one account. Its fields belong to the Queue, which
// has the account in order while a feed waits.
type Account struct {
	waiting       []*Ticket
	counts        waitCounts // of waiting
	running, slow int        // see Queue
	granted       int        // in the current turn
	isSlow        bool       // its API server is silent
}

// Ticket is the place of one feed in the queue.
type Ticket struct {
	Slow     bool          // begins without a shared permit; settled once granted
	verifies bool          // reads for a verification
	Granted  chan struct{} // closed when the feed may read
}

// Enqueue adds a feed to the queue of its account. The caller must call Cancel or Release.
func (q *Queue) Enqueue(a *Account) *Ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &Ticket{Slow: a.isSlow, Granted: make(chan struct{})}
	if len(a.waiting) == 0 {
		if a.running == 0 {
			a.granted = 0
		}
		q.order = slices.Insert(q.order, q.placeLocked(a.isSlow), a)
	}
	a.waiting = append(a.waiting, t)
	a.counts.add(t, 1)
	q.counts.add(t, 1)
	q.dispatchLocked()
	return t
}

// placeLocked returns the place of an account that comes: the last one, or before the silent ones that
// are last, because each of them takes as long as a request may hang.
func (q *Queue) placeLocked(slow bool) int {
	place := len(q.order)
	for !slow && place > 0 && q.order[place-1].waiting[0].Slow {
		place--
	}
	return place
}

// SetSlow notes whether the API server of the account is silent, also for its feeds that wait already. A
// silent one lets all other accounts go first: with a small budget, each of its lists holds them up until
// the request times out.
func (q *Queue) SetSlow(a *Account, slow bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a.isSlow == slow {
		return
	}
	a.isSlow = slow
	q.setSlowLocked(a, slow)
	if slow && len(a.waiting) > 0 {
		q.endTurnLocked(a)
	}
	q.dispatchLocked()
}

func (q *Queue) setSlowLocked(a *Account, slow bool) {
	for _, t := range a.waiting {
		a.counts.add(t, -1)
		q.counts.add(t, -1)
		t.Slow = slow
		a.counts.add(t, 1)
		q.counts.add(t, 1)
	}
}

// TryGrant returns a ticket that is granted for a verification, unless first syncs have or wait for all permits.
// Feeds that wait only for the limits of their own account do not count: those of a cluster that hangs wait
// for ever. Verifications have half of the shared permits at most, so that a first sync always finds one soon.
func (q *Queue) TryGrant(a *Account) (*Ticket, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &Ticket{Slow: a.isSlow, verifies: true, Granted: make(chan struct{})}
	var one waitCounts
	one.add(t, 1)
	if !q.allowsLocked(a, one) || !a.isSlow && q.verify >= max(1, q.budget.Fast/2) {
		return nil, false
	}
	q.countLocked(a, t)
	return t, true
}

// Cancel removes a feed that no longer waits.
func (q *Queue) Cancel(a *Account, t *Ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(a.waiting, t); i >= 0 {
		q.removeLocked(a, i)
		return
	}
	if !t.Slow {
		q.fast--
	}
	q.releaseLocked(a, t)
}

// ReleaseFast gives back a shared permit. The snapshot continues to count in the other limits.
func (q *Queue) ReleaseFast(t *Ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fast--
	if t.verifies {
		q.verify--
	}
	q.dispatchLocked()
}

// Release ends a snapshot, after its shared permit was given back.
func (q *Queue) Release(a *Account, t *Ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseLocked(a, t)
}

func (q *Queue) releaseLocked(a *Account, t *Ticket) {
	q.total--
	a.running--
	if t.Slow {
		q.slow--
		a.slow--
	}
	q.dispatchLocked()
}

// Position returns how many accounts have their turn before this one, and how many wait. It reports
// false if the account does not wait, or reads a snapshot already.
func (q *Queue) Position(a *Account) (before, of int, waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before = slices.Index(q.order, a)
	return before, len(q.order), before >= 0 && a.running == 0
}

// IsBlocked reports whether feeds of API servers that respond wait only because the whole budget is used.
func (q *Queue) IsBlocked() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts.fast > 0 && q.total >= q.budget.Total
}

// Load is how much of the budget is used.
type Load struct {
	Fast      int // snapshots that run with a shared permit
	Verifying int // verifications among them
	Slow      int // snapshots that run and began without a shared permit
	Total     int // all that run
	Waiting   int // feeds that wait
	Accounts  int // with feeds that wait
}

// Load returns how much of the budget is used.
func (q *Queue) Load() Load {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Load{Fast: q.fast, Verifying: q.verify, Slow: q.slow, Total: q.total,
		Waiting: q.counts.fast + q.counts.slow, Accounts: len(q.order)}
}

// Budget returns the budget.
func (q *Queue) Budget() Budget { return q.budget }
