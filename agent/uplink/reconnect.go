package uplink

import (
	"math/rand/v2"
	"regexp"
	"time"
)

// pauses are those between connections. Each is random, between two shares of a bound.
//
// By default the bound doubles up to 4 s, which is short: after an outage of any length, all agents
// are connected within it. A server that is down costs an agent one attempt in about two seconds.
// Pauses are random over almost the whole range below the bound, so that agents that lost their
// server together, or wait for it together, arrive evenly over that time: 5,000 agents are some 300
// connections in the busiest tenth of a second. docs/decisions/0095 has this and all other pauses.
type pauses struct {
	first, max time.Duration // the bounds of the first pause, and of all later ones
	multiplier float64       // the factor between two bounds
	low, high  float64       // the shares of the bound between which a pause is
	shortest   time.Duration // is added to each pause
}

// reconnectPause decides how long to wait before the next connection.
type reconnectPause struct {
	pauses
	bound time.Duration // of the last pause; 0 before the first
}

func (p *reconnectPause) next() time.Duration {
	p.bound = time.Duration(min(max(float64(p.first), p.multiplier*float64(p.bound)), float64(p.max)))
	low, high := share(p.low, p.bound), share(p.high, p.bound)
	return p.shortest + low + rand.N(max(high-low, 1))
}

func share(part float64, of time.Duration) time.Duration {
	return time.Duration(part * float64(of))
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
	l.reason = reason
	l.loggedAt = now
	l.attempts = 0
	return suppressed, true
}

func (l *failureLog) reset() { *l = failureLog{} }
