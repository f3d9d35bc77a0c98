// Package outbox holds the changes that the server has not acknowledged yet:
// at most one unsent change per object, in the order of each feed, within a
// budget of bytes. When the budget is used up, Put waits, so whoever reads from
// the API server stops reading, and the agent's memory stays as it is however
// long the server is away.
//
// Guarantees:
//   - A change is kept until it is acknowledged, superseded by a newer change of
//     the same object, or made void because its feed starts again.
//   - Changes of a feed leave in the order in which their marks grew.
//   - Live changes overtake snapshots of other feeds, never those of their own.
//   - Of snapshots no more is on the way than keeps the server busy.
//
// Less formally: what Take gave and nobody acknowledged comes out again after
// Rewind, and a server that says how far it got is believed.
package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// Box is safe for concurrent use. One goroutine may Take.
type Box struct {
	limit int

	mu       sync.Mutex
	used     int // bytes, sent ones included
	accounts map[vedette.AccountName]*account
	rings    [3]ring               // by lane
	sent     []*Change             // taken and not acknowledged, oldest first
	unacked  int                   // bytes of sent
	pace     pace                  // of snapshots
	acked    uint64                // how many of this connection's changes are acknowledged
	blocked  map[*Change]time.Time // live changes that wait for room, since when
	space    chan struct{}
	work     chan struct{}
}

// account is the part of the box that belongs to one account. Its queues are
// served only while the server has made this agent the cacher.
type account struct {
	name   vedette.AccountName
	open   bool
	term   vedette.Term
	queues map[vedette.Feed]*queue
}

// New returns a box that keeps at most limit bytes; one change may exceed it, or
// a change larger than the box could never leave.
func New(limit int) *Box {
	return &Box{limit: limit, pace: newPace(), accounts: map[vedette.AccountName]*account{}, blocked: map[*Change]time.Time{},
		space: make(chan struct{}), work: make(chan struct{}, 1)}
}

// Put adds a change, and waits while the box is full. Changes of a snapshot wait
// at three quarters already, so that a first sync leaves room for what is live.
func (b *Box) Put(ctx context.Context, c Change) error {
	for {
		space, ok := b.put(&c)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			b.unblock(&c)
			return context.Cause(ctx)
		case <-space:
		}
	}
}

func (b *Box) put(c *Change) (wait <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queueLocked(c.Account, c.Feed)
	if q.void {
		delete(b.blocked, c)
		return nil, true
	}
	if !b.fitsLocked(c) {
		if _, waits := b.blocked[c]; !waits && c.Lane == Live {
			b.blocked[c] = time.Now()
		}
		return b.space, false
	}
	c.put = time.Now()
	if since, waited := b.blocked[c]; waited {
		c.put = since
		delete(b.blocked, c)
	}
	c.queue = q
	b.growLocked(q.put(c))
	b.offerLocked(q)
	return nil, true
}

func (b *Box) fitsLocked(c *Change) bool {
	limit := b.limit
	switch c.Lane {
	case Control:
		return true
	case Bulk:
		limit = limit / 4 * 3
	}
	return b.used == 0 || b.used+c.size() <= limit
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

// offerLocked puts a queue into the ring of its oldest change's lane.
func (b *Box) offerLocked(q *queue) {
	if q.waits != nil {
		q.waits.remove(q)
	}
	c := q.peek()
	if c == nil || !q.account.open {
		return
	}
	b.rings[c.Lane].add(q)
	b.wakeLocked()
}

// growLocked counts bytes, and wakes those that wait for room when some is given
// back.
func (b *Box) growLocked(n int) {
	b.used += n
	if n < 0 {
		close(b.space)
		b.space = make(chan struct{})
	}
}

// Take waits for changes and moves up to max bytes of them, but at least one,
// to those sent. Their records stay the box's.
func (b *Box) Take(ctx context.Context, max int) ([]Change, error) {
	for {
		if taken := b.take(max); len(taken) > 0 {
			return taken, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-b.work:
		}
	}
}

func (b *Box) take(max int) []Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	var taken []Change
	for bytes := 0; bytes < max; {
		q := b.nextLocked(len(taken))
		if q == nil {
			break
		}
		c := q.take()
		c.Term = q.account.term
		b.sendLocked(c)
		bytes += c.size()
		taken = append(taken, *c)
		b.offerLocked(q)
	}
	return taken
}

// sendLocked notes that a change is on its way.
func (b *Box) sendLocked(c *Change) {
	c.taken = time.Now()
	b.sent = append(b.sent, c)
	b.unacked += c.size()
	if c.Lane == Bulk {
		b.pace.taken(c.size())
	}
}

// nextLocked picks the queue to serve: control first, then live, but every
// fourth turn is the snapshots', or a busy cluster's first sync would never end.
func (b *Box) nextLocked(turn int) *queue {
	order := [3]Lane{Control, Live, Bulk}
	if turn%4 == 3 {
		order = [3]Lane{Control, Bulk, Live}
	}
	for _, lane := range order {
		if lane == Bulk && b.pace.full() {
			continue
		}
		if q := b.rings[lane].next(); q != nil {
			return q
		}
	}
	return nil
}

// Ack forgets the first n changes that were taken since the last Rewind.
func (b *Box) Ack(n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	freed, bulk := 0, 0
	var last time.Time // when the last change of a snapshot among them was taken
	for b.acked < n && len(b.sent) > 0 {
		c := b.sent[0]
		b.sent[0] = nil
		b.sent = b.sent[1:]
		b.acked++
		freed += c.size()
		if c.Lane == Bulk {
			bulk, last = bulk+c.size(), c.taken
		}
		b.ackedLocked(c)
	}
	if len(b.sent) == 0 {
		b.sent = nil
	}
	b.unacked -= freed
	b.growLocked(-freed)
	if bulk > 0 {
		b.pace.acked(bulk, time.Since(last))
		b.wakeLocked()
	}
}

// wakeLocked lets Take look again.
func (b *Box) wakeLocked() {
	select {
	case b.work <- struct{}{}:
	default:
	}
}

func (b *Box) ackedLocked(c *Change) {
	if c.Mark != "" && b.livesLocked(c.queue) {
		c.queue.acked = c.Mark
	}
}

// livesLocked reports whether a queue is still its feed's. An account that was
// forgotten, or a feed, may have come back since: what was sent before is void.
func (b *Box) livesLocked(q *queue) bool {
	a := b.accounts[q.account.name]
	return a == q.account && a.queues[q.feed] == q
}

// Unacknowledged returns how many bytes were taken and not acknowledged.
func (b *Box) Unacknowledged() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unacked
}

// Used returns how many bytes the box holds.
func (b *Box) Used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// unblock says that a change is given up that waited for room.
func (b *Box) unblock(c *Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.blocked, c)
}

// Behind returns since when the oldest live change has been waiting to be put or
// taken, or now where none waits.
func (b *Box) Behind() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest := time.Now()
	for _, q := range b.rings[Live].queues {
		if c := q.peek(); c != nil && c.put.Before(oldest) {
			oldest = c.put
		}
	}
	for _, since := range b.blocked {
		if since.Before(oldest) {
			oldest = since
		}
	}
	return oldest
}

// Rewind says that the connection is lost: what was taken and not acknowledged
// goes back to the front of its feed, and every account waits until it is
// opened again.
func (b *Box) Rewind() {
	b.mu.Lock()
	defer b.mu.Unlock()
	byQueue := map[*queue][]*Change{}
	for _, c := range b.sent {
		if b.livesLocked(c.queue) {
			byQueue[c.queue] = append(byQueue[c.queue], c)
		}
	}
	b.sent, b.acked, b.unacked, b.pace = nil, 0, 0, newPace()
	for q, sent := range byQueue {
		q.unsend(sent)
	}
	for _, a := range b.accounts {
		b.pauseLocked(a)
	}
	b.recountLocked()
}

func (b *Box) pauseLocked(a *account) {
	a.open = false
	for _, q := range a.queues {
		b.offerLocked(q)
	}
}

// Open says that this agent is the cacher of an account, in this term, and how
// far the server has stored each of its feeds. It returns the feeds that can't
// go on from there, with the marks to begin again from: what the box held of
// them is void, and so is what is put until Revive. Whoever reads the feed may be
// in the midst of it, far ahead of its new beginning.
func (b *Box) Open(name vedette.AccountName, term vedette.Term, marks map[vedette.Feed]vedette.Mark) map[vedette.Feed]vedette.Mark {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accountLocked(name)
	a.open, a.term = true, term
	restart := map[vedette.Feed]vedette.Mark{}
	for feed, q := range a.queues {
		if feed == (vedette.Feed{}) || q.resume(marks[feed]) {
			continue
		}
		q.clear()
		q.acked, q.void = marks[feed], true
		restart[feed] = marks[feed]
	}
	for feed, mark := range marks {
		if q := b.queueLocked(name, feed); q.acked == "" {
			q.acked = mark
		}
	}
	for _, q := range a.queues {
		b.offerLocked(q)
	}
	b.recountLocked()
	return restart
}

// Revive says that a feed has begun again from a mark that Open gave.
func (b *Box) Revive(name vedette.AccountName, feed vedette.Feed, mark vedette.Mark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.queueLocked(name, feed); q.acked == mark {
		q.void = false
	}
}

// Restart voids what the box holds of a feed that was not sent yet, because a
// snapshot begins that covers it.
func (b *Box) Restart(name vedette.AccountName, feed vedette.Feed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queueLocked(name, feed)
	q.clear()
	b.offerLocked(q)
	b.recountLocked()
}

// Retain drops what the box holds of an account's other feeds than these: they
// are no longer declared, and the server would not know what to do with it.
func (b *Box) Retain(name vedette.AccountName, feeds map[vedette.Feed]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accountLocked(name)
	for feed, q := range a.queues {
		if feed == (vedette.Feed{}) || feeds[feed] {
			continue
		}
		q.clear()
		b.offerLocked(q)
		delete(a.queues, feed)
	}
	b.recountLocked()
}

// Forget drops an account with all that the box holds of it.
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

// recountLocked adds up what is held, after changes were dropped in bulk.
func (b *Box) recountLocked() {
	used := b.unacked
	for _, a := range b.accounts {
		for _, q := range a.queues {
			used += q.bytes
		}
	}
	b.growLocked(used - b.used)
}
