package gate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// holder is a session that gives its memory back when it is told to end.
type holder struct {
	*share
	ended chan error
}

func (m *memory) holder(source string) *holder {
	h := &holder{ended: make(chan error, 1)}
	h.share = m.open(source, func(err error) {
		h.ended <- err
		h.close()
	})
	return h
}

func TestMemory(t *testing.T) {
	ctx := context.Background()
	t.Run("who floods displaces itself and not others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(100)
			var flood []*holder
			for range 10 {
				h := m.holder("hostile")
				if err := h.reserve(ctx, 10); err != nil {
					t.Fatal(err)
				}
				flood = append(flood, h)
			}
			honest := m.holder("honest")
			if err := honest.reserve(ctx, 30); err != nil {
				t.Errorf("an agent of another host gets no memory: %v", err)
			}
			synctest.Wait()
			ended := 0
			for _, h := range flood {
				select {
				case err := <-h.ended:
					ended++
					if !errors.Is(err, errDisplace) {
						t.Errorf("ended by %v", err)
					}
				default:
				}
			}
			if ended != 3 || len(honest.ended) > 0 {
				t.Errorf("%d sessions ended for 30 bytes, want 3 of the flood", ended)
			}
		})
	})
	t.Run("who wants more of the same source waits, and gives up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(100)
			first, second := m.holder("a"), m.holder("a")
			if err := first.reserve(ctx, 90); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := second.reserve(ctx, 20); !errors.Is(err, errNoMemory) || time.Since(began) != memoryWait {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			go func() {
				time.Sleep(time.Second)
				first.release(50)
			}()
			began = time.Now()
			if err := second.reserve(ctx, 20); err != nil || time.Since(began) != time.Second || len(first.ended) > 0 {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	})
	t.Run("who waits is woken for what is enough only", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(100)
			first, second := m.holder("a"), m.holder("a")
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
				t.Error("it was woken in vain")
			default:
			}
			first.release(1)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("nobody gets more than all", func(t *testing.T) {
		if err := newMemory(100).holder("a").reserve(ctx, 101); !errors.Is(err, errNoMemory) {
			t.Error(err)
		}
	})
	t.Run("what does not wait ends the greatest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(100)
			small, great := m.holder("a"), m.holder("b")
			small.grow(40)
			great.grow(70)
			synctest.Wait()
			if len(great.ended) != 1 || len(small.ended) != 0 || m.used != 40 {
				t.Errorf("%d and %d ended, %d bytes are used", len(great.ended), len(small.ended), m.used)
			}
		})
	})
	t.Run("all comes back", func(t *testing.T) {
		m := newMemory(100)
		a := m.holder("a")
		a.grow(10)
		if err := a.reserve(ctx, 20); err != nil {
			t.Fatal(err)
		}
		a.release(1000) // more than there is
		a.grow(5)
		a.close()
		a.grow(5)
		if m.used != 0 || a.reserve(ctx, 1) == nil {
			t.Errorf("%d bytes are used, and a session that has ended gets more", m.used)
		}
	})
}
