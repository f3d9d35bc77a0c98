package gate

import (
	"context"
	"sync"

	"github.com/vedette-io/vedette/wire"
)

// outbound holds what waits to be sent to an agent. It never makes those wait
// who answer: what they say is small, and bounded by what the agent asked for.
// Acknowledgements are cumulative, so a later one takes an earlier one's place.
// What is put is encoded when it is sent, so nothing in it may change any more.
type outbound struct {
	mu      sync.Mutex
	waiting []*wire.ServerMessage
	ready   chan struct{}
}

func newOutbound() *outbound { return &outbound{ready: make(chan struct{}, 1)} }

func (o *outbound) put(m *wire.ServerMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.waiting); n > 0 && m.GetAck() != nil && o.waiting[n-1].GetAck() != nil {
		o.waiting[n-1] = m
	} else {
		o.waiting = append(o.waiting, m)
	}
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

func (o *outbound) take() []*wire.ServerMessage {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.waiting
	o.waiting = nil
	return taken
}

// run sends until ctx ends.
func (o *outbound) run(ctx context.Context, send func(*wire.ServerMessage) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.ready:
		}
		for _, m := range o.take() {
			if err := send(m); err != nil {
				return err
			}
		}
	}
}
