package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette/internal/fair"
)

// semaphoreTest is a semaphore whose only permit is taken, and the names of those
// admitted since.
type semaphoreTest struct {
	t *testing.T
	*Semaphore
	held     *fair.Grant // the only permit
	mu       sync.Mutex
	admitted []string
}

func newSemaphoreTest(t *testing.T) *semaphoreTest {
	s := NewSemaphore(1)
	held, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &semaphoreTest{t: t, Semaphore: s, held: held}
}

func (q *semaphoreTest) start(name string, acquire func(context.Context) (*fair.Grant, error)) context.CancelFunc {
	ctx, cancel := context.WithCancel(q.t.Context())
	go func() {
		permit, err := acquire(ctx)
		if err != nil {
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.admitted = append(q.admitted, name)
		q.held = permit
	}()
	synctest.Wait()
	return cancel
}

// acquireLowFrom acquires as a batch of a source.
func (q *semaphoreTest) acquireLowFrom(source string) func(context.Context) (*fair.Grant, error) {
	return func(ctx context.Context) (*fair.Grant, error) { return q.AcquireLow(WithSource(ctx, source)) }
}

// releaseAll admits n waiters, one after the other, and returns their names.
func (q *semaphoreTest) releaseAll(n int) []string {
	for range n {
		q.held.Release()
		synctest.Wait()
	}
	q.held.Release()
	if got := q.line.Stats(); got != (fair.Stats{}) {
		q.t.Errorf("got %+v after all releases, want no permits used and no waiters", got)
	}
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
	})
}

// What agents cause waits behind operations, and takes turns, also if it is short: one host that connects and registers
// all the time must not hold up others.
func TestTransactionsOfSourcesHaveLowPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newSemaphoreTest(t)
		acquireFor := func(source string) func(context.Context) (*fair.Grant, error) {
			return func(ctx context.Context) (*fair.Grant, error) { return q.Acquire(WithSource(ctx, source)) }
		}
		for i := range 3 {
			q.start(fmt.Sprint("registration ", i), acquireFor("flood"))
		}
		q.start("batch", q.acquireLowFrom("shop"))
		q.start("operation", q.Acquire)
		want := []string{"operation", "registration 0", "batch", "registration 1", "registration 2"}
		if got := q.releaseAll(5); !slices.Equal(got, want) {
			t.Errorf("got order %q, want %q", got, want)
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

// A source whose accounts are locked leaves permits to other sources, and none is reserved from callers
// that wait.
func TestLockedSourceLeavesPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSemaphore(8)
		var sources []string
		start := func(source string) {
			go func() {
				if _, err := s.AcquireLow(WithSource(t.Context(), source)); err == nil {
					sources = append(sources, source)
				}
			}()
			synctest.Wait()
		}
		for range 8 {
			start("locked")
		}
		start("honest")
		if _, err := s.Acquire(t.Context()); err != nil || len(sources) != 7 || sources[6] != "honest" {
			t.Errorf("got permits for %q, want 6 of the locked source, and the other one's", sources)
		}
	})
	s := NewSemaphore(8)
	for range 8 {
		if _, err := s.Acquire(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The error of a caller that gives up is that of its context, not the cause, by which errors of the
// database are recognized.
func TestCanceledWaiterGetsItsContextsError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the agent disconnected"))
	s := NewSemaphore(1)
	if _, err := s.AcquireLow(WithSource(ctx, "shop")); !errors.Is(err, context.Canceled) || s.line.Stats() != (fair.Stats{}) {
		t.Errorf("got %v and %+v, want context.Canceled and no permits used", err, s.line.Stats())
	}
}
