package config

import "time"

// Backoff configures the pauses between attempts to connect.
type Backoff struct {
	// Pause after the first failure, in nanoseconds. Default if another of these keys is set: 1000000000.
	BaseDelay *int64 `config:"baseDelay"`
	// Factor between two pauses. Default if another of these keys is set: 1.6.
	Multiplier *float64 `config:"multiplier"`
	// Random share that is added to a pause or taken from it. Default if another of these keys is set: 0.2.
	Jitter *float64 `config:"jitter"`
	// Longest pause, in nanoseconds. Default if another of these keys is set: 120000000000.
	MaxDelay *int64 `config:"maxDelay"`
}

// IsSet reports whether any of the keys is set.
func (b Backoff) IsSet() bool {
	return b.BaseDelay != nil || b.Multiplier != nil || b.Jitter != nil || b.MaxDelay != nil
}

// Base returns BaseDelay or its default.
func (b Backoff) Base() time.Duration { return time.Duration(valueOr(b.BaseDelay, int64(time.Second))) }

// Factor returns Multiplier or its default.
func (b Backoff) Factor() float64 { return valueOr(b.Multiplier, 1.6) }

// Share returns Jitter or its default.
func (b Backoff) Share() float64 { return valueOr(b.Jitter, 0.2) }

// Max returns MaxDelay or its default.
func (b Backoff) Max() time.Duration {
	return time.Duration(valueOr(b.MaxDelay, int64(2*time.Minute)))
}

func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// maxDelay is the longest pause that makes sense: an agent that waits for longer looks dead.
const maxDelay = 24 * time.Hour

func (c *Config) checkBackoff(path string, b Backoff) {
	base, limit := b.Base(), b.Max()
	if base <= 0 || base > maxDelay {
		c.addProblem(path+"baseDelay", "%q must be from 1 to %d nanoseconds (24 hours), got %d", path+"baseDelay", maxDelay, base)
	}
	if limit < base || limit > maxDelay {
		c.addProblem(path+"maxDelay", "%q must be from %sbaseDelay (%d nanoseconds) to %d nanoseconds (24 hours), got %d", path+"maxDelay", path,
			base, maxDelay, limit)
	}
	if factor := b.Factor(); factor < 1 {
		c.addProblem(path+"multiplier", "%q must be at least 1, got %g", path+"multiplier", factor)
	}
	if share := b.Share(); share < 0 || share > 1 {
		c.addProblem(path+"jitter", "%q must be from 0 to 1, got %g", path+"jitter", share)
	}
	if limit := int(time.Hour / time.Millisecond); c.Kubernetes.ReconnectTimeoutMs < 0 || c.Kubernetes.ReconnectTimeoutMs > limit {
		const path = "kubernetes.reconnectTimeoutMs"
		c.addProblem(path, "%q must be from 0 to %d, got %d", path, limit, c.Kubernetes.ReconnectTimeoutMs)
	}
}
