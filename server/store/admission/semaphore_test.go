package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// semaphoreTest is a semaphore whose only permit is taken, and the names of those
// admitted since.
type semaphoreTest struct {
	t *testing.T
	*Semaphore
	mu       sync.Mutex
	admitted []string
}

func newSemaphoreTest(t *testing.T) *semaphoreTest {
	return &semaphoreTest{t: t, Semaphore: NewSemaphore(0)}
}

func (q *semaphoreTest) start(name string, acquire func(context.Context) error) context.CancelFunc {
	ctx, cancel := context.WithCancel(q.t.Context())
	go func() {
		if acquire(ctx) != nil {
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.admitted = append(q.admitted, name)
	}()
	synctest.Wait()
	return cancel
}

// acquireLowFrom acquires as a batch of a source.
func (q *semaphoreTest) acquireLowFrom(source string) func(context.Context) error {
	return func(ctx context.Context) error { return q.AcquireLow(ctx, source) }
}

// releaseAll admits n waiters, one after the other, and returns their names.
func (q *semaphoreTest) releaseAll(n int) []string {
	for range n {
		q.Release()
		synctest.Wait()
	}
	q.Release()
	return q.admitted
}

func TestPriorityWaitersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newSemaphoreTest(t)
		q.start("batch 1", q.acquireLowFrom("a"))
		q.start("operation 1", q.Acquire)
		cancel := q.start("canceled operation", q.Acquire)
		q.start("batch 2", q.acquireLowFrom("a"))
		q.start("operation 2", q.Acquire)
		cancel()
		synctest.Wait()
		if got, want := q.releaseAll(4), []string{"operation 1", "operation 2", "batch 1", "batch 2"}; !slices.Equal(got, want) {
			t.Errorf("got order %q, want %q", got, want)
		}
		if q.free != 1 {
			t.Errorf("got %d free permits after all releases, want 1", q.free)
		}
	})
}

func TestSourcesAreAdmittedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newSemaphoreTest(t)
		for i := range 4 {
			q.start(fmt.Sprint("flood ", i), q.acquireLowFrom("flood"))
		}
		cancel := q.start("canceled", q.acquireLowFrom("gone"))
		q.start("shop 0", q.acquireLowFrom("shop"))
		q.start("bank 0", q.acquireLowFrom("bank"))
		q.start("shop 1", q.acquireLowFrom("shop"))
		cancel()
		synctest.Wait()
		want := []string{"flood 0", "shop 0", "bank 0", "flood 1", "shop 1", "flood 2", "flood 3"}
		if got := q.releaseAll(7); !slices.Equal(got, want) {
			t.Errorf("got order %q, want %q", got, want)
		}
		if len(q.low.sources) != 0 || len(q.low.waiting) != 0 {
			t.Errorf("got waiters %v after all releases, want none", q.low)
		}
	})
}

func TestLowPriorityIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newSemaphoreTest(t)
		q.start("batch", q.acquireLowFrom("a"))
		for i := range maxBypassed + 2 {
			q.start(fmt.Sprint("operation ", i), q.Acquire)
		}
		if got := q.releaseAll(maxBypassed + 3); got[maxBypassed] != "batch" {
			t.Errorf("got order %q, want the batch after %d operations", got, maxBypassed)
		}
	})
}

// A waiter that gives up at the moment of its admission passes its permit on.
func TestCanceledWaiterReleasesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newSemaphoreTest(t)
		admitted := q.enqueue(&q.high, "")
		q.Release()
		q.cancel(&q.high, "", admitted)
		if q.free != 1 {
			t.Errorf("got %d free permits, want 1", q.free)
		}
	})
}

// A canceled waiter may have been admitted already, because select takes either. Whichever it
// takes, no permit is lost.
func TestCanceledContextLosesNoPermit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, acquire := range map[string]func(*Semaphore) error{
		"high": func(s *Semaphore) error { return s.Acquire(ctx) },
		"low":  func(s *Semaphore) error { return s.AcquireLow(ctx, "shop") },
	} {
		s := NewSemaphore(1)
		for range 100 {
			if acquire(s) == nil {
				s.Release()
			}
			if s.free != 1 {
				t.Fatalf("%s: got %d free permits, want 1", name, s.free)
			}
		}
	}
}
