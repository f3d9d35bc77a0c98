package dispatch

import (
	"context"
	"time"

	"github.com/vedette-io/vedette"
)

// IsBusy reports whether an operation of an account runs. Streams of logs do not count, because they
// may last for hours.
func (d *Dispatcher) IsBusy(account vedette.AccountName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.pending {
		if p.account == account && !p.isLogs {
			return true
		}
	}
	return false
}

// drainInterval is how often Drain looks.
const drainInterval = 20 * time.Millisecond

// Drain waits until no operation runs, or ctx ends. Streams of logs do not count.
func (d *Dispatcher) Drain(ctx context.Context) {
	ticker := time.NewTicker(drainInterval)
	defer ticker.Stop()
	for d.isBusy() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (d *Dispatcher) isBusy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.pending {
		if !p.isLogs {
			return true
		}
	}
	return false
}
