package verify

import (
	"math/rand/v2"
	"time"
)

const (
	// minGap is the shortest time between two verifications of a feed.
	minGap = 30 * time.Second
	// disturbedDelay is the longest delay after a disturbance, so that not all feeds are
	// verified in the same moment.
	disturbedDelay = 2 * time.Second
	// maxFirstDelay is how long a feed that resumes waits at most for its first verification.
	maxFirstDelay = 5 * time.Minute
)

// Turn is when a feed is verified next:
//
//	waiting ──due──> running ──ended──> waiting
//	   └─disturbed: due soon┘
//
// A disturbance is an event after which the feed may differ from its cluster without knowing, for
// example a lost connection. Some proxies disturb feeds every minute. So the time between
// verifications after disturbances doubles each time, up to the interval, until the feed had its
// regular turn.
type Turn struct {
	Due       time.Time
	interval  time.Duration
	started   time.Time
	gap       time.Duration
	disturbed bool // since the last verification began
}

// NewTurn returns the turn of a feed that begins to be watched. A feed that resumes is verified soon,
// because nobody knows what happened before.
func NewTurn(now time.Time, interval time.Duration, resumed bool) *Turn {
	delay := interval
	if resumed {
		delay = min(interval, maxFirstDelay)
	}
	return &Turn{Due: now.Add(randomUpTo(delay)), interval: interval, gap: min(minGap, interval)}
}

// Disturb notes a disturbance.
func (t *Turn) Disturb(now time.Time) {
	t.disturbed = true
	due := now.Add(randomUpTo(min(disturbedDelay, t.interval)))
	if earliest := t.started.Add(t.gap); !t.started.IsZero() && due.Before(earliest) {
		due = earliest
	}
	if due.Before(t.Due) {
		t.Due = due
	}
}

// Begin notes that a verification begins.
func (t *Turn) Begin(now time.Time) {
	if t.disturbed {
		t.gap = min(2*t.gap, t.interval)
	} else {
		t.gap = min(minGap, t.interval)
	}
	t.started, t.disturbed = now, false
	t.Due = now.Add(t.interval) // so that a disturbance from now on brings it forward
}

// End notes that a verification has ended. If it could not be completed, it is repeated like one that
// was disturbed.
func (t *Turn) End(now time.Time, complete bool) {
	if t.disturbed { // meanwhile
		return
	}
	t.Due = now.Add(t.interval*9/10 + randomUpTo(t.interval/5))
	if !complete {
		t.Disturb(now)
	}
}

// Repeat makes the next verification due now, after the feed was read anew.
func (t *Turn) Repeat(now time.Time) { t.Due, t.gap = now, min(minGap, t.interval) }

func randomUpTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}
