package readlimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

func testPool() *pool {
	l := newPool(Config{Bytes: 100, Wait: 10 * time.Second, Queue: 3})
	l.share = 60
	return l
}

// acquire takes bytes that must be there at once.
func acquire(t *testing.T, l *pool, name string, bytes int64) func() {
	t.Helper()
	release := l.tryAcquire(name, bytes)
	if release == nil {
		t.Fatalf("%s could not have %d bytes", name, bytes)
	}
	return release
}

func TestShare(t *testing.T) {
	l := testPool()
	first := acquire(t, l, "a", 50)
	if l.tryAcquire("a", 20) != nil {
		t.Error("a caller got more than its share")
	}
	small := acquire(t, l, "a", 10)
	other := acquire(t, l, "b", 40)
	if l.tryAcquire("c", 1) != nil {
		t.Error("more was given than there is")
	}
	first()
	first() // a second call gives nothing back
	small()
	other()
	acquire(t, l, "c", 1000)() // it counts as a share
	if l.used != 0 || len(l.callers) != 0 || len(l.turns) != 0 {
		t.Errorf("%d bytes are held by %d callers, %d wait", l.used, len(l.callers), len(l.turns))
	}
}

func TestTurnThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testPool()
		release := acquire(t, l, "a", 60)
		began := time.Now()
		_, err := l.acquire(t.Context(), "a", 1)
		if vedette.KindOf(err) != vedette.Unavailable || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.acquire(ctx, "a", 1); err != context.DeadlineExceeded {
			t.Errorf("a reader that leaves: %v", err)
		}
		for range 3 {
			go func() { _, _ = l.acquire(t.Context(), "a", 1) }()
		}
		synctest.Wait()
		if _, err := l.acquire(t.Context(), "a", 1); err == nil || !strings.Contains(err.Error(), "3 requests of yours") {
			t.Errorf("a queue that is full: %v", err)
		}
		acquire(t, l, "b", 1)()
		release()
		time.Sleep(time.Minute)
	})
}

// TestCallersTakeTurns lets one caller queue up many readers before another comes:
// that is served second, not last.
func TestCallersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testPool()
		l.share, l.cfg.Queue, l.cfg.Wait = 100, 100, time.Hour
		hold := acquire(t, l, "x", 100)
		var mu sync.Mutex
		var order []string
		queue := func(name string) {
			go func() {
				release, err := l.acquire(t.Context(), name, 100)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				time.Sleep(time.Second)
				release()
			}()
			synctest.Wait()
		}
		for range 5 {
			queue("greedy")
		}
		queue("b")
		queue("c")
		hold()
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if got := fmt.Sprint(order); got != "[greedy b c greedy greedy greedy greedy]" {
			t.Error(got)
		}
	})
}

// TestLargeIsNotStarved lets small readers come all the time: a large one gets its
// turn nonetheless.
func TestLargeIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testPool()
		first, second := acquire(t, l, "a", 50), acquire(t, l, "b", 50)
		var large func()
		go func() { large, _ = l.acquire(t.Context(), "c", 60) }()
		synctest.Wait()
		first()
		if l.tryAcquire("d", 10) != nil {
			t.Error("a small reader came between")
		}
		second()
		synctest.Wait()
		if large == nil {
			t.Fatal("the large reader waits though there is room")
		}
		large()
	})
}

func TestReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Bytes: 400 << 10})
		reads := 0
		read := func() (string, int64, error) { reads++; return fmt.Sprint("read ", reads), 40 << 10, nil }
		v, release, err := Read(t.Context(), l, "a", read)
		if v != "read 1" || err != nil || l.small.used != 40<<10 {
			t.Errorf("%q, %v, %d held", v, err, l.small.used)
		}
		time.AfterFunc(time.Second, release)
		v, release, err = Read(t.Context(), l, "a", read)
		if v != "read 3" || err != nil || l.small.used != 40<<10 {
			t.Errorf("%q, %v, %d held: what waits must hold nothing", v, err, l.small.used)
		}
		release()
	})
}

// TestLittleIsThereForAll lets readers of much take all that they may: who asks for
// little is served at once.
func TestLittleIsThereForAll(t *testing.T) {
	l := New(Config{})
	for i := range 10 {
		l.TryAcquire(fmt.Sprint("greedy", i), 16<<20)
	}
	if l.TryAcquire("greedy", 16<<20) != nil {
		t.Error("there is more than there should be")
	}
	for i := range 16 {
		if l.TryAcquire(fmt.Sprint("modest", i), 1<<20) == nil {
			t.Errorf("reader %d of little found nothing", i)
		}
	}
}

// TestManyReaders holds that never more is given than there is, and that in the
// end all is given back, whatever becomes of those who wait.
func TestManyReaders(t *testing.T) {
	l := newPool(Config{Bytes: 100, Wait: time.Millisecond, Queue: 20})
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(2000))*time.Microsecond)
				release, err := l.acquire(ctx, fmt.Sprint(i%7), rand.Int64N(120))
				if err == nil {
					l.mu.Lock()
					if l.used > 100 || l.callers[fmt.Sprint(i%7)].held > 50 {
						t.Errorf("%d bytes are held", l.used)
					}
					l.mu.Unlock()
					release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if l.used != 0 || len(l.callers) != 0 || len(l.turns) != 0 {
		t.Errorf("%d bytes are held by %d callers, %d wait", l.used, len(l.callers), len(l.turns))
	}
}
