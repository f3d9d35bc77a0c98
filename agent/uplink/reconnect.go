package uplink

import (
	"math/rand/v2"
	"regexp"
	"time"
)

// reconnectPause decides how long to wait before the next connection.
//
// The bound doubles up to max, which is short: after an outage of any length, all agents are
// connected within max. A server that is down costs an agent one attempt in about two
// seconds. Pauses are random over almost the whole range below the bound, so that agents
// that lost their server together, or wait for it together, arrive evenly over that time:
// 5,000 agents are some 300 connections in the busiest tenth of a second.
type reconnectPause struct {
	first, max time.Duration
	bound      time.Duration // of the last pause; 0 before the first
}

func (p *reconnectPause) next() time.Duration {
	p.bound = min(max(p.first, 2*p.bound), p.max)
	shortest := p.bound / 8
	return shortest + rand.N(p.bound-shortest)
}

func (p *reconnectPause) reset() { p.bound = 0 }

// failureLog decides which failed connections are logged: each new reason, and the same reason
// once per failureLogInterval, because an outage may last for hours.
type failureLog struct {
	reason   string
	loggedAt time.Time
	attempts int // since then, and not logged
}

const failureLogInterval = time.Minute

// ephemeralPort matches the agent's own port in the text of a network error, which differs in
// each attempt.
var ephemeralPort = regexp.MustCompile(`:\d+->`)

// shouldLog counts a failure and reports whether to log it, and how many attempts since the
// last line were not logged.
func (l *failureLog) shouldLog(err error, now time.Time) (suppressed int, ok bool) {
	reason := ephemeralPort.ReplaceAllString(err.Error(), "->")
	if reason == l.reason && now.Sub(l.loggedAt) < failureLogInterval {
		l.attempts++
		return 0, false
	}
	suppressed = l.attempts
	l.reason, l.loggedAt, l.attempts = reason, now, 0
	return suppressed, true
}

func (l *failureLog) reset() { *l = failureLog{} }
