package gate

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// memory bounds what agents make the gate hold: decompression, records that are not
// complete, answers, and what they don't read. One that wants more than there is
// waits, unless another source of connections holds more than its own: that one's
// greatest session ends then. So whoever floods the server displaces itself, and
// an agent of another host goes on.
type memory struct {
	limit int64

	mu       sync.Mutex
	used     int64
	shares   map[*share]bool
	bySource map[string]int64 // of used
	ending   int              // shares whose sessions were told to end
	least    int64            // that anybody waits for
	freed    chan struct{}    // closed and replaced when there is as much
}

// share is what one session holds.
type share struct {
	memory *memory
	source string      // of the connection: a client certificate, or else a host
	end    func(error) // ends the session; does not wait

	// Guarded by memory.mu.
	held  int64
	ended bool // was told to end
}

// How long an agent waits for its part, and one that connects.
const (
	memoryWait  = 30 * time.Second
	sessionWait = 5 * time.Second
)

var (
	errNoMemory = vedette.Errorf(vedette.Unavailable, "the server has no memory for what the agent sends; it connects again. If this happens often, raise the server's agents.memoryBytes")
	errDisplace = vedette.Errorf(vedette.Unavailable, "the server needed the memory that the agent took, and its host takes the most; it connects again. If this happens often, raise the server's agents.memoryBytes")
)

func newMemory(limit int64) *memory {
	return &memory{limit: limit, shares: map[*share]bool{}, bySource: map[string]int64{}, least: math.MaxInt64, freed: make(chan struct{})}
}

// open begins a share. Its owner closes it.
func (m *memory) open(source string, end func(error)) *share {
	s := &share{memory: m, source: source, end: end}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares[s] = true
	return s
}

// close gives all back. It may be called again.
func (s *share) close() {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shares[s] && s.ended {
		m.ending--
		m.least = 0 // another session may have to end for who waits
	}
	delete(m.shares, s)
	s.releaseLocked(s.held)
}

// release gives n bytes back.
func (s *share) release(n int) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	s.releaseLocked(min(int64(n), s.held))
}

func (s *share) releaseLocked(n int64) {
	m := s.memory
	s.takeLocked(-n)
	if m.least == 0 || m.used <= m.limit-m.least { // else all would wake in vain, at each message of each agent
		m.least = math.MaxInt64
		close(m.freed)
		m.freed = make(chan struct{})
	}
}

func (s *share) takeLocked(n int64) {
	m := s.memory
	s.held += n
	m.used += n
	if m.bySource[s.source] += n; m.bySource[s.source] == 0 {
		delete(m.bySource, s.source)
	}
}

// reserve takes n bytes, and waits until there are as many.
func (s *share) reserve(ctx context.Context, n int) error { return s.reserveWithin(ctx, n, memoryWait) }

func (s *share) reserveWithin(ctx context.Context, n int, wait time.Duration) error {
	patience := time.NewTimer(wait)
	defer patience.Stop()
	for {
		freed, err := s.try(int64(n))
		if freed == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-patience.C:
			return errNoMemory
		case <-freed:
		case <-time.After(time.Second): // another source may hold the most by now
		}
	}
}

// try takes n bytes, or returns what to wait for.
func (s *share) try(n int64) (freed <-chan struct{}, err error) {
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
	m.least = min(m.least, n)
	m.displaceLocked(s.source, n)
	return m.freed, nil
}

// grow takes n bytes without waiting, for what must not wait. Where that is too
// much, the session that holds the most ends, which may be this one.
func (s *share) grow(n int) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.shares[s] {
		return
	}
	s.takeLocked(int64(n))
	if m.used > m.limit {
		m.displaceLocked("", 0)
	}
}

// displaceLocked ends the greatest session of the source that holds the most, if that
// is more than one who asks would have with n bytes more.
func (m *memory) displaceLocked(asks string, n int64) {
	if m.ending > 0 {
		return // memory is given back soon
	}
	most, held := "", int64(0)
	for source, bytes := range m.bySource {
		if bytes > held {
			most, held = source, bytes
		}
	}
	if asks != "" && (most == asks || held <= m.bySource[asks]+n) {
		return
	}
	var greatest *share
	for s := range m.shares {
		if s.source == most && (greatest == nil || s.held > greatest.held) {
			greatest = s
		}
	}
	if greatest != nil {
		greatest.ended = true
		m.ending++
		go greatest.end(errDisplace)
	}
}
