package ingest

import (
	"sync"

	"github.com/vedette-io/vedette/server/store"
)

// Hub publishes committed changes to subscribers. It never waits for them. A subscriber that falls
// behind loses its subscription, can see that with Lagged, and must read the store again.
type Hub struct {
	mu   sync.Mutex
	subs map[*Subscription]bool
}

// NewHub returns a hub without subscribers.
func NewHub() *Hub { return &Hub{subs: map[*Subscription]bool{}} }

// Subscription receives the changes that one subscriber wants.
type Subscription struct {
	hub     *Hub
	filter  func(store.Change) bool
	changes chan store.Change
	lagged  bool
}

// subscriptionBuffer is how many changes a subscriber may be behind. A change takes about 100
// bytes.
const subscriptionBuffer = 4096

// Subscribe starts a subscription to the changes that filter accepts.
func (h *Hub) Subscribe(filter func(store.Change) bool) *Subscription {
	s := &Subscription{hub: h, filter: filter, changes: make(chan store.Change, subscriptionBuffer)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[s] = true
	return s
}

// Changes returns the channel of changes. It is closed by Close, or when the subscriber has fallen
// too far behind.
func (s *Subscription) Changes() <-chan store.Change { return s.changes }

// Lagged reports, once the channel is closed, whether changes were lost.
func (s *Subscription) Lagged() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.lagged
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.closeLocked()
}

func (s *Subscription) closeLocked() {
	if s.hub.subs[s] {
		delete(s.hub.subs, s)
		close(s.changes)
	}
}

// Publish sends committed changes to the subscribers that want them.
func (h *Hub) Publish(changes []store.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		for _, c := range changes {
			if s.filter(c) && !s.sendLocked(c) {
				break
			}
		}
	}
}

func (s *Subscription) sendLocked(c store.Change) bool {
	select {
	case s.changes <- c:
		return true
	default:
		s.lagged = true
		s.closeLocked()
		return false
	}
}
