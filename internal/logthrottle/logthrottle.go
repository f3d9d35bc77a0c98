// Package logthrottle limits how often an event is logged, so that a client that causes many events
// cannot fill the log.
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
