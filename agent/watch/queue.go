package watch

import (
	"context"
	"slices"
	"sync"
)

// turnLength is how many snapshots an account begins before the next account has its turn. An
// ordinary account completes its first sync in one turn, so that some accounts are live early. An
// account with thousands of feeds does not delay the others. The turn of an account whose API server is
// silent is one snapshot.
const turnLength = 16

// snapshotQueue decides which feed reads its snapshot next, within a Budget. Accounts take turns, in
// the order in which they came. An account whose own limit is reached does not hold up the others.
type snapshotQueue struct {
	budget Budget

	mu     sync.Mutex
	fast   int // snapshots that run with a shared permit
	verify int // verifications among them
	slow   int // snapshots that run and began without a shared permit
	total  int // all that run
	order  []*accountQueue
	counts waitCounts // of all accounts
}

// accountQueue holds the waiting feeds of one account. Its fields belong to the snapshotQueue, which
// has the account in order while a feed waits.
type accountQueue struct {
	waiting       []*ticket
	counts        waitCounts // of waiting
	running, slow int        // see snapshotQueue
	granted       int        // in the current turn
}

// ticket is the place of one feed in the queue.
type ticket struct {
	slow     bool          // begins without a shared permit; settled once granted
	verifies bool          // reads for a verification
	granted  chan struct{} // closed when the feed may read
}

// enqueue adds a feed to the queue of its account. The caller must call cancel or release.
func (q *snapshotQueue) enqueue(a *accountQueue, slow bool) *ticket {
	t := &ticket{slow: slow, granted: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(a.waiting) == 0 {
		if a.running == 0 {
			a.granted = 0
		}
		q.order = slices.Insert(q.order, q.placeLocked(slow), a)
	}
	a.waiting = append(a.waiting, t)
	a.counts.add(t, 1)
	q.counts.add(t, 1)
	q.dispatchLocked()
	return t
}

// placeLocked returns the place of an account that comes: the last one, or before the silent ones that
// are last, because each of them takes as long as a request may hang.
func (q *snapshotQueue) placeLocked(slow bool) int {
	place := len(q.order)
	for !slow && place > 0 && q.order[place-1].waiting[0].slow {
		place--
	}
	return place
}

// setSlow notes whether the API server of the account is silent, also for its feeds that wait already. A
// silent one lets all other accounts go first: with a small budget, each of its lists holds them up until
// the request times out.
func (w *Watcher) setSlow(slow bool) {
	q := &w.cfg.Limiter.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.slow.Swap(slow) == slow {
		return
	}
	q.setSlowLocked(&w.queue, slow)
	if slow && len(w.queue.waiting) > 0 {
		q.endTurnLocked(&w.queue)
	}
	q.dispatchLocked()
}

func (q *snapshotQueue) setSlowLocked(a *accountQueue, slow bool) {
	for _, t := range a.waiting {
		a.counts.add(t, -1)
		q.counts.add(t, -1)
		t.slow = slow
		a.counts.add(t, 1)
		q.counts.add(t, 1)
	}
}

// tryGrant returns a ticket that is granted for a verification, unless first syncs have or wait for all permits.
// Feeds that wait only for the limits of their own account do not count: those of a cluster that hangs wait
// for ever. Verifications have half of the shared permits at most, so that a first sync always finds one soon.
func (q *snapshotQueue) tryGrant(a *accountQueue, slow bool) (*ticket, bool) {
	t := &ticket{slow: slow, verifies: true, granted: make(chan struct{})}
	var one waitCounts
	one.add(t, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.allowsLocked(a, one) || !slow && q.verify >= max(1, q.budget.Fast/2) {
		return nil, false
	}
	q.countLocked(a, t)
	return t, true
}

// cancel removes a feed that no longer waits.
func (q *snapshotQueue) cancel(a *accountQueue, t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(a.waiting, t); i >= 0 {
		q.removeLocked(a, i)
		return
	}
	if !t.slow {
		q.fast--
	}
	q.releaseLocked(a, t)
}

// releaseFast gives back a shared permit. The snapshot continues to count in the other limits.
func (q *snapshotQueue) releaseFast(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fast--
	if t.verifies {
		q.verify--
	}
	q.dispatchLocked()
}

// release ends a snapshot, after its shared permit was given back.
func (q *snapshotQueue) release(a *accountQueue, t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseLocked(a, t)
}

func (q *snapshotQueue) releaseLocked(a *accountQueue, t *ticket) {
	q.total--
	a.running--
	if t.slow {
		q.slow--
		a.slow--
	}
	q.dispatchLocked()
}

// position returns how many accounts have their turn before this one, and how many wait. It reports
// false if the account does not wait, or reads a snapshot already.
func (q *snapshotQueue) position(a *accountQueue) (before, of int, waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before = slices.Index(q.order, a)
	return before, len(q.order), before >= 0 && a.running == 0
}

// isBlocked reports whether feeds of API servers that respond wait only because the whole budget is used.
func (q *snapshotQueue) isBlocked() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts.fast > 0 && q.total >= q.budget.Total
}

// running returns how many snapshots run.
func (q *snapshotQueue) running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}

// acquireTicket waits until the feed may read its snapshot. The account reports its position meanwhile.
func (w *Watcher) acquireTicket(ctx context.Context, slow bool) (*ticket, error) {
	q := &w.cfg.Limiter.queue
	t := q.enqueue(&w.queue, slow)
	if err := w.queueStatus.wait(ctx, w, t); err != nil {
		q.cancel(&w.queue, t)
		_ = w.queueStatus.report(context.WithoutCancel(ctx), w) // no other feed may wait; a sink that fails has ended the Watcher
		return nil, err
	}
	return t, nil
}
