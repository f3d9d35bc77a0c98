package agent

import (
	"context"
	"sync/atomic"
	"time"
)

// liveness records that the agent's loops run.
type liveness struct {
	lastTick atomic.Pointer[time.Time] // nil before the first tick
}

// livenessTimeout is how long a tick may be missing. It is long, because agents must not be
// restarted when their machine is short of CPU time.
const livenessTimeout = time.Minute

// runLivenessLoop ticks until ctx ends. Each tick takes the locks of the agent and its
// accounts, so that a deadlock stops the ticks.
func (a *Agent) runLivenessLoop(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		a.Status()
		a.serverSettings()
		now := time.Now()
		a.liveness.lastTick.Store(&now)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// isAlive reports whether the last tick is recent, or the loop has not started.
func (h *liveness) isAlive() bool {
	lastTick := h.lastTick.Load()
	return lastTick == nil || time.Since(*lastTick) < livenessTimeout
}
