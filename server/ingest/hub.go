package ingest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/vedette-io/vedette/server/store/commit"
)

// Hub publishes committed changes to subscribers. Publish appends them to one log that all subscribers
// share, and wakes them: it runs no code of theirs, waits for none, and costs the same whatever they want.
// Each subscription filters in its own goroutine. A subscriber that falls behind loses its subscription,
// can see that with Lagged, and must read the store again.
//
// A queue for each subscriber before its filter was considered. It would hold each change as often as there are streams, and
// publishing would cost time for each of them. A filter of 450,000 patterns, which publishing ran under its lock, had stopped
// ingest of all accounts. Filters are small besides: 1,000 names of accounts, which are found in a map, and 20 patterns,
// which take time by the length of the name.
type Hub struct {
	mu          sync.Mutex
	log         changeLog
	subscribers int
	published   chan struct{} // closed and replaced when the log grows
	forward     func([]commit.Change)
	await       func(context.Context) error
}

// NewHub returns a hub without subscribers.
func NewHub() *Hub {
	return &Hub{published: make(chan struct{}), forward: func([]commit.Change) {}, await: func(context.Context) error { return nil }}
}

// OnPublish sets what is called with the changes that this server has committed, for other servers. It must not block, and may keep the
// slice. Call OnPublish before anything is published.
func (h *Hub) OnPublish(forward func([]commit.Change)) { h.forward = forward }

// OnAwait sets what Await calls. Call OnAwait before anything is published.
func (h *Hub) OnAwait(await func(context.Context) error) { h.await = await }

// Await waits until the changes of other servers come, too. Of what they commit after that, a subscription that has begun before misses
// nothing, or ends as one that has fallen behind. The error is that of ctx.
func (h *Hub) Await(ctx context.Context) error { return h.await(ctx) }

// HasSubscribers reports whether anybody wants changes.
func (h *Hub) HasSubscribers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.subscribers > 0
}

// Publish sends changes that this server has committed to the subscribers that want them. It keeps the slice.
func (h *Hub) Publish(changes []commit.Change) {
	if len(changes) == 0 {
		return
	}
	h.forward(changes)
	h.PublishOther(changes)
}

// PublishOther is Publish for changes that another server has committed.
func (h *Hub) PublishOther(changes []commit.Change) {
	if len(changes) == 0 {
		return
	}
	if wake := h.append(changes); wake != nil {
		close(wake) // without the lock, because waking takes longer the more subscribers there are
	}
}

// Lose ends all subscriptions as those that have fallen behind, because changes of another server may be missing.
func (h *Hub) Lose() {
	h.mu.Lock()
	h.log.lose()
	wake := h.published
	h.published = make(chan struct{})
	h.mu.Unlock()
	close(wake)
}

// append adds changes to the log. It returns the channel that wakes subscribers, or nil without any.
func (h *Hub) append(changes []commit.Change) (wake chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subscribers == 0 {
		return nil
	}
	h.log.append(changes)
	wake, h.published = h.published, make(chan struct{})
	return wake
}

// Subscription receives the changes that one subscriber wants.
type Subscription struct {
	hub     *Hub
	filter  func(commit.Change) bool
	next    uint64 // position in the log; used by run only
	changes chan commit.Change
	lagged  atomic.Bool
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed by run at its end
	close   func()
}

// subscriptionBuffer is how many changes wait for a subscriber, besides those of the log that all share. A change takes
// about 100 bytes, also while none waits.
const subscriptionBuffer = 256

// Subscribe starts a subscription to the changes that filter accepts. The filter runs in a goroutine of
// the subscription.
func (h *Hub) Subscribe(filter func(commit.Change) bool) *Subscription {
	s := &Subscription{hub: h, filter: filter, changes: make(chan commit.Change, subscriptionBuffer),
		stop: make(chan struct{}), stopped: make(chan struct{})}
	s.close = sync.OnceFunc(func() {
		close(s.stop)
		<-s.stopped
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers++
	s.next = h.log.end()
	go s.run()
	return s
}

// Changes returns the channel of changes. It is closed by Close, or when the subscriber has fallen
// too far behind.
func (s *Subscription) Changes() <-chan commit.Change { return s.changes }

// Lagged reports, once the channel is closed, whether changes were lost.
func (s *Subscription) Lagged() bool { return s.lagged.Load() }

// Close ends the subscription. It waits for a call of the filter to return.
func (s *Subscription) Close() { s.close() }

// run filters the log into the channel until the subscription ends.
func (s *Subscription) run() {
	defer close(s.stopped)
	defer close(s.changes)
	defer s.hub.leave()
	for {
		batch, published := s.read()
		switch {
		case s.lagged.Load():
			return
		case batch != nil:
			if !s.forward(batch) {
				return
			}
		default:
			select {
			case <-s.stop:
				return
			case <-published:
			}
		}
	}
}

// read returns the next batch of the log, or the channel that is closed when there is one.
func (s *Subscription) read() (batch []commit.Change, published <-chan struct{}) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.next == h.log.end() {
		return nil, h.published
	}
	batch, ok := h.log.at(s.next)
	if !ok {
		s.lagged.Store(true)
		return nil, nil
	}
	s.next++
	return batch, nil
}

// forward sends the changes of a batch that the filter accepts. It reports whether to go on.
func (s *Subscription) forward(batch []commit.Change) bool {
	for _, c := range batch {
		select {
		case <-s.stop:
			return false
		default:
		}
		if !s.filter(c) {
			continue
		}
		select {
		case s.changes <- c:
		default:
			s.lagged.Store(true)
			return false
		}
	}
	return true
}

// leave forgets a subscriber. The last one takes the log with it.
func (h *Hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers--
	if h.subscribers == 0 {
		h.log.clear()
	}
}
