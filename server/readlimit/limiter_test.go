package readlimit

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

	"github.com/vedette-io/vedette"
)

func newTestPool() *pool {
	p := newPool(Config{Bytes: 100, Wait: 10 * time.Second, Queue: 3}.withDefaults())
	p.share = 60
	return p
}

// acquire acquires bytes that must be free.
func acquire(t *testing.T, p *pool, name string, bytes int64) func() {
	t.Helper()
	release := p.tryAcquire(name, bytes)
	if release == nil {
		t.Fatalf("%s: %d bytes are not free", name, bytes)
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
		t.Error("more bytes were granted than exist")
	}
	first()
	first() // a second call must release nothing
	small()
	other()
	acquire(t, p, "c", 1000)() // counts as one share
	if p.used != 0 || len(p.callers) != 0 || len(p.queue) != 0 {
		t.Errorf("got %d bytes held by %d callers, %d waiting", p.used, len(p.callers), len(p.queue))
	}
}

func TestAcquireTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool()
		release := acquire(t, p, "a", 60)
		start := time.Now()
		_, err := p.acquire(t.Context(), "a", 1)
		if vedette.KindOf(err) != vedette.Unavailable || time.Since(start) != 10*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.acquire(ctx, "a", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("canceled request: got %v", err)
		}
		for range 3 {
			go func() { _, _ = p.acquire(t.Context(), "a", 1) }()
		}
		synctest.Wait()
		if _, err := p.acquire(t.Context(), "a", 1); err == nil || !strings.Contains(err.Error(), "3 requests of this caller") {
			t.Errorf("full queue: got %v", err)
		}
		acquire(t, p, "b", 1)()
		release()
		time.Sleep(time.Minute)
	})
}

// TestCallersTakeTurns queues many requests of one caller before another caller comes. The other
// caller must be served second, not last.
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

// TestLargeIsNotStarved keeps sending small requests. A large one must get its turn.
func TestLargeIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool()
		first, second := acquire(t, p, "a", 50), acquire(t, p, "b", 50)
		var large func()
		go func() { large, _ = p.acquire(t.Context(), "c", 60) }()
		synctest.Wait()
		first()
		if p.tryAcquire("d", 10) != nil {
			t.Error("a small request was granted before the large one")
		}
		second()
		synctest.Wait()
		if large == nil {
			t.Fatal("the large request waits, but its bytes are free")
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
			t.Errorf("got %q, error %v, %d bytes held, want no bytes held while waiting", v, err, l.small.used)
		}
		release()
	})
}

// TestSmallReadsAreReserved exhausts the bytes for large requests. Small requests must be granted
// at once.
func TestSmallReadsAreReserved(t *testing.T) {
	l := New(Config{})
	for i := range 10 {
		l.TryAcquire(fmt.Sprint("greedy", i), 16<<20)
	}
	if l.TryAcquire("greedy", 16<<20) != nil {
		t.Error("a large request was granted from the reserve")
	}
	for i := range 16 {
		if l.TryAcquire(fmt.Sprint("modest", i), 1<<20) == nil {
			t.Errorf("small request %d was not granted", i)
		}
	}
}

// TestManyReaders checks that the limiter never grants more bytes than exist, and that all are
// released at the end, even by canceled requests.
func TestManyReaders(t *testing.T) {
	p := newPool(Config{Bytes: 100, Wait: time.Millisecond, Queue: 20}.withDefaults())
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(2000))*time.Microsecond)
				release, err := p.acquire(ctx, fmt.Sprint(i%7), rand.Int64N(120))
				if err == nil {
					p.mu.Lock()
					if p.used > 100 || p.callers[fmt.Sprint(i%7)].held > 50 {
						t.Errorf("got %d bytes held", p.used)
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
		t.Errorf("got %d bytes held by %d callers, %d waiting, want 0", p.used, len(p.callers), len(p.queue))
	}
}

// TestOnWait checks that waits are measured, and requests that need not wait are not.
func TestOnWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var waits []string
		l := NewUniform(Config{Bytes: 100, Queue: 1, OnWait: func(waited time.Duration, granted bool) {
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, fmt.Sprint(waited, " ", granted))
		}})
		ctx := t.Context()
		release, err := l.Acquire(ctx, "a", 50)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Second, release)
		second, err := l.Acquire(ctx, "a", 50) // gets the bytes of the first
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = l.Acquire(ctx, "a", 50) }() // waits in vain
		synctest.Wait()
		_, err = l.Acquire(ctx, "a", 50) // the caller's queue is full
		if err == nil {
			t.Error("a full queue accepted another request")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		second()
		mu.Lock()
		defer mu.Unlock()
		if want := "[3s true 0s false 10s false]"; fmt.Sprint(waits) != want {
			t.Errorf("got %v, want %s", waits, want)
		}
	})
}
