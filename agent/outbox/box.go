// Package outbox keeps the changes that the server has not acknowledged: at most one unsent
// change per object, in the order of each feed, within a budget of bytes. If the budget is
// used up, Put blocks, so that the agent stops reading from the API server. The agent's
// memory therefore does not grow however long the server is away.
//
// Guarantees:
//   - A change is kept until it is acknowledged, superseded by a newer change of the same
//     object, or discarded because its feed starts again.
//   - Changes of a feed leave in the order of their marks.
//   - Live changes overtake snapshots of other feeds, but not of their own feed.
//   - Large changes let the changes of other feeds go first.
//   - No more bytes of snapshots are in flight than keep the server busy.
//
// Less formally: after Rewind or Recall, Take returns unacknowledged changes again, unless the server
// reports in Open that it has stored them.
//
// A newer change of an object does not take the place of the older one, because marks would be wrong: with x@10, y@15
// waiting, x@20 would be stored first and move the mark to 20, and a crash before y@15 is stored would lose y@15. So the
// newer change goes to the end and leaves a gap. A mark of 15 means that everything up to 15 is stored, or superseded by a
// change after 15, and an agent that resumes at 15 gets all changes after it. TestStoredStateConvergesToCluster runs this against a
// model of cluster and server, with lost connections, partial commits and outdated assignments.
package outbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// Box keeps changes until they are acknowledged. It is safe for concurrent use, but only one
// goroutine may call Take.
type Box struct {
	limit int

	mu             sync.Mutex
	used           usage // including sent changes
	accounts       map[vedette.AccountName]*account
	assigned       map[vedette.AccountName]vedette.Term // of the last Recall since Rewind
	ready          [4]roundRobin                        // by priority, without large changes
	large          largeChanges
	sent           []*Change             // taken but not acknowledged, oldest first
	unacked        usage                 // of sent
	snapshotWindow congestionWindow      // of snapshots
	acked          uint64                // acknowledged changes of this connection
	blocked        map[*Change]time.Time // live changes that wait for room, with the start of the wait
	spaceFreed     chan struct{}
	workReady      chan struct{}
	deferTimer     bool // a timer runs that sets deferDue
	deferDue       bool // deferred changes leave even alone
}

// account is the part of the box that belongs to one account. Its queues are served only
// while this agent is the cacher.
type account struct {
	name   vedette.AccountName
	open   bool
	term   vedette.Term
	queues map[vedette.Feed]*queue
}

// New returns a box that keeps at most limit bytes, and half as many of large changes. A box without large
// changes accepts one of any size, because the change could never leave otherwise.
func New(limit int) *Box {
	return &Box{limit: limit, snapshotWindow: newWindow(), accounts: map[vedette.AccountName]*account{},
		assigned: map[vedette.AccountName]vedette.Term{}, blocked: map[*Change]time.Time{},
		spaceFreed: make(chan struct{}), workReady: make(chan struct{}, 1)}
}

// Put adds a change. It blocks while the box is full. Changes of a snapshot already wait
// while it is three quarters full, so that a first sync leaves room for live changes.
func (b *Box) Put(ctx context.Context, c Change) error {
	for {
		spaceFreed, ok := b.put(&c)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			b.cancelBlocked(&c)
			return context.Cause(ctx)
		case <-spaceFreed:
		}
	}
}

func (b *Box) put(c *Change) (spaceFreed <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queueLocked(c.Account, c.Feed)
	if q.suspended {
		delete(b.blocked, c)
		return nil, true
	}
	if !b.fitsLocked(c) {
		if _, isBlocked := b.blocked[c]; !isBlocked && c.Priority == Live {
			b.blocked[c] = time.Now()
		}
		return b.spaceFreed, false
	}
	c.putAt = time.Now()
	if since, wasBlocked := b.blocked[c]; wasBlocked {
		c.putAt = since
		delete(b.blocked, c)
	}
	c.queue = q
	b.adjustUsedLocked(q.put(c))
	b.scheduleLocked(q)
	return nil, true
}

func (b *Box) fitsLocked(c *Change) bool {
	limit := b.limit
	switch {
	case c.Priority == Control:
		return true
	case c.isLarge():
		return b.used.large == 0 || b.used.large+c.size() <= limit/2
	case c.Priority == Bulk:
		limit = limit / 4 * 3
	}
	return b.used.small == 0 || b.used.small+c.size() <= limit
}

func (b *Box) accountLocked(name vedette.AccountName) *account {
	a := b.accounts[name]
	if a == nil {
		a = &account{name: name, queues: map[vedette.Feed]*queue{}}
		b.accounts[name] = a
	}
	return a
}

func (b *Box) queueLocked(name vedette.AccountName, feed vedette.Feed) *queue {
	a := b.accountLocked(name)
	q := a.queues[feed]
	if q == nil {
		q = newQueue(a, feed)
		a.queues[feed] = q
	}
	return q
}

// scheduleLocked puts a queue into the ring for the priority of its oldest change.
func (b *Box) scheduleLocked(q *queue) {
	if q.readyIn != nil {
		q.readyIn.remove(q)
	}
	c := q.peek()
	if c == nil || !q.account.open {
		return
	}
	if c.isLarge() {
		b.large.add(q, time.Now())
		b.wakeLocked()
		return
	}
	b.ready[c.Priority].add(q)
	if c.Priority == Deferred {
		b.wakeLaterLocked()
		return
	}
	b.wakeLocked()
}

// deferInterval is how long a deferred change waits at most for others to leave with. If the agent is killed meanwhile, its
// successor resumes from the bookmark before, as it does if the bookmark is a minute old.
const deferInterval = time.Second

// wakeLaterLocked makes Take look after deferInterval, even if there are only deferred changes.
func (b *Box) wakeLaterLocked() {
	if b.deferTimer {
		return
	}
	b.deferTimer = true
	time.AfterFunc(deferInterval, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.deferTimer = false
		b.deferDue = len(b.ready[Deferred].queues) > 0
		b.wakeLocked()
	})
}

// hasWorkLocked reports whether there is something to take that does not wait for other changes.
func (b *Box) hasWorkLocked() bool {
	return b.deferDue || len(b.ready[Control].queues) > 0 || len(b.ready[Live].queues) > 0 ||
		(len(b.ready[Bulk].queues) > 0 || b.large.mayLeave(time.Now())) && !b.snapshotWindow.full()
}

// adjustUsedLocked adds to the used bytes. If that frees room, it wakes blocked Puts.
func (b *Box) adjustUsedLocked(more usage) {
	b.used = b.used.plus(more)
	if more.small < 0 || more.large < 0 {
		close(b.spaceFreed)
		b.spaceFreed = make(chan struct{})
	}
}

// Take waits for changes and marks up to maxBytes of them, but at least one, as sent. The box
// keeps ownership of their records.
func (b *Box) Take(ctx context.Context, maxBytes int) ([]Change, error) {
	for {
		if taken := b.take(maxBytes); len(taken) > 0 {
			return taken, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-b.workReady:
		}
	}
}

func (b *Box) take(maxBytes int) []Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hasWorkLocked() {
		return nil
	}
	var taken []Change
	for bytes := 0; bytes < maxBytes; {
		q := b.nextQueueLocked(len(taken))
		if q == nil {
			break
		}
		c := q.take()
		c.Term = q.account.term
		b.markSentLocked(c)
		bytes += c.size()
		taken = append(taken, *c)
		b.scheduleLocked(q)
	}
	b.deferDue = b.deferDue && len(b.ready[Deferred].queues) > 0
	return taken
}

func (b *Box) markSentLocked(c *Change) {
	c.takenAt = time.Now()
	b.sent = append(b.sent, c)
	b.unacked.add(c)
	if c.Priority == Bulk {
		b.snapshotWindow.onSend(c.size())
	}
}

// nextQueueLocked returns the next queue, in the order of priorities. Every fourth
// time bulk precedes live, because the first sync of a busy cluster would never end
// otherwise. A large change leaves alone, if there is nothing else or it is due.
func (b *Box) nextQueueLocked(round int) *queue {
	now, mayBeLarge := time.Now(), round == 0 && !b.snapshotWindow.full()
	if mayBeLarge && now.After(b.large.due) {
		if q := b.large.next(now); q != nil {
			return q
		}
	}
	order := [4]Priority{Control, Live, Deferred, Bulk}
	if round%4 == 3 {
		order = [4]Priority{Control, Bulk, Live, Deferred}
	}
	for _, priority := range order {
		if priority == Bulk && b.snapshotWindow.full() {
			continue
		}
		if q := b.ready[priority].next(); q != nil {
			return q
		}
	}
	if mayBeLarge {
		return b.large.next(now)
	}
	return nil
}

// Ack drops the first n changes that were taken since the last Rewind.
func (b *Box) Ack(n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	freed, bulkFreed := usage{}, 0
	var lastBulkTaken time.Time // when the last bulk change among them was taken
	for b.acked < n && len(b.sent) > 0 {
		c := b.sent[0]
		b.sent[0] = nil
		b.sent = b.sent[1:]
		b.acked++
		freed.add(c)
		if c.isLarge() {
			b.large.acknowledged()
		}
		if c.Priority == Bulk {
			bulkFreed, lastBulkTaken = bulkFreed+c.size(), c.takenAt
		}
		b.recordAckLocked(c)
	}
	if len(b.sent) == 0 {
		b.sent = nil
	}
	b.unacked = b.unacked.minus(freed)
	b.adjustUsedLocked(usage{}.minus(freed))
	if bulkFreed > 0 {
		b.snapshotWindow.onAck(bulkFreed, time.Since(lastBulkTaken))
		b.wakeLocked()
	}
}

// wakeLocked makes Take look again.
func (b *Box) wakeLocked() {
	select {
	case b.workReady <- struct{}{}:
	default:
	}
}

func (b *Box) recordAckLocked(c *Change) {
	if c.Mark != "" && b.isCurrentLocked(c.queue) {
		c.queue.acked = c.Mark
		if !c.IsBookmark {
			c.queue.stored = c.Mark
		}
	}
}

// isCurrentLocked reports whether q is still the queue of its feed. An account or a feed that
// was dropped may have come back since. Changes from before that are void.
func (b *Box) isCurrentLocked(q *queue) bool {
	a := b.accounts[q.account.name]
	return a == q.account && a.queues[q.feed] == q
}

// Unacknowledged returns how many bytes were taken but not acknowledged.
func (b *Box) Unacknowledged() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unacked.total()
}

// Used returns how many bytes the box keeps.
func (b *Box) Used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used.total()
}

// cancelBlocked removes a change that no longer waits for room.
func (b *Box) cancelBlocked(c *Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.blocked, c)
}

// PendingSince returns since when the oldest live change has waited to be put or taken. It
// returns the current time if none waits. Changes of an account that another agent reports do not count. Those of
// an account that the server has yet to assign after a lost connection do, because it may assign it to this agent.
func (b *Box) PendingSince() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest := time.Now()
	note := func(q *queue) {
		if c := q.peek(); c != nil && c.Priority == Live && c.putAt.Before(oldest) {
			oldest = c.putAt
		}
	}
	for _, q := range slices.Concat(b.ready[Live].queues, b.large.ready.queues) {
		note(q)
	}
	for _, a := range b.accounts {
		if term, isAssigned := b.assigned[a.name]; a.open || isAssigned && term == 0 {
			continue
		}
		for _, q := range a.queues {
			note(q)
		}
	}
	for _, since := range b.blocked {
		if since.Before(oldest) {
			oldest = since
		}
	}
	return oldest
}

// Rewind notes that the connection is lost. Taken changes that were not acknowledged go back
// to the front of their feeds, and all accounts are paused until the next Recall and Open.
func (b *Box) Rewind() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.assigned)
	byQueue := map[*queue][]*Change{}
	for _, c := range b.sent {
		if b.isCurrentLocked(c.queue) {
			byQueue[c.queue] = append(byQueue[c.queue], c)
		}
	}
	if b.unacked.large > 0 {
		b.large.lost(time.Now())
		time.AfterFunc(b.large.backoff, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.wakeLocked()
		})
	}
	b.sent = nil
	b.acked = 0
	b.unacked = usage{}
	b.snapshotWindow = newWindow()
	for q, sent := range byQueue {
		q.requeue(sent)
	}
	for _, a := range b.accounts {
		b.pauseLocked(a)
	}
	b.recountLocked()
}

func (b *Box) pauseLocked(a *account) {
	a.open = false
	for _, q := range a.queues {
		b.scheduleLocked(q)
	}
}

// Recall notes that the server has assigned an account in a term, over the connection that exists. The term is 0 if it
// has assigned it to another agent. Recall pauses the account until Open of that term. The server skips changes of
// another term that it has not stored, and acknowledges them all the same, because it acknowledges by number. So
// changes that were taken but not acknowledged go back to the front of their feeds. Open removes those that the
// server has stored.
//
// It must be called before acknowledgements that arrive after the assignment.
func (b *Box) Recall(name vedette.AccountName, term vedette.Term) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.assigned[name] = term
	a := b.accounts[name]
	if a == nil {
		return
	}
	byQueue := map[*queue][]*Change{}
	for i, c := range b.sent {
		if c.queue.account != a || !b.isCurrentLocked(c.queue) {
			continue
		}
		again, skipped := *c, *c
		byQueue[c.queue] = append(byQueue[c.queue], &again)
		skipped.queue = newQueue(a, c.Feed) // of no feed, so that its acknowledgement means nothing
		b.sent[i] = &skipped
	}
	for q, sent := range byQueue {
		q.requeue(sent)
	}
	b.pauseLocked(a)
	b.recountLocked()
}

// Open notes that this agent is the cacher of an account in the given term. Marks are the
// marks of the feeds at the server. Open returns the feeds that cannot continue from their
// marks, with the marks from which they must restart. It discards their changes, and Put
// discards more of them until ResumeFeed, because the reader of such a feed may still be far
// ahead of the restart.
//
// Open does nothing and reports false if the term is not that of the last Recall, or if the connection was lost since: the
// server would skip what is sent in another term, and acknowledge it by number, so that the agent drops it. The changes would be
// missing until the next verification, and a snapshot whose Begin is among them would wait for its index for ever, with a permit
// of the account. Two assignments can follow each other within milliseconds, because the server assigns anew when its first attempt
// may have reached the database or not.
func (b *Box) Open(name vedette.AccountName, term vedette.Term, marks map[vedette.Feed]vedette.Mark) (map[vedette.Feed]vedette.Mark, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if term == 0 || b.assigned[name] != term {
		return nil, false
	}
	a := b.accountLocked(name)
	a.open, a.term = true, term
	restart := map[vedette.Feed]vedette.Mark{}
	for feed, q := range a.queues {
		if feed == (vedette.Feed{}) || q.resumeFrom(marks[feed]) {
			continue
		}
		q.clear()
		q.acked, q.stored = marks[feed], marks[feed]
		q.suspended = true
		restart[feed] = marks[feed]
	}
	for feed, mark := range marks {
		if q := b.queueLocked(name, feed); q.acked == "" {
			q.acked, q.stored = mark, mark
		}
	}
	for _, q := range a.queues {
		b.scheduleLocked(q)
	}
	b.recountLocked()
	return restart, true
}

// OpenTerm returns the term in which this agent is the cacher of an account, over the connection that
// exists; 0 if it is not.
func (b *Box) OpenTerm(name vedette.AccountName) vedette.Term {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.accounts[name]; a != nil && a.open {
		return a.term
	}
	return 0
}

// ResumeFeed notes that a feed has restarted from a mark that Open returned.
func (b *Box) ResumeFeed(name vedette.AccountName, feed vedette.Feed, mark vedette.Mark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.queueLocked(name, feed); q.acked == mark {
		q.suspended = false
	}
}

// DiscardFeed drops the unsent changes of a feed, because a snapshot that covers them
// begins.
func (b *Box) DiscardFeed(name vedette.AccountName, feed vedette.Feed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queueLocked(name, feed)
	q.clear()
	b.scheduleLocked(q)
	b.recountLocked()
}

// RetainFeeds drops the changes of an account's feeds that are not in feeds, because the
// server rejects changes of undeclared feeds.
func (b *Box) RetainFeeds(name vedette.AccountName, feeds map[vedette.Feed]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accountLocked(name)
	for feed, q := range a.queues {
		if feed == (vedette.Feed{}) || feeds[feed] {
			continue
		}
		q.clear()
		b.scheduleLocked(q)
		delete(a.queues, feed)
	}
	b.recountLocked()
}

// Forget drops an account with all of its changes.
func (b *Box) Forget(name vedette.AccountName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil {
		return
	}
	b.pauseLocked(a)
	delete(b.accounts, name)
	b.recountLocked()
}

// recountLocked recomputes the used bytes after changes were dropped in bulk.
func (b *Box) recountLocked() {
	used := b.unacked
	for _, a := range b.accounts {
		for _, q := range a.queues {
			used = used.plus(q.used)
		}
	}
	b.adjustUsedLocked(used.minus(b.used))
}
