package outbox

import (
	"time"

	"github.com/vedette-io/vedette"
)

// queue holds the unsent changes of a feed, oldest first, at most one per key. A superseded
// change leaves its place empty, and the new one is appended at the end, because marks must
// stay in order: a feed that resumes at a mark must send everything after it, including the
// superseding change.
type queue struct {
	account   *account
	feed      vedette.Feed
	items     []*Change // nil if superseded
	head      int
	count     int            // of items that are not nil
	keys      map[string]int // index of the change that a later one replaces, counted from the first change ever
	removed   int            // changes, from the front of items
	acked     vedette.Mark   // the mark of the last acknowledged change with one
	stored    vedette.Mark   // the last one of them that the server has stored for certain: between it and acked, nothing has changed
	used      usage
	suspended bool        // discards changes until the feed has restarted at acked
	readyIn   *roundRobin // the ring that contains the queue; nil while empty or paused
}

func newQueue(a *account, feed vedette.Feed) *queue {
	return &queue{account: a, feed: feed, keys: map[string]int{}}
}

// put appends a change and returns by how much the queue grew.
func (q *queue) put(c *Change) usage {
	before := q.used
	q.undefer()
	if c.Key != "" {
		q.supersede(c.Key)
	}
	q.noteKey(c, q.removed+len(q.items))
	q.items = append(q.items, c)
	q.count++
	q.used.add(c)
	q.skipSuperseded()
	q.compact()
	return q.used.minus(before)
}

// undefer ends the deferral of the last change, because the next one must not wait behind it. So only
// the last change of a queue is ever deferred.
func (q *queue) undefer() {
	if len(q.items) == q.head {
		return
	}
	if last := q.items[len(q.items)-1]; last != nil && last.Priority == Deferred {
		last.Priority, last.putAt = Live, time.Now()
	}
}

// noteKey notes that a later change with the key of c replaces c, at an index.
func (q *queue) noteKey(c *Change, at int) {
	if c.Question {
		clear(q.keys)
	}
	if c.Key != "" {
		q.keys[c.Key] = at
	}
}

func (q *queue) supersede(key string) {
	if at, ok := q.keys[key]; ok {
		q.remove(at - q.removed)
	}
}

// take removes and returns the oldest change, or nil.
func (q *queue) take() *Change {
	c := q.peek()
	if c != nil {
		q.remove(q.head)
		q.skipSuperseded()
	}
	return c
}

// peek returns the oldest change without removing it, or nil.
func (q *queue) peek() *Change {
	q.skipSuperseded()
	if q.head == len(q.items) {
		return nil
	}
	return q.items[q.head]
}

// skipSuperseded moves head past superseded changes.
func (q *queue) skipSuperseded() {
	for q.head < len(q.items) && q.items[q.head] == nil {
		q.head++
	}
	if q.head == len(q.items) {
		q.reset()
	}
}

// maxKeptItems is how many places an empty queue keeps for the next changes. After a snapshot it has
// hundreds, and an agent has thousands of queues, nearly all of them empty.
const maxKeptItems = 8

// reset makes a queue whose places are all empty begin anew.
func (q *queue) reset() {
	q.removed += len(q.items)
	q.items, q.head = q.items[:0], 0
	if cap(q.items) > maxKeptItems {
		q.items, q.keys = nil, map[string]int{}
	}
}

// compact removes the gaps once they are most of the queue, because an object that changes
// all the time while the server is away would grow the queue otherwise.
func (q *queue) compact() {
	if len(q.items) < 64 || len(q.items) < 2*q.count {
		return
	}
	kept := q.items[:0]
	for i, c := range q.items {
		if c == nil {
			continue
		}
		if at, ok := q.keys[c.Key]; ok && at == q.removed+i {
			q.keys[c.Key] = q.removed + len(kept)
		}
		kept = append(kept, c)
	}
	clear(q.items[len(kept):])
	q.items, q.head = kept, 0
}

// requeue puts unacknowledged changes back to the front, in their order. It keeps changes
// whose key has a newer change, because they are still valid steps of the feed.
func (q *queue) requeue(sent []*Change) {
	rest := q.items[q.head:]
	items := make([]*Change, 0, len(sent)+len(rest))
	items = append(append(items, sent...), rest...)
	q.items = items
	q.head = 0
	q.removed = 0
	clear(q.keys)
	q.used, q.count = usage{}, 0
	for i, c := range items {
		if c == nil {
			continue
		}
		q.used.add(c)
		q.count++
		q.noteKey(c, i)
		if c.Priority == Deferred && i < len(items)-1 {
			c.Priority = Live // as in undefer
		}
	}
}

// resumeFrom drops what the server has stored: all changes up to the last one with this
// mark. The server may have forgotten bookmarks, which needs nothing to be sent again. It returns false
// and changes nothing if the queue cannot continue from the mark.
func (q *queue) resumeFrom(mark vedette.Mark) bool {
	if mark == "" {
		return false
	}
	last := -1
	for i, c := range q.items {
		if c != nil && c.Mark == mark {
			last = i
		}
	}
	if last < 0 {
		if q.acked != mark {
			return q.stored == mark
		}
		q.stored = mark
		return true
	}
	for i := q.head; i <= last; i++ {
		q.remove(i)
	}
	q.skipSuperseded()
	q.acked, q.stored = mark, mark
	return true
}

// remove empties the place of a change.
func (q *queue) remove(i int) {
	c := q.items[i]
	if c == nil {
		return
	}
	if at, ok := q.keys[c.Key]; ok && at == q.removed+i {
		delete(q.keys, c.Key)
	}
	q.used.remove(c)
	q.count--
	q.items[i] = nil
}

// clear drops all changes.
func (q *queue) clear() {
	clear(q.items)
	clear(q.keys)
	q.used, q.count = usage{}, 0
	q.reset()
}
