package agent

import (
	"context"
	"sync/atomic"
	"time"
)

// heart shows whether the agent's loops turn.
type heart struct {
	last atomic.Pointer[time.Time] // nil before the first beat
}

// mostStill is how long the heart may stand still. A machine that is short of
// processor time must not have its agents restarted for it.
const mostStill = time.Minute

// beat goes on until ctx ends. Each beat takes the locks of the agent and its
// accounts, which are held for moments only: one that is held for ever stops it.
func (a *Agent) beat(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		a.Status()
		a.currentTerms()
		now := time.Now()
		a.heart.last.Store(&now)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// beats reports whether the heart has beaten lately, or has not begun.
func (h *heart) beats() bool {
	last := h.last.Load()
	return last == nil || time.Since(*last) < mostStill
}
