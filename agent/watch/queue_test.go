package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/agent/watch/queue"
)

// statusSink records the messages about the account.
type statusSink struct {
	mu       sync.Mutex
	messages []string
}

func (s *statusSink) Put(_ context.Context, e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, e.Message)
	return nil
}

func (s *statusSink) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) == 0 {
		return "none"
	}
	return s.messages[len(s.messages)-1]
}

func newQueueWatcher(l *Limiter) (*Watcher, *statusSink) {
	sink := &statusSink{}
	return NewWatcher(nil, Selection{}, sink, Config{Limiter: l, PagePermitTimeout: time.Second}), sink
}

// TestBudgetIsKept runs many feeds of many accounts, fast ones, ones that hang and ones that are
// stopped, and checks after each step that no limit is exceeded, and that nothing is left at the end.
func TestBudgetIsKept(t *testing.T) {
	for _, budget := range []queue.Budget{{Total: 1, PerAccount: 1}, {Total: 5, PerAccount: 2}, {Fast: 8}} {
		t.Run(fmt.Sprintf("%+v", budget), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := NewLimiter(budget)
				check := newBudgetCheck(t, limiter.queue.Budget())
				var group sync.WaitGroup
				for account := range 30 {
					w, _ := newQueueWatcher(limiter)
					for feed := range 12 {
						group.Go(func() { check.runFeed(w, account, feed) })
					}
				}
				group.Wait()
				check.done(limiter)
			})
		})
	}
}

// budgetCheck counts the snapshots that run.
type budgetCheck struct {
	t      *testing.T
	budget queue.Budget

	mu         sync.Mutex
	total      int
	most       int
	perAccount map[int]int
}

func newBudgetCheck(t *testing.T, b queue.Budget) *budgetCheck {
	return &budgetCheck{t: t, budget: b, perAccount: map[int]int{}}
}

func (c *budgetCheck) add(account, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += n
	c.perAccount[account] += n
	c.most = max(c.most, c.total)
	if c.total > c.budget.Total || c.perAccount[account] > c.budget.PerAccount {
		c.t.Errorf("got %d snapshots, %d of account %d, want at most %+v", c.total, c.perAccount[account], account, c.budget)
	}
}

// runFeed reads three snapshots. Every third account hangs, every fifth feed is stopped while it waits.
func (c *budgetCheck) runFeed(w *Watcher, account, feed int) {
	for range 3 {
		ctx, cancel := context.WithCancel(c.t.Context())
		if feed%5 == 4 {
			time.AfterFunc(rand.N(time.Minute), cancel)
		}
		permit, err := w.acquireSnapshotPermit(ctx, func() {})
		if err == nil {
			c.add(account, 1)
			permit.StartWait()
			time.Sleep(time.Duration(1+4*(account%3/2)) * rand.N(time.Second))
			err = permit.EndWait(ctx, 1)
			c.add(account, -1)
		}
		permit.release(err == nil)
		cancel()
	}
}

func (c *budgetCheck) done(l *Limiter) {
	expectEmptyQueue(c.t, l)
	if c.most < c.budget.Fast {
		c.t.Errorf("got at most %d snapshots, want the budget to be used: %+v", c.most, c.budget)
	}
}

// expectEmptyQueue checks that no feed waits, and none reads, also by the counts.
func expectEmptyQueue(t *testing.T, l *Limiter) {
	t.Helper()
	if got := l.queue.Load(); got != (queue.Load{}) || len(l.slowPermits) != 0 {
		t.Errorf("something is left: %+v, %d slow permits", got, len(l.slowPermits))
	}
}

// TestAccountsTakeTurns checks the order of the first snapshots: an ordinary account completes all
// of its own in its turn, and a large one does not delay those that came later by more than a turn.
func TestAccountsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewLimiter(queue.Budget{Fast: 1})
		feeds := []int{40, 12, 12}
		var mu sync.Mutex
		var order []string
		var group sync.WaitGroup
		for account, n := range feeds {
			w, _ := newQueueWatcher(limiter)
			for range n {
				group.Go(func() {
					permit := acquireTestPermit(t, w)
					time.Sleep(time.Millisecond)
					mu.Lock()
					order = append(order, fmt.Sprint(account))
					mu.Unlock()
					permit.release(true)
				})
			}
			synctest.Wait()
		}
		group.Wait()
		want := strings.Repeat("0", 16) + strings.Repeat("1", 12) + strings.Repeat("2", 12) + strings.Repeat("0", 24)
		if got := strings.Join(order, ""); got != want {
			t.Errorf("got the order\n%s, want\n%s", got, want)
		}
	})
}

// TestPositionIsReported checks what an account says while it waits, and that it says nothing more
// when it reads, or when the feed that waited is stopped.
func TestPositionIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewLimiter(queue.Budget{Fast: 1})
		first, firstSink := newQueueWatcher(limiter)
		held := acquireTestPermit(t, first)
		ctx, stop := context.WithCancelCause(t.Context())
		var group sync.WaitGroup
		var sinks []*statusSink
		for i := range 3 {
			w, sink := newQueueWatcher(limiter)
			sinks = append(sinks, sink)
			group.Go(func() {
				waitCtx := t.Context()
				if i == 0 {
					waitCtx = ctx
				}
				permit, err := w.acquireSnapshotPermit(waitCtx, func() {})
				if err == nil {
					time.Sleep(20 * time.Second)
				}
				permit.release(true)
			})
			synctest.Wait()
		}
		expect := func(step string, want ...string) {
			t.Helper()
			synctest.Wait()
			for i, text := range want {
				if got := sinks[i].last(); !strings.HasPrefix(got, text) || text == "" && got != "" {
					t.Errorf("%s: account %d says %q, want %q", step, i, got, text)
				}
			}
		}
		time.Sleep(firstPositionAfter - time.Nanosecond)
		expect("a short wait", "none", "none", "none")
		time.Sleep(time.Nanosecond)
		expect("a long wait", "waits to list its objects: 0 of the 3 accounts", "waits to list its objects: 1 of the 3 accounts", "waits to list its objects: 2 of the 3 accounts")
		stop(errors.New("the kind is gone"))
		expect("the first is stopped", "", "waits to list its objects: 1 of the 3 accounts", "waits to list its objects: 2 of the 3 accounts")
		time.Sleep(positionInterval)
		expect("the others move up", "", "waits to list its objects: 0 of the 2 accounts", "waits to list its objects: 1 of the 2 accounts")
		held.release(true)
		expect("the next reads", "", "", "waits to list its objects: 1 of the 2 accounts")
		group.Wait()
		expect("all have read", "", "", "")
		if got := firstSink.last(); got != "none" {
			t.Errorf("the account that did not wait says %q", got)
		}
	})
}

// TestAccountsStartInGroups checks when accounts start, that accounts with marks do not wait, and
// that an account that leaves while it waits takes no place.
func TestAccountsStartInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewLimiter(queue.Budget{GroupSize: 2, GroupDelay: 5 * time.Second})
		began := time.Now()
		var mu sync.Mutex
		started := map[time.Duration]int{}
		var group sync.WaitGroup
		join := func(ctx context.Context, hasMarks bool) {
			w, sink := newQueueWatcher(limiter)
			group.Go(func() {
				if err := w.awaitGroup(ctx, hasMarks); err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				started[time.Since(began)]++
				if got := sink.last(); got != "none" && got != "" {
					t.Errorf("the account has started and says %q", got)
				}
			})
		}
		ctx, leave := context.WithCancel(t.Context())
		for range 3 {
			join(ctx, false)
		}
		synctest.Wait()
		leave()
		for range 4 {
			join(t.Context(), false)
		}
		join(t.Context(), true)
		group.Wait()
		if want := map[time.Duration]int{0: 3, 5 * time.Second: 2, 10 * time.Second: 2}; fmt.Sprint(started) != fmt.Sprint(want) {
			t.Errorf("got starts %v, want %v", started, want)
		}
	})
}
