package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// queue is a turnstile with one place that is taken, and who came in since.
type queue struct {
	t *testing.T
	turnstile
	mu   sync.Mutex
	came []string
}

func (q *queue) wait(name string, enter func(context.Context) error) context.CancelFunc {
	ctx, cancel := context.WithCancel(q.t.Context())
	go func() {
		if enter(ctx) != nil {
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.came = append(q.came, name)
	}()
	synctest.Wait()
	return cancel
}

// from enters as a batch of a source.
func (q *queue) from(source string) func(context.Context) error {
	return func(ctx context.Context) error { return q.enterBehind(ctx, source) }
}

// empty lets all in, one after the other.
func (q *queue) empty(n int) []string {
	for range n {
		q.leave()
		synctest.Wait()
	}
	q.leave()
	return q.came
}

func TestWhoIsWaitedForGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t}
		q.wait("batch 1", q.from("a"))
		q.wait("operation 1", q.enter)
		gone := q.wait("operation that is given up", q.enter)
		q.wait("batch 2", q.from("a"))
		q.wait("operation 2", q.enter)
		gone()
		synctest.Wait()
		if got, want := q.empty(4), []string{"operation 1", "operation 2", "batch 1", "batch 2"}; !slices.Equal(got, want) {
			t.Errorf("they came in as %q, want %q", got, want)
		}
		if q.free != 1 {
			t.Errorf("%d places are free after all left, want 1", q.free)
		}
	})
}

// A source with many batches delays none but its own.
func TestSourcesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t}
		for i := range 4 {
			q.wait(fmt.Sprint("flood ", i), q.from("flood"))
		}
		gone := q.wait("given up", q.from("gone"))
		q.wait("shop 0", q.from("shop"))
		q.wait("bank 0", q.from("bank"))
		q.wait("shop 1", q.from("shop"))
		gone()
		synctest.Wait()
		want := []string{"flood 0", "shop 0", "bank 0", "flood 1", "shop 1", "flood 2", "flood 3"}
		if got := q.empty(7); !slices.Equal(got, want) {
			t.Errorf("they came in as %q, want %q", got, want)
		}
		if len(q.behind.sources) != 0 || len(q.behind.waiting) != 0 {
			t.Errorf("after all left, %v still wait", q.behind)
		}
	})
}

func TestABatchIsNotOvertakenForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t}
		q.wait("batch", q.from("a"))
		for i := range mostOvertaking + 2 {
			q.wait(fmt.Sprint("operation ", i), q.enter)
		}
		if got := q.empty(mostOvertaking + 3); got[mostOvertaking] != "batch" {
			t.Errorf("they came in as %q; the batch was due after %d", got, mostOvertaking)
		}
	})
}

// Who gives up at the moment when it is let in leaves its place to the next.
func TestAPlaceIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t}
		admitted := q.queue(func(admitted chan struct{}) { q.first = append(q.first, admitted) })
		q.leave()
		q.giveUp(admitted, func(chan struct{}) bool { return false })
		if q.free != 1 {
			t.Errorf("%d places are free, want 1", q.free)
		}
	})
}

// TestBatchesWriteBehind holds SQLite's one writer while a batch waits for it, and
// then the ends of operations.
func TestBatchesWriteBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t)
		var came []string // noted by whoever is writing
		upsert, insert := w.dialect.upsert, w.dialect.insert
		w.dialect.upsert = func(ctx context.Context, tx *tx, account int64, rows []row) error {
			came = append(came, "a batch")
			return upsert(ctx, tx, account, rows)
		}
		w.dialect.insert = func(ctx context.Context, tx *tx, table string, columns []column, rows [][]any, or string) error {
			came = append(came, "operations")
			return insert(ctx, tx, table, columns, rows, or)
		}
		release := make(chan struct{})
		go func() {
			w.must(w.write(context.Background(), func(context.Context, *tx) error { <-release; return nil }))
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
		if want := []string{"operations", "a batch"}; !slices.Equal(came, want) {
			t.Errorf("written as %q, want %q", came, want)
		}
		w.must(w.Close())
	})
}
