package outbox

import "github.com/vedette-io/vedette"

// queue holds a feed's changes that were not sent yet, oldest first, at most
// one per key. A change that is superseded leaves its place empty and the new
// one stands at the end, so that the marks of a queue never run ahead: whoever
// resumes at a mark is told all that came after it, the superseding change too.
type queue struct {
	account   *account
	feed      vedette.Feed
	items     []*Change // nil where superseded
	head      int
	keys      map[string]int // place of the key's change, counted from the queue's first change ever
	base      int            // how many changes have left items at its front
	acked     vedette.Mark   // of the last acknowledged change that moved it
	bytes     int
	suspended bool        // takes nothing until the feed has begun again at acked
	readyIn   *roundRobin // the ring that the queue stands in; nil while empty or paused
}

func newQueue(a *account, feed vedette.Feed) *queue {
	return &queue{account: a, feed: feed, keys: map[string]int{}}
}

// put appends a change and returns by how many bytes the queue has grown.
func (q *queue) put(c *Change) int {
	before := q.bytes
	if c.Key != "" {
		q.supersede(c.Key)
		q.keys[c.Key] = q.base + len(q.items)
	}
	q.items = append(q.items, c)
	q.bytes += c.size()
	q.skipSuperseded()
	q.compact()
	return q.bytes - before
}

func (q *queue) supersede(key string) {
	if at, ok := q.keys[key]; ok {
		q.remove(at - q.base)
	}
}

// take removes the oldest change; nil when there is none.
func (q *queue) take() *Change {
	c := q.peek()
	if c != nil {
		q.remove(q.head)
		q.skipSuperseded()
	}
	return c
}

// peek returns the oldest change and leaves it; nil when there is none.
func (q *queue) peek() *Change {
	q.skipSuperseded()
	if q.head == len(q.items) {
		return nil
	}
	return q.items[q.head]
}

// skipSuperseded passes over places that were superseded.
func (q *queue) skipSuperseded() {
	for q.head < len(q.items) && q.items[q.head] == nil {
		q.head++
	}
	if q.head == len(q.items) {
		q.base += len(q.items)
		q.items, q.head = q.items[:0], 0
	}
}

// compact closes the gaps once they are most of the queue. Without it an object
// that changes all the time while the server is away would grow the queue.
func (q *queue) compact() {
	if len(q.items) < 64 || len(q.items) < 2*len(q.keys) {
		return
	}
	kept := q.items[:0]
	for _, c := range q.items {
		if c == nil {
			continue
		}
		if c.Key != "" {
			q.keys[c.Key] = q.base + len(kept)
		}
		kept = append(kept, c)
	}
	clear(q.items[len(kept):])
	q.items, q.head = kept, 0
}

// requeue puts changes that were sent and not acknowledged back to the front, in
// their order. Those whose key has a newer change stay: they are still true.
func (q *queue) requeue(sent []*Change) {
	rest := q.items[q.head:]
	items := make([]*Change, 0, len(sent)+len(rest))
	items = append(append(items, sent...), rest...)
	q.items, q.head, q.base = items, 0, 0
	clear(q.keys)
	q.bytes = 0
	for i, c := range items {
		if c == nil {
			continue
		}
		q.bytes += c.size()
		if c.Key != "" {
			q.keys[c.Key] = i
		}
	}
}

// resumeFrom drops what the server has stored already: all changes up to the last
// one with this mark. It reports false, and leaves the queue alone, where the
// mark is not one that this queue can go on from.
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
		return q.acked == mark
	}
	for i := q.head; i <= last; i++ {
		q.remove(i)
	}
	q.skipSuperseded()
	q.acked = mark
	return true
}

// remove leaves the place of a change empty.
func (q *queue) remove(i int) {
	c := q.items[i]
	if c == nil {
		return
	}
	if at, ok := q.keys[c.Key]; ok && at == q.base+i {
		delete(q.keys, c.Key)
	}
	q.bytes -= c.size()
	q.items[i] = nil
}

// clear forgets all changes.
func (q *queue) clear() {
	q.base += len(q.items)
	clear(q.items)
	q.items, q.head, q.bytes = q.items[:0], 0, 0
	clear(q.keys)
}
