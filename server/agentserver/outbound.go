package agentserver

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette/wire"
)

// outbound is the queue of messages to an agent. put never blocks; the messages count
// toward the agent's memory share. Acknowledgements are cumulative, so a later one
// replaces an earlier one. Messages are encoded when they are sent, so they must not be
// modified after put.
type outbound struct {
	share *memoryShare

	mu         sync.Mutex
	queue      []*wire.ServerMessage
	queueBytes int // of queue
	ready      chan struct{}
}

func newOutbound(s *memoryShare) *outbound {
	return &outbound{share: s, ready: make(chan struct{}, 1)}
}

// put queues a message and takes ownership of it.
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

// sizeOf returns the approximate memory of a queued message in bytes.
func sizeOf(m proto.Message) int { return 100 + proto.Size(m) }

func (o *outbound) take() (messages []*wire.ServerMessage, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages, bytes = o.queue, o.queueBytes
	o.queue, o.queueBytes = nil, 0
	return messages, bytes
}

// run sends messages until ctx ends.
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
