package agentserver

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// memoryBudget limits the memory that agents use in the server: decoders, incomplete
// records, answers and unsent messages. A reservation that exceeds the limit waits. If
// another source uses more than the waiting one, the largest session or answer of that source
// ends, so that an agent that floods the server only displaces agents of its own host. Otherwise a session
// displaces an answer of its own source that holds enough, because changes of all accounts of its agent depend on it.
type memoryBudget struct {
	limit int64

	mu           sync.Mutex
	used         int64
	shares       map[*memoryShare]bool
	bySource     map[string]int64 // of used
	evicting     int              // sessions that are being ended
	smallestWait int64            // the smallest pending reservation
	freed        chan struct{}    // closed and replaced when smallestWait bytes are free
}

// memoryShare is the memory of one session, or of one answer to an operation.
type memoryShare struct {
	memory *memoryBudget
	source string      // of the connection: a client certificate, or else a host
	answer bool        // of an answer, not of a session
	end    func(error) // ends the session or answer; does not wait

	// Guarded by memory.mu.
	held    int64
	evicted bool // end was called
}

// How long a session waits for memory, and how long a new session waits.
const (
	memoryTimeout        = 30 * time.Second
	sessionMemoryTimeout = 5 * time.Second
)

var (
	errNoMemory = vedette.Errorf(vedette.Unavailable,
		"the server has no memory for the agent's messages; the agent reconnects. If this happens often, raise agents.memoryBytes of the server")
	errEvicted = vedette.Errorf(vedette.Unavailable,
		"the server reclaimed the agent's memory because its host uses the most; the agent reconnects. If this happens often, raise agents.memoryBytes of the server")
)

func newMemoryBudget(limit int64) *memoryBudget {
	return &memoryBudget{limit: limit, shares: map[*memoryShare]bool{}, bySource: map[string]int64{}, smallestWait: math.MaxInt64,
		freed: make(chan struct{})}
}

// open returns a new share of a session. The caller must close it.
func (m *memoryBudget) open(source string, end func(error)) *memoryShare {
	return m.add(&memoryShare{memory: m, source: source, end: end})
}

func (m *memoryBudget) openAnswer(source string, end func(error)) *memoryShare {
	return m.add(&memoryShare{memory: m, source: source, end: end, answer: true})
}

func (m *memoryBudget) add(s *memoryShare) *memoryShare {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares[s] = true
	return s
}

// close releases the whole share. It may be called more than once.
func (s *memoryShare) close() {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shares[s] && s.evicted {
		m.evicting--
		m.smallestWait = 0 // wake all: they may have to end another session
	}
	delete(m.shares, s)
	s.releaseLocked(s.held)
}

func (s *memoryShare) release(n int) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	s.releaseLocked(min(int64(n), s.held))
}

func (s *memoryShare) releaseLocked(n int64) {
	m := s.memory
	s.takeLocked(-n)
	if m.smallestWait == 0 || m.used <= m.limit-m.smallestWait { // waking all after each message of each agent would be expensive
		m.smallestWait = math.MaxInt64
		close(m.freed)
		m.freed = make(chan struct{})
	}
}

func (s *memoryShare) takeLocked(n int64) {
	m := s.memory
	s.held += n
	m.used += n
	m.bySource[s.source] += n
	if m.bySource[s.source] == 0 {
		delete(m.bySource, s.source)
	}
}

// reserve reserves n bytes and waits until they are available.
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
		case <-time.After(time.Second): // another source may use the most by now
		}
	}
}

// tryReserve reserves n bytes, or returns a channel to wait for.
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
	m.evictLocked(s, n)
	return m.freed, nil
}

// grow reserves n bytes without waiting, for callers that must not block. If that
// exceeds the limit, the session that uses the most ends, which may be this one.
func (s *memoryShare) grow(n int) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.shares[s] {
		return
	}
	s.takeLocked(int64(n))
	if m.used > m.limit {
		m.evictLocked(nil, 0)
	}
}

// evictLocked ends the largest session or answer of the source that uses the most, if that is more than the source of the
// requester would use with n more bytes. Otherwise, if the requester is a session, it ends the largest answer of its source, if that
// holds enough.
// A requester of nil ends the largest of all.
func (m *memoryBudget) evictLocked(requester *memoryShare, n int64) {
	if m.evicting > 0 {
		return // memory will be released soon
	}
	source, sourceBytes := "", int64(0)
	for s, bytes := range m.bySource {
		if bytes > sourceBytes {
			source, sourceBytes = s, bytes
		}
	}
	own := requester != nil && (source == requester.source || sourceBytes <= m.bySource[requester.source]+n)
	if own {
		source = requester.source
	}
	var largest *memoryShare
	for s := range m.shares {
		mayEnd := !own || !requester.answer && s.answer && s.held >= n
		if s.source == source && mayEnd && (largest == nil || s.held > largest.held) {
			largest = s
		}
	}
	if largest != nil {
		largest.evicted = true
		m.evicting++
		go largest.end(errEvicted)
	}
}
