// Package logthrottle limits how often something is logged, so that nobody who
// causes it can fill the log.
package logthrottle

import (
	"sync"
	"time"
)

// Limiter lets one event pass per interval, and counts the others. The zero value
// with an Interval is ready. It is safe for concurrent use.
type Limiter struct {
	Interval time.Duration

	mu       sync.Mutex
	nextPass time.Time
	count    int64 // since the last that passed
	total    int64
}

// Allow counts an event. It reports whether to tell of it, and how many have been
// counted since the last that was told of, this one included.
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
