package agentserver

import (
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// operationQueue holds what is to be sent on an agent's operation stream. It implements
// dispatch.AgentStream: its methods never wait, because the dispatcher calls them
// under its lock. Its bytes count toward the session's memory.
type operationQueue struct {
	share      *memoryShare
	welcomedAt time.Time     // when the stamps of the session began
	ready      chan struct{} // has room for one; never closed

	mu       sync.Mutex
	messages []*wire.OperationsDown
	bytes    int // of messages
}

func newOperationQueue(share *memoryShare, welcomedAt time.Time) *operationQueue {
	return &operationQueue{share: share, welcomedAt: welcomedAt, ready: make(chan struct{}, 1)}
}

// Send implements dispatch.AgentStream.
func (q *operationQueue) Send(op vedette.Operation) error {
	now := time.Now()
	encoded, err := wire.FromOperation(op, now)
	if err != nil {
		return err
	}
	encoded.SentStamp = max(1, now.Sub(q.welcomedAt).Milliseconds()) // from it the agent counts, so that time in transit counts too
	q.put(&wire.OperationsDown{Message: &wire.OperationsDown_Operation{Operation: encoded}})
	return nil
}

// Cancel implements dispatch.AgentStream.
func (q *operationQueue) Cancel(id vedette.OperationID) {
	q.put(&wire.OperationsDown{Message: &wire.OperationsDown_Cancel{Cancel: &wire.Cancel{Id: string(id)}}})
}

// Forget implements dispatch.AgentStream.
func (q *operationQueue) Forget(id vedette.OperationID) {
	q.put(&wire.OperationsDown{Message: &wire.OperationsDown_Forget{Forget: &wire.Forget{Id: string(id)}}})
}

func (q *operationQueue) put(m *wire.OperationsDown) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = append(q.messages, m)
	q.bytes += sizeOf(m)
	q.share.grow(sizeOf(m))
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take empties the queue. The caller releases the bytes when the messages are sent.
func (q *operationQueue) take() (messages []*wire.OperationsDown, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	messages, bytes = q.messages, q.bytes
	q.messages, q.bytes = nil, 0
	return messages, bytes
}
