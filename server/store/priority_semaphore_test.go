package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// semaphoreTest is a turnstile with one place that is taken, and who came in since.
type semaphoreTest struct {
	t *testing.T
	prioritySemaphore
	mu       sync.Mutex
	admitted []string
}

func (q *semaphoreTest) start(name string, enter func(context.Context) error) context.CancelFunc {
	ctx, cancel := context.WithCancel(q.t.Context())
	go func() {
		if enter(ctx) != nil {
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.admitted = append(q.admitted, name)
	}()
	synctest.Wait()
	return cancel
}

// acquireLowFrom enters as a batch of a source.
func (q *semaphoreTest) acquireLowFrom(source string) func(context.Context) error {
	return func(ctx context.Context) error { return q.acquireLow(ctx, source) }
}

// releaseAll lets all in, one after the other.
func (q *semaphoreTest) releaseAll(n int) []string {
	for range n {
		q.release()
		synctest.Wait()
	}
	q.release()
	return q.admitted
}

func TestPriorityWaitersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &semaphoreTest{t: t}
		q.start("batch 1", q.acquireLowFrom("a"))
		q.start("operation 1", q.acquire)
		cancel := q.start("operation that is given up", q.acquire)
		q.start("batch 2", q.acquireLowFrom("a"))
		q.start("operation 2", q.acquire)
		cancel()
		synctest.Wait()
		if got, want := q.releaseAll(4), []string{"operation 1", "operation 2", "batch 1", "batch 2"}; !slices.Equal(got, want) {
			t.Errorf("they came in as %q, want %q", got, want)
		}
		if q.free != 1 {
			t.Errorf("%d places are free after all left, want 1", q.free)
		}
	})
}

// A source with many batches delays none but its own.
func TestSourcesAreAdmittedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &semaphoreTest{t: t}
		for i := range 4 {
			q.start(fmt.Sprint("flood ", i), q.acquireLowFrom("flood"))
		}
		cancel := q.start("given up", q.acquireLowFrom("gone"))
		q.start("shop 0", q.acquireLowFrom("shop"))
		q.start("bank 0", q.acquireLowFrom("bank"))
		q.start("shop 1", q.acquireLowFrom("shop"))
		cancel()
		synctest.Wait()
		want := []string{"flood 0", "shop 0", "bank 0", "flood 1", "shop 1", "flood 2", "flood 3"}
		if got := q.releaseAll(7); !slices.Equal(got, want) {
			t.Errorf("they came in as %q, want %q", got, want)
		}
		if len(q.low.sources) != 0 || len(q.low.waiting) != 0 {
			t.Errorf("after all left, %v still wait", q.low)
		}
	})
}

func TestLowPriorityIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &semaphoreTest{t: t}
		q.start("batch", q.acquireLowFrom("a"))
		for i := range maxBypassed + 2 {
			q.start(fmt.Sprint("operation ", i), q.acquire)
		}
		if got := q.releaseAll(maxBypassed + 3); got[maxBypassed] != "batch" {
			t.Errorf("they came in as %q; the batch was due after %d", got, maxBypassed)
		}
	})
}

// Who gives up at the moment when it is let in leaves its place to the next.
func TestCanceledWaiterReleasesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &semaphoreTest{t: t}
		admitted := q.enqueue(func(admitted chan struct{}) { q.high = append(q.high, admitted) })
		q.release()
		q.cancel(admitted, func(chan struct{}) bool { return false })
		if q.free != 1 {
			t.Errorf("%d places are free, want 1", q.free)
		}
	})
}

// TestBatchesWriteAtLowPriority holds SQLite's one writer while a batch waits for it, and
// then the ends of operations.
func TestBatchesWriteAtLowPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		var written []string // noted by whoever is writing
		upsert, insert := w.dialect.upsert, w.dialect.insert
		w.dialect.upsert = func(ctx context.Context, tx *transaction, account int64, rows []objectRow) error {
			written = append(written, "a batch")
			return upsert(ctx, tx, account, rows)
		}
		w.dialect.insert = func(ctx context.Context, tx *transaction, table string, columns []columnSpec, rows [][]any, or string) error {
			written = append(written, "operations")
			return insert(ctx, tx, table, columns, rows, or)
		}
		release := make(chan struct{})
		go func() {
			w.must(w.write(context.Background(), func(context.Context, *transaction) error { <-release; return nil }))
		}()
		synctest.Wait()
		go w.commit(5, podsAt(0, 3, 5)...)
		synctest.Wait()
		go func() {
			w.must(w.EndOperations(context.Background(), []OperationRow{{ID: "01J", Account: "prod"}, {ID: "01K", Account: "prod"}}))
		}()
		synctest.Wait()
		close(release)
		synctest.Wait()
		if want := []string{"operations", "a batch"}; !slices.Equal(written, want) {
			t.Errorf("written as %q, want %q", written, want)
		}
		w.must(w.Close())
	})
}

// A canceled waiter may have been admitted already: select takes either. Whichever it
// takes, no permit is lost.
func TestCanceledContextLosesNoPermit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, acquire := range map[string]func(*prioritySemaphore) error{
		"high": func(s *prioritySemaphore) error { return s.acquire(ctx) },
		"low":  func(s *prioritySemaphore) error { return s.acquireLow(ctx, "shop") },
	} {
		s := prioritySemaphore{free: 1}
		for range 100 {
			if acquire(&s) == nil {
				s.release()
			}
			if s.free != 1 {
				t.Fatalf("%s: %d permits are free, want 1", name, s.free)
			}
		}
	}
}
