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

func newTestPool() *pool {
	p := newPool(Config{Bytes: 100, Wait: 10 * time.Second, Queue: 3})
	p.share = 60
	return p
}

// acquire takes bytes that must be there at once.
func acquire(t *testing.T, p *pool, name string, bytes int64) func() {
	t.Helper()
	release := p.tryAcquire(name, bytes)
	if release == nil {
		t.Fatalf("%s could not have %d bytes", name, bytes)
	}
	return release
}

func TestCallerShare(t *testing.T) {
	p := newTestPool()
	first := acquire(t, p, "a", 50)
	if p.tryAcquire("a", 20) != nil {
		t.Error("a caller got more than its share")
	}
	small := acquire(t, p, "a", 10)
	other := acquire(t, p, "b", 40)
	if p.tryAcquire("c", 1) != nil {
		t.Error("more was given than there is")
	}
	first()
	first() // a second call gives nothing back
	small()
	other()
	acquire(t, p, "c", 1000)() // it counts as a share
	if p.used != 0 || len(p.callers) != 0 || len(p.queue) != 0 {
		t.Errorf("%d bytes are held by %d callers, %d wait", p.used, len(p.callers), len(p.queue))
	}
}

func TestAcquireTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool()
		release := acquire(t, p, "a", 60)
		start := time.Now()
		_, err := p.acquire(t.Context(), "a", 1)
		if vedette.KindOf(err) != vedette.Unavailable || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.acquire(ctx, "a", 1); err != context.DeadlineExceeded {
			t.Errorf("a reader that leaves: %v", err)
		}
		for range 3 {
			go func() { _, _ = p.acquire(t.Context(), "a", 1) }()
		}
		synctest.Wait()
		if _, err := p.acquire(t.Context(), "a", 1); err == nil || !strings.Contains(err.Error(), "3 requests of yours") {
			t.Errorf("a queue that is full: %v", err)
		}
		acquire(t, p, "b", 1)()
		release()
		time.Sleep(time.Minute)
	})
}

// TestCallersTakeTurns lets one caller queue up many readers before another comes:
// that is served second, not last.
func TestCallersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool()
		p.share, p.cfg.Queue, p.cfg.Wait = 100, 100, time.Hour
		releaseAll := acquire(t, p, "x", 100)
		var mu sync.Mutex
		var order []string
		queue := func(name string) {
			go func() {
				release, err := p.acquire(t.Context(), name, 100)
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
		releaseAll()
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
		p := newTestPool()
		first, second := acquire(t, p, "a", 50), acquire(t, p, "b", 50)
		var large func()
		go func() { large, _ = p.acquire(t.Context(), "c", 60) }()
		synctest.Wait()
		first()
		if p.tryAcquire("d", 10) != nil {
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

func TestReadIsRepeatedAfterWait(t *testing.T) {
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

// TestSmallReadsAreReserved lets readers of much take all that they may: who asks for
// little is served at once.
func TestSmallReadsAreReserved(t *testing.T) {
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
	p := newPool(Config{Bytes: 100, Wait: time.Millisecond, Queue: 20})
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(2000))*time.Microsecond)
				release, err := p.acquire(ctx, fmt.Sprint(i%7), rand.Int64N(120))
				if err == nil {
					p.mu.Lock()
					if p.used > 100 || p.callers[fmt.Sprint(i%7)].held > 50 {
						t.Errorf("%d bytes are held", p.used)
					}
					p.mu.Unlock()
					release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if p.used != 0 || len(p.callers) != 0 || len(p.queue) != 0 {
		t.Errorf("%d bytes are held by %d callers, %d wait", p.used, len(p.callers), len(p.queue))
	}
}
