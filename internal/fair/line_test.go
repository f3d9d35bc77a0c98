package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lineTest is a Line in a synctest bubble, and the names of those that it granted something, in order.
type lineTest struct {
	*testing.T
	*Line
	mu     sync.Mutex
	order  []string
	grants []*Grant
}

func runLineTest(t *testing.T, cfg Config, test func(*lineTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(&lineTest{T: t, Line: New(cfg)}) })
}

// ask requests units in the background. The name is that of the request.
func (l *lineTest) ask(name string, class int, key string, n int64) context.CancelFunc {
	ctx, cancel := context.WithCancel(l.Context())
	go func() {
		g, err := l.AcquireClass(ctx, class, key, n)
		if err != nil {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.order = append(l.order, name)
		l.grants = append(l.grants, g)
	}()
	synctest.Wait()
	return cancel
}

// releaseAll releases grants, one after the other, until nothing is granted anymore.
func (l *lineTest) releaseAll() []string {
	synctest.Wait()
	for i := 0; i < len(l.grants); i++ {
		l.grants[i].Release()
		synctest.Wait()
	}
	l.checkEmpty()
	return l.order
}

func (l *lineTest) checkEmpty() {
	l.Helper()
	if got := l.Stats(); got != (Stats{}) {
		l.Errorf("got %+v at the end, want an empty line", got)
	}
	for i, class := range l.q.classes {
		if class.ready.Len() != 0 {
			l.Errorf("class %d has %d keys at the end, want none", i, class.ready.Len())
		}
	}
}

func (l *lineTest) mustAcquire(key string, n int64) *Grant {
	l.Helper()
	g := l.TryAcquire(key, n)
	if g == nil {
		l.Fatalf("%d units are not free for %s", n, key)
	}
	return g
}

// A key cannot hold more than its share, and other keys have the rest.
func TestKeyIsLimitedToItsShare(t *testing.T) {
	runLineTest(t, Config{Capacity: 100, Share: 60}, func(l *lineTest) {
		first := l.mustAcquire("a", 50)
		if l.TryAcquire("a", 20) != nil {
			t.Error("a key got more than its share")
		}
		second := l.mustAcquire("a", 10)
		other := l.mustAcquire("b", 40)
		if l.TryAcquire("c", 1) != nil {
			t.Error("more units were granted than exist")
		}
		first.Release()
		first.Release() // releases nothing
		if got := l.Stats().Used; got != 50 {
			t.Errorf("got %d used, want 50", got)
		}
		second.Release()
		other.Release()
		l.mustAcquire("d", 1000).Release() // counts as one share
		l.checkEmpty()
	})
}

func TestKeysTakeTurns(t *testing.T) {
	runLineTest(t, Config{Capacity: 1, Share: 1}, func(l *lineTest) {
		for i := range 4 {
			l.ask(fmt.Sprint("flood ", i), 0, "flood", 1)
		}
		cancel := l.ask("canceled", 0, "gone", 1)
		l.ask("shop 0", 0, "shop", 1)
		l.ask("bank 0", 0, "bank", 1)
		l.ask("shop 1", 0, "shop", 1)
		cancel()
		synctest.Wait()
		want := []string{"flood 0", "shop 0", "bank 0", "flood 1", "shop 1", "flood 2", "flood 3"}
		if got := l.releaseAll(); !slices.Equal(got, want) {
			t.Errorf("got order %q, want %q", got, want)
		}
	})
}

// A key of weight 2 has two turns in a row, and twice the share.
func TestWeightGivesTurnsAndShare(t *testing.T) {
	weight := func(key string) int { return map[string]int{"heavy": 2}[key] }
	runLineTest(t, Config{Capacity: 1, Share: 1, Weight: weight}, func(l *lineTest) {
		l.ask("x", 0, "x", 1)
		for i := range 4 {
			l.ask(fmt.Sprint("heavy ", i), 0, "heavy", 1)
			l.ask(fmt.Sprint("light ", i), 0, "light", 1)
		}
		want := []string{"x", "heavy 0", "heavy 1", "light 0", "heavy 2", "heavy 3", "light 1", "light 2", "light 3"}
		if got := l.releaseAll(); !slices.Equal(got, want) {
			t.Errorf("got order %q, want %q", got, want)
		}
	})
	runLineTest(t, Config{Capacity: 10, Share: 2, Weight: weight}, func(l *lineTest) {
		l.mustAcquire("heavy", 4)
		if l.TryAcquire("heavy", 1) != nil || l.mustAcquire("light", 2) == nil || l.TryAcquire("light", 1) != nil {
			t.Error("shares do not follow weights")
		}
	})
}

func TestClassesTakeTurnsByWeight(t *testing.T) {
	runLineTest(t, Config{Capacity: 1, Share: 1, Classes: []int{3, 1}}, func(l *lineTest) {
		l.ask("x", 1, "x", 1)
		for i := range 2 {
			l.ask(fmt.Sprint("low ", i), 1, "feeds", 1)
		}
		for i := range 5 {
			l.ask(fmt.Sprint("high ", i), 0, "operations", 1)
		}
		want := []string{"x", "high 0", "high 1", "high 2", "low 0", "high 3", "high 4", "low 1"}
		if got := l.releaseAll(); !slices.Equal(got, want) {
			t.Errorf("got order %q, want %q", got, want)
		}
	})
}

// A large request is not starved by small ones that come after it.
func TestLargeIsNotStarved(t *testing.T) {
	runLineTest(t, Config{Capacity: 100, Share: 60}, func(l *lineTest) {
		first, second := l.mustAcquire("a", 50), l.mustAcquire("b", 50)
		cancel := l.ask("large", 0, "c", 60)
		first.Release()
		if l.TryAcquire("d", 10) != nil {
			t.Error("a small request was granted before the large one")
		}
		cancel() // what it held up is free at once
		synctest.Wait()
		l.mustAcquire("d", 10).Release()
		second.Release()
		l.checkEmpty()
	})
}

// A key that has used up its share waits for itself, not in front of others.
func TestExhaustedShareDoesNotBlockOthers(t *testing.T) {
	runLineTest(t, Config{Capacity: 100, Share: 50}, func(l *lineTest) {
		own := l.mustAcquire("a", 50)
		l.ask("a", 0, "a", 10)
		l.mustAcquire("b", 50).Release()
		own.Release()
		synctest.Wait()
		if got := l.releaseAll(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("got %q, want a", got)
		}
	})
}

func TestRefusalsSayWhy(t *testing.T) {
	var mu sync.Mutex
	var waits []string
	onWait := func(waited time.Duration, granted bool) {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, fmt.Sprint(waited, " ", granted))
	}
	runLineTest(t, Config{Capacity: 10, Share: 10, Queue: 1, Waiting: 2, Wait: 10 * time.Second, OnWait: onWait}, func(l *lineTest) {
		held := l.mustAcquire("a", 10)
		if _, err := l.Acquire(l.Context(), "a", 1); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v, want ErrTimeout", err)
		}
		cause := errors.New("the caller left")
		ctx, cancel := context.WithCancelCause(l.Context())
		cancel(cause)
		if _, err := l.Acquire(ctx, "a", 1); !errors.Is(err, cause) {
			t.Errorf("got %v, want the cause", err)
		}
		stop := []context.CancelFunc{l.ask("a", 0, "a", 1)}
		if _, err := l.Acquire(l.Context(), "a", 1); !errors.Is(err, ErrQueueFull) {
			t.Errorf("full queue of a key: got %v, want ErrQueueFull", err)
		}
		stop = append(stop, l.ask("b", 0, "b", 1))
		if _, err := l.Acquire(l.Context(), "c", 1); !errors.Is(err, ErrQueueFull) {
			t.Errorf("full line: got %v, want ErrQueueFull", err)
		}
		for _, cancel := range stop {
			cancel()
		}
		synctest.Wait()
		held.Release()
		l.checkEmpty()
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"10s false", "0s false", "0s false", "0s false", "0s false", "0s false"}; !slices.Equal(waits, want) {
			t.Errorf("got waits %q, want %q", waits, want)
		}
	})
}

func TestGrowthStaysWithinTheShare(t *testing.T) {
	runLineTest(t, Config{Capacity: 100, Share: 60, Wait: time.Second}, func(l *lineTest) {
		a, b := l.mustAcquire("a", 40), l.mustAcquire("b", 50)
		if !a.TryGrow(10) || a.TryGrow(1) || a.Units() != 50 {
			t.Errorf("got %d units of a, want 50", a.Units())
		}
		if err := a.Grow(l.Context(), 11); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
		if err := a.Grow(l.Context(), 10); !errors.Is(err, ErrTimeout) || a.Units() != 50 {
			t.Errorf("got %v and %d units, want ErrTimeout and 50", err, a.Units())
		}
		l.ask("behind", 0, "a", 1)
		time.AfterFunc(time.Millisecond, func() { b.Shrink(10) })
		if err := a.Grow(l.Context(), 10); err != nil || a.Units() != 60 || b.Units() != 40 || len(l.order) != 0 {
			t.Errorf("got %v, %d and %d units, granted %q, want 60 and 40 and none", err, a.Units(), b.Units(), l.order)
		}
		a.Release()
		b.Shrink(1000)
		b.Release()
		synctest.Wait()
		l.releaseAll()
	})
}

// A grant that is released while it grows keeps nothing.
func TestReleaseWhileGrowing(t *testing.T) {
	runLineTest(t, Config{Capacity: 10, Share: 10}, func(l *lineTest) {
		a := l.mustAcquire("a", 5)
		b := l.mustAcquire("b", 5)
		done := make(chan error)
		go func() { done <- a.Grow(l.Context(), 1) }()
		synctest.Wait()
		a.Release()
		if err := <-done; !errors.Is(err, errReleased) {
			t.Errorf("got %v, want errReleased", err)
		}
		b.Release()
		l.checkEmpty()
	})
}

func TestJoinedGrantsReleaseTogether(t *testing.T) {
	runLineTest(t, Config{Capacity: 10, Share: 10}, func(l *lineTest) {
		var g Grant
		for range 3 {
			more := l.mustAcquire("a", 2)
			if !g.Join(more) {
				t.Error("a new grant was not joined")
			}
			more.Release() // releases nothing
		}
		g.Shrink(1)
		if g.Units() != 5 || l.Stats().Used != 5 {
			t.Errorf("got %d units of %d, want 5 of 5", g.Units(), l.Stats().Used)
		}
		g.Shrink(5) // the key is forgotten
		g.Join(l.mustAcquire("a", 3))
		if g.Units() != 3 {
			t.Errorf("got %d units, want 3", g.Units())
		}
		g.Release()
		if g.Join(l.mustAcquire("a", 1)) {
			t.Error("a released grant was joined")
		}
		g.Join(nil)
		l.checkEmpty()
	})
}

func TestNilLineGrantsEverything(t *testing.T) {
	var l *Line
	g, err := l.Acquire(t.Context(), "a", 1)
	if err != nil || !g.TryGrow(1) || g.Grow(t.Context(), 1) != nil || l.TryAcquire("a", 1) == nil || l.Stats() != (Stats{}) {
		t.Error("a nil Line must grant everything")
	}
	g.Shrink(1)
	g.Release()
}

// TestNoUnitIsGrantedTwice checks after each step that no unit is granted twice, and at the end that none is lost.
func TestNoUnitIsGrantedTwice(t *testing.T) {
	l := New(Config{Capacity: 100, Wait: time.Millisecond, Queue: 20, Classes: []int{3, 1}})
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(2000))*time.Microsecond)
				g, err := l.AcquireClass(ctx, i%2, fmt.Sprint(i%7), rand.Int64N(60))
				if err == nil {
					g.TryGrow(rand.Int64N(10))
					_ = g.Grow(ctx, rand.Int64N(10))
					g.Shrink(rand.Int64N(60))
					g.TryGrow(rand.Int64N(10))
					checkHeld(t, l)
					g.Release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if got := l.Stats(); got != (Stats{}) {
		t.Errorf("got %+v at the end, want an empty line", got)
	}
}

func checkHeld(t *testing.T, l *Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum int64
	for id, k := range l.q.keys {
		if sum += k.held; k.held > l.q.share(k.weight) {
			t.Errorf("%v holds %d, more than its share", id, k.held)
		}
	}
	if sum != l.q.used || sum > 100 {
		t.Errorf("keys hold %d, %d are used, of 100", sum, l.q.used)
	}
}
