package ingest

import (
	"sync"

	"github.com/vedette-io/vedette/server/store"
)

// Hub tells subscribers what was committed. It never waits for them: one that
// falls behind loses its subscription and is told so, and must read the store
// anew.
type Hub struct {
	mu   sync.Mutex
	subs map[*Subscription]bool
}

// NewHub returns a hub without subscribers.
func NewHub() *Hub { return &Hub{subs: map[*Subscription]bool{}} }

// Subscription is one reader of changes.
type Subscription struct {
	hub     *Hub
	filter  func(store.Change) bool
	changes chan store.Change
	lagged  bool
}

// subscriptionBuffer is how many changes a subscriber may be behind. A hundred bytes each.
const subscriptionBuffer = 4096

// Subscribe begins to gather the changes that want accepts.
func (h *Hub) Subscribe(filter func(store.Change) bool) *Subscription {
	s := &Subscription{hub: h, filter: filter, changes: make(chan store.Change, subscriptionBuffer)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[s] = true
	return s
}

// Changes returns the channel of changes. It is closed by Close, and when the
// subscriber has fallen too far behind.
func (s *Subscription) Changes() <-chan store.Change { return s.changes }

// Lagged reports, after the channel was closed, whether changes were lost.
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

// Publish hands committed changes to those who want them.
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
