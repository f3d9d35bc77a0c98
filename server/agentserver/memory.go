package agentserver

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// memoryBudget bounds what agents make the gate hold: decompression, records that are not
// complete, answers, and what they don't read. One that wants more than there is
// waits, unless another source of connections holds more than its own: that one's
// greatest session ends then. So whoever floods the server displaces itself, and
// an agent of another host goes on.
type memoryBudget struct {
	limit int64

	mu           sync.Mutex
	used         int64
	shares       map[*memoryShare]bool
	bySource     map[string]int64 // of used
	evicting     int              // shares whose sessions were told to end
	smallestWait int64            // that anybody waits for
	freed        chan struct{}    // closed and replaced when there is as much
}

// memoryShare is what one session holds.
type memoryShare struct {
	memory     *memoryBudget
	source     string      // of the connection: a client certificate, or else a host
	endSession func(error) // ends the session; does not wait

	// Guarded by memory.mu.
	held    int64
	evicted bool // was told to end
}

// How long an agent waits for its part, and one that connects.
const (
	memoryTimeout        = 30 * time.Second
	sessionMemoryTimeout = 5 * time.Second
)

var (
	errNoMemory = vedette.Errorf(vedette.Unavailable, "the server has no memory for the agent's messages; the agent reconnects. If this happens often, raise agents.memoryBytes of the server")
	errEvicted  = vedette.Errorf(vedette.Unavailable, "the server reclaimed the agent's memory because its host uses the most; the agent reconnects. If this happens often, raise agents.memoryBytes of the server")
)

func newMemoryBudget(limit int64) *memoryBudget {
	return &memoryBudget{limit: limit, shares: map[*memoryShare]bool{}, bySource: map[string]int64{}, smallestWait: math.MaxInt64, freed: make(chan struct{})}
}

// open begins a share. Its owner closes it.
func (m *memoryBudget) open(source string, end func(error)) *memoryShare {
	s := &memoryShare{memory: m, source: source, endSession: end}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares[s] = true
	return s
}

// close gives all back. It may be called again.
func (s *memoryShare) close() {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shares[s] && s.evicted {
		m.evicting--
		m.smallestWait = 0 // another session may have to end for who waits
	}
	delete(m.shares, s)
	s.releaseLocked(s.held)
}

// release gives n bytes back.
func (s *memoryShare) release(n int) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	s.releaseLocked(min(int64(n), s.held))
}

func (s *memoryShare) releaseLocked(n int64) {
	m := s.memory
	s.takeLocked(-n)
	if m.smallestWait == 0 || m.used <= m.limit-m.smallestWait { // else all would wake in vain, at each message of each agent
		m.smallestWait = math.MaxInt64
		close(m.freed)
		m.freed = make(chan struct{})
	}
}

func (s *memoryShare) takeLocked(n int64) {
	m := s.memory
	s.held += n
	m.used += n
	if m.bySource[s.source] += n; m.bySource[s.source] == 0 {
		delete(m.bySource, s.source)
	}
}

// reserve takes n bytes, and waits until there are as many.
func (s *memoryShare) reserve(ctx context.Context, n int) error {
	return s.reserveWithin(ctx, n, memoryTimeout)
}

func (s *memoryShare) reserveWithin(ctx context.Context, n int, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		freed, err := s.tryReserve(int64(n))
		if freed == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return errNoMemory
		case <-freed:
		case <-time.After(time.Second): // another source may hold the most by now
		}
	}
}

// tryReserve takes n bytes, or returns what to wait for.
func (s *memoryShare) tryReserve(n int64) (freed <-chan struct{}, err error) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.shares[s] || s.held+n > m.limit {
		return nil, errNoMemory
	}
	if m.used+n <= m.limit {
		s.takeLocked(n)
		return nil, nil
	}
	m.smallestWait = min(m.smallestWait, n)
	m.evictLocked(s.source, n)
	return m.freed, nil
}

// grow takes n bytes without waiting, for what must not wait. Where that is too
// much, the session that holds the most ends, which may be this one.
func (s *memoryShare) grow(n int) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.shares[s] {
		return
	}
	s.takeLocked(int64(n))
	if m.used > m.limit {
		m.evictLocked("", 0)
	}
}

// evictLocked ends the greatest session of the source that holds the most, if that
// is more than one who asks would have with n bytes more.
func (m *memoryBudget) evictLocked(requester string, n int64) {
	if m.evicting > 0 {
		return // memory is given back soon
	}
	largestSource, largestBytes := "", int64(0)
	for source, bytes := range m.bySource {
		if bytes > largestBytes {
			largestSource, largestBytes = source, bytes
		}
	}
	if requester != "" && (largestSource == requester || largestBytes <= m.bySource[requester]+n) {
		return
	}
	var largest *memoryShare
	for s := range m.shares {
		if s.source == largestSource && (largest == nil || s.held > largest.held) {
			largest = s
		}
	}
	if largest != nil {
		largest.evicted = true
		m.evicting++
		go largest.endSession(errEvicted)
	}
}
