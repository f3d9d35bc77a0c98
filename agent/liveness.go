package agent

import (
	"context"
	"sync/atomic"
	"time"
)

// liveness shows whether the agent's loops turn.
type liveness struct {
	lastTick atomic.Pointer[time.Time] // nil before the first beat
}

// livenessTimeout is how long the heart may stand still. A machine that is short of
// processor time must not have its agents restarted for it.
const livenessTimeout = time.Minute

// runLivenessLoop goes on until ctx ends. Each beat takes the locks of the agent and its
// accounts, which are held for moments only: one that is held for ever stops it.
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

// isAlive reports whether the heart has beaten lately, or has not begun.
func (h *liveness) isAlive() bool {
	lastTick := h.lastTick.Load()
	return lastTick == nil || time.Since(*lastTick) < livenessTimeout
}
