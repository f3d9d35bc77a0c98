package agentserver

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette/wire"
)

// outbound holds what waits to be sent to an agent. It never makes those wait
// who answer: what they say counts against the agent's share of the gate's memory.
// Acknowledgements are cumulative, so a later one takes an earlier one's place.
// What is put is encoded when it is sent, so nothing in it may change any more.
type outbound struct {
	share *memoryShare

	mu         sync.Mutex
	queue      []*wire.ServerMessage
	queueBytes int // of waiting
	ready      chan struct{}
}

func newOutbound(s *memoryShare) *outbound {
	return &outbound{share: s, ready: make(chan struct{}, 1)}
}

// put adds a message, which is the outbound's from then on.
func (o *outbound) put(m *wire.ServerMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.queue); n > 0 && m.GetAck() != nil && o.queue[n-1].GetAck() != nil {
		o.queue[n-1] = m
	} else {
		o.queue = append(o.queue, m)
		size := sizeOf(m)
		o.queueBytes += size
		o.share.grow(size)
	}
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// sizeOf is about what a message takes while it waits.
func sizeOf(m proto.Message) int { return 100 + proto.Size(m) }

func (o *outbound) take() (messages []*wire.ServerMessage, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages, bytes = o.queue, o.queueBytes
	o.queue, o.queueBytes = nil, 0
	return messages, bytes
}

// run sends until ctx ends.
func (o *outbound) run(ctx context.Context, send func(*wire.ServerMessage) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.ready:
		}
		messages, bytes := o.take()
		for _, m := range messages {
			if err := send(m); err != nil {
				return err
			}
		}
		o.share.release(bytes)
	}
}
