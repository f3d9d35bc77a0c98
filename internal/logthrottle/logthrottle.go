// Package logthrottle limits how often an event is logged, so that a client that causes many events
// cannot fill the log.
//
// Lines that REST requests cause, those of tasks and operations too, are throttled by message: a denied operation was one
// line, 3,800 of them a second. Lines about the connections and changes of agents are throttled by message and source,
// because thousands of agents connect at the same time, and an operator wants to know of each. Throttling requests by caller
// was considered: a caller can have many addresses, and the lines of all of them together fill a disk. That one caller hides
// the lines of another within ten seconds is the price; metrics still count all requests.
package logthrottle

import (
	"sync"
	"time"
)

// Limiter allows one event per interval and counts the others. The zero value with an Interval is
// ready to use. It is safe for concurrent use.
type Limiter struct {
	Interval time.Duration

	mu       sync.Mutex
	nextPass time.Time
	count    int64 // since the last allowed event
	total    int64
}

// Allow counts an event and reports whether to log it. If so, count is the number of events since
// the last one that was logged, including this one.
func (l *Limiter) Allow() (count int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	l.total++
	now := time.Now()
	if now.Before(l.nextPass) {
		return 0, false
	}
	count, l.count = l.count, 0
	l.nextPass = now.Add(l.Interval)
	return count, true
}

// Total returns how many events were counted.
func (l *Limiter) Total() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}
