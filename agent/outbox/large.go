package outbox

import "time"

// largeChange is from how many bytes on a change is large. The server may have to wait for the memory of a large change,
// or end the connection because it has none, and all changes behind it wait too. So large changes leave after the
// others, one at a time. No object of a cluster is that large unless somebody has raised the limits of etcd, or
// an API server is not one. A server that skips such a record instead of ending the connection was weighed: what is not
// stored must come again, and the server would have to remember that, for any number of records.
const largeChange = 1 << 20

const (
	// maxLargeWait is how long a large change lets others go first.
	maxLargeWait = 10 * time.Second
	// A connection that is lost before a large change is acknowledged may be lost because of it. So the next
	// attempt waits, twice as long each time.
	minLargeBackoff = 5 * time.Second
	maxLargeBackoff = time.Minute
)

func (c *Change) isLarge() bool { return c.size() >= largeChange && c.Priority != Control }

// largeChanges decides when large changes leave.
type largeChanges struct {
	ready   roundRobin    // queues whose oldest change is large, whatever its priority
	due     time.Time     // from when the next one precedes others
	backoff time.Duration // after the last connection; 0 if no large change was lost with it
	notTill time.Time     // when backoff ends
}

// add adds a queue whose oldest change is large.
func (l *largeChanges) add(q *queue, now time.Time) {
	if len(l.ready.queues) == 0 {
		l.due = now.Add(maxLargeWait)
	}
	l.ready.add(q)
}

// mayLeave reports whether there is a large change that does not wait for backoff.
func (l *largeChanges) mayLeave(now time.Time) bool {
	return len(l.ready.queues) > 0 && !now.Before(l.notTill)
}

// next returns the next queue, or nil.
func (l *largeChanges) next(now time.Time) *queue {
	if !l.mayLeave(now) {
		return nil
	}
	l.due = now.Add(maxLargeWait)
	return l.ready.next()
}

// lost notes that a connection was lost with large changes that were not acknowledged.
func (l *largeChanges) lost(now time.Time) {
	l.backoff = min(max(2*l.backoff, minLargeBackoff), maxLargeBackoff)
	l.notTill = now.Add(l.backoff)
}

// acknowledged notes that the server has stored a large change.
func (l *largeChanges) acknowledged() { l.backoff, l.notTill = 0, time.Time{} }
