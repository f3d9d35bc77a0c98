package uplink

import (
	"context"
	"time"

	"github.com/vedette-io/vedette/wire"
)

// minAliveInterval is the shortest interval that a server may ask for.
const minAliveInterval = 100 * time.Millisecond

// setAliveInterval passes the interval of a server's heartbeat to sendAlive if it has changed. It is
// called by the receiving goroutine and does not wait: a newer interval replaces one that sendAlive
// has not taken yet.
func (l *link) setAliveInterval(d time.Duration) {
	if d > 0 {
		d = max(d, minAliveInterval)
	}
	if d == l.aliveInterval {
		return
	}
	l.aliveInterval = d
	select {
	case <-l.newAliveInterval:
	default:
	}
	l.newAliveInterval <- d
}

// sendAlive shows the server that this process runs, at the interval that the server asks for. It
// announces each new interval at once, so that the server never expects more than it gets. If sending
// fails, receive fails too, with the reason.
func (l *link) sendAlive(ctx context.Context) error {
	ticker := time.NewTicker(time.Hour)
	ticker.Stop()
	defer ticker.Stop()
	interval := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case interval = <-l.newAliveInterval:
			ticker.Stop()
			if interval > 0 {
				ticker.Reset(interval)
			}
		case <-ticker.C:
		}
		l.sendControl(&wire.AgentMessage{Message: &wire.AgentMessage_Alive{Alive: &wire.Alive{IntervalMillis: uint32(interval.Milliseconds())}}})
	}
}
