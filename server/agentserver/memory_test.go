package agentserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// testSession is a session or answer that releases its memory when it is evicted.
type testSession struct {
	*memoryShare
	evictions chan error
}

func (m *memoryBudget) newTestSession(source string) *testSession {
	return newTestSession(source, m.open)
}

func (m *memoryBudget) newTestAnswer(source string) *testSession {
	return newTestSession(source, m.openAnswer)
}

func newTestSession(source string, open func(string, func(error)) *memoryShare) *testSession {
	h := &testSession{evictions: make(chan error, 1)}
	h.memoryShare = open(source, func(err error) {
		h.evictions <- err
		h.close()
	})
	return h
}

func TestFloodDisplacesOnlyItsOwnHost(t *testing.T) {
	ctx := context.Background()
	t.Run("an agent that floods the server only displaces its own host", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemoryBudget(100)
			var flooding []*testSession
			for range 10 {
				h := m.newTestSession("hostile")
				if err := h.reserve(ctx, 10); err != nil {
					t.Fatal(err)
				}
				flooding = append(flooding, h)
			}
			other := m.newTestSession("honest")
			if err := other.reserve(ctx, 30); err != nil {
				t.Errorf("an agent of another host: got %v, want memory", err)
			}
			synctest.Wait()
			evicted := 0
			for _, h := range flooding {
				select {
				case err := <-h.evictions:
					evicted++
					if !errors.Is(err, errEvicted) {
						t.Errorf("the session ended with %v, want errEvicted", err)
					}
				default:
				}
			}
			if evicted != 3 || len(other.evictions) > 0 {
				t.Errorf("got %d evictions for 30 bytes, want 3 of the flooding host", evicted)
			}
		})
	})
	t.Run("a session of the same source waits and times out", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemoryBudget(100)
			first, second := m.newTestSession("a"), m.newTestSession("a")
			if err := first.reserve(ctx, 90); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if err := second.reserve(ctx, 20); !errors.Is(err, errNoMemory) || time.Since(start) != memoryTimeout {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
			go func() {
				time.Sleep(time.Second)
				first.release(50)
			}()
			start = time.Now()
			if err := second.reserve(ctx, 20); err != nil || time.Since(start) != time.Second || len(first.evictions) > 0 {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("a session displaces the largest answer of its source, an answer none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemoryBudget(100)
			session, small, large := m.newTestSession("a"), m.newTestAnswer("a"), m.newTestAnswer("a")
			for share, n := range map[*testSession]int{session: 10, small: 40, large: 50} {
				if err := share.reserve(ctx, n); err != nil {
					t.Fatal(err)
				}
			}
			if err := small.reserve(ctx, 10); !errors.Is(err, errNoMemory) {
				t.Errorf("an answer: got %v, want no memory", err)
			}
			if err := session.reserve(ctx, 51); !errors.Is(err, errNoMemory) {
				t.Errorf("more than an answer holds: got %v, want no memory", err)
			}
			if err := session.reserve(ctx, 40); err != nil {
				t.Errorf("a session: got %v, want memory", err)
			}
			synctest.Wait()
			if len(session.evictions) != 0 || len(small.evictions) != 0 || len(large.evictions) != 1 {
				t.Errorf("got %d, %d and %d evictions, want the large answer's", len(session.evictions), len(small.evictions), len(large.evictions))
			}
		})
	})
	t.Run("a waiting session is woken only if there is enough memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemoryBudget(100)
			first, second := m.newTestSession("a"), m.newTestSession("a")
			if err := first.reserve(ctx, 90); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- second.reserve(ctx, 20) }()
			synctest.Wait()
			m.mu.Lock()
			freed := m.freed
			m.mu.Unlock()
			for range 9 { // as each message that is sent does
				first.release(1)
			}
			select {
			case <-freed:
				t.Error("a waiting session was woken although there is not enough memory")
			default:
			}
			first.release(1)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("more than the limit is rejected", func(t *testing.T) {
		if err := newMemoryBudget(100).newTestSession("a").reserve(ctx, 101); !errors.Is(err, errNoMemory) {
			t.Error(err)
		}
	})
	t.Run("grow evicts the largest session", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemoryBudget(100)
			small, large := m.newTestSession("a"), m.newTestSession("b")
			small.grow(40)
			large.grow(70)
			synctest.Wait()
			if len(large.evictions) != 1 || len(small.evictions) != 0 || m.used != 40 {
				t.Errorf("got %d and %d evictions, and %d bytes in use", len(large.evictions), len(small.evictions), m.used)
			}
		})
	})
	t.Run("closing a share releases all its memory", func(t *testing.T) {
		m := newMemoryBudget(100)
		a := m.newTestSession("a")
		a.grow(10)
		if err := a.reserve(ctx, 20); err != nil {
			t.Fatal(err)
		}
		a.release(1000) // more than there is
		a.grow(5)
		a.close()
		a.grow(5)
		if m.used != 0 || a.reserve(ctx, 1) == nil {
			t.Errorf("got %d bytes in use after a session ended, want 0", m.used)
		}
	})
}
