package uplink

import (
	"cmp"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Backoff configures the pauses between attempts to connect.
type Backoff struct {
	// Pause after the first failure, in nanoseconds. Default if another of these keys is set: 1000000000.
	BaseDelay *time.Duration `config:"baseDelay" format:"nanoseconds"`
	// Factor between two pauses. Default if another of these keys is set: 1.6.
	Multiplier *float64 `config:"multiplier"`
	// Random share that is added to a pause or taken from it. Default if another of these keys is set: 0.2.
	Jitter *float64 `config:"jitter" minimum:"0" maximum:"1"`
	// Longest pause, in nanoseconds. Default if another of these keys is set: 120000000000.
	MaxDelay *time.Duration `config:"maxDelay" format:"nanoseconds"`
}

func (b Backoff) withDefaults() Backoff {
	b.BaseDelay = cmp.Or(b.BaseDelay, new(time.Second))
	b.Multiplier = cmp.Or(b.Multiplier, new(1.6))
	b.Jitter = cmp.Or(b.Jitter, new(0.2))
	b.MaxDelay = cmp.Or(b.MaxDelay, new(2*time.Minute))
	return b
}

// pauses returns the pauses, to each of which shortest is added. Jitter is a share below and above a bound, as in gRPC.
func (b Backoff) pauses(shortest time.Duration) pauses {
	if b == (Backoff{}) {
		return pauses{first: 2 * time.Second, max: 4 * time.Second, multiplier: 2, low: 1. / 8, high: 1, shortest: shortest}
	}
	b = b.withDefaults()
	return pauses{first: *b.BaseDelay, max: *b.MaxDelay, multiplier: *b.Multiplier, low: 1 - *b.Jitter, high: 1 + *b.Jitter,
		shortest: shortest}
}

// maxDelay is the longest pause that makes sense: an agent that waits for longer looks dead.
const maxDelay = 24 * time.Hour

// Check reports what concerns several keys.
func (b Backoff) Check(c configfile.Checker) {
	b = b.withDefaults()
	base, limit := *b.BaseDelay, *b.MaxDelay
	if base <= 0 || base > maxDelay {
		c.Problem("baseDelay", " must be from 1 to %d nanoseconds (24 hours), got %d", maxDelay, base)
	}
	if limit < base || limit > maxDelay {
		c.Problem("maxDelay", " must be from %s (%d nanoseconds) to %d nanoseconds (24 hours), got %d", c.Path("baseDelay"), base, maxDelay, limit)
	}
	if factor := *b.Multiplier; factor < 1 {
		c.Problem("multiplier", " must be at least 1, got %g", factor)
	}
}
