package uplink

import (
	"cmp"
	"math/rand/v2"
	"regexp"
	"time"
)

// Pauses configures the pauses between connections. Each is random, between two shares of a bound.
//
// By default the bound doubles up to 4 s, which is short: after an outage of any length, all agents
// are connected within it. A server that is down costs an agent one attempt in about two seconds.
// Pauses are random over almost the whole range below the bound, so that agents that lost their
// server together, or wait for it together, arrive evenly over that time: 5,000 agents are some 300
// connections in the busiest tenth of a second.
type Pauses struct {
	// First is the bound of the first pause, Max that of all later ones; 0 for 2 s and 4 s.
	First, Max time.Duration
	// Multiplier is the factor between two bounds; 0 for 2.
	Multiplier float64
	// Low and High are the shares of the bound between which a pause is. Both 0 are for 1/8 and 1.
	Low, High float64
	// Shortest is added to each pause.
	Shortest time.Duration
}

func (p Pauses) withDefaults() Pauses {
	p.First, p.Max, p.Multiplier = cmp.Or(p.First, 2*time.Second), cmp.Or(p.Max, 4*time.Second), cmp.Or(p.Multiplier, 2)
	if p.Low == 0 && p.High == 0 {
		p.Low, p.High = 1./8, 1
	}
	return p
}

// reconnectPause decides how long to wait before the next connection.
type reconnectPause struct {
	Pauses
	bound time.Duration // of the last pause; 0 before the first
}

func (p *reconnectPause) next() time.Duration {
	p.bound = time.Duration(min(max(float64(p.First), p.Multiplier*float64(p.bound)), float64(p.Max)))
	low, high := share(p.Low, p.bound), share(p.High, p.bound)
	return p.Shortest + low + rand.N(max(high-low, 1))
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
	l.reason, l.loggedAt, l.attempts = reason, now, 0
	return suppressed, true
}

func (l *failureLog) reset() { *l = failureLog{} }
