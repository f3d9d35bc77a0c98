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
	"github.com/vedette-io/vedette/internal/fair"
)

func newTestPool() *pool {
	return newPoolWithShare(Config{Bytes: 100, Wait: 10 * time.Second, Queue: 3, UserShare: 60}.withDefaults(), 60)
}

func caller(source string) Caller { return Caller{Source: source} }

// acquire acquires bytes that must be free.
func acquire(t *testing.T, p *pool, name string, bytes int64) func() {
	t.Helper()
	g := p.tryAcquire(caller(name), bytes)
	if g == nil {
		t.Fatalf("%s: %d bytes are not free", name, bytes)
	}
	return g.Release
}

func wantEmpty(t *testing.T, p *pool) {
	t.Helper()
	if stats := p.all.Stats(); stats != (fair.Stats{}) || len(p.sources) != 0 {
		t.Errorf("got %+v of %d sources at the end, want nothing", stats, len(p.sources))
	}
}

func TestCallerIsLimitedToItsShare(t *testing.T) {
	p := newTestPool()
	first := acquire(t, p, "a", 50)
	if p.tryAcquire(caller("a"), 20) != nil {
		t.Error("a caller got more than its share")
	}
	small := acquire(t, p, "a", 10)
	other := acquire(t, p, "b", 40)
	if p.tryAcquire(caller("c"), 1) != nil {
		t.Error("more bytes were granted than exist")
	}
	first()
	first() // a second call must release nothing
	small()
	other()
	acquire(t, p, "c", 1000)() // counts as one share
	wantEmpty(t, p)
}

func TestAcquireTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool()
		release := acquire(t, p, "a", 60)
		start := time.Now()
		_, err := p.acquire(t.Context(), caller("a"), 1)
		if vedette.KindOf(err) != vedette.Unavailable || time.Since(start) != 10*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.acquire(ctx, caller("a"), 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("canceled request: got %v", err)
		}
		for range 3 {
			go func() { _, _ = p.acquire(t.Context(), caller("a"), 1) }()
		}
		synctest.Wait()
		if _, err := p.acquire(t.Context(), caller("a"), 1); err == nil || !strings.Contains(err.Error(), "3 requests of this caller") {
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
		p := newPoolWithShare(Config{Bytes: 100, Wait: time.Hour, UserShare: 100}.withDefaults(), 100)
		releaseAll := acquire(t, p, "x", 100)
		var mu sync.Mutex
		var order []string
		queue := func(name string) {
			go func() {
				g, err := p.acquire(t.Context(), caller(name), 100)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				time.Sleep(time.Second)
				g.Release()
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
		var large *Grant
		go func() { large, _ = p.acquire(t.Context(), caller("c"), 60) }()
		synctest.Wait()
		first()
		if p.tryAcquire(caller("d"), 10) != nil {
			t.Error("a small request was granted before the large one")
		}
		second()
		synctest.Wait()
		if large == nil {
			t.Fatal("the large request waits, but its bytes are free")
		}
		large.Release()
	})
}

func TestReadIsRepeatedAfterWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Bytes: 480 << 10})
		reads := 0
		read := func() (string, int64, error) { reads++; return fmt.Sprint("read ", reads), 40 << 10, nil }
		v, release, err := Read(t.Context(), l, caller("a"), read)
		if v != "read 1" || err != nil || l.small.all.Stats().Used != 40<<10 {
			t.Errorf("%q, %v, %d held", v, err, l.small.all.Stats().Used)
		}
		time.AfterFunc(time.Second, release)
		v, release, err = Read(t.Context(), l, caller("a"), read)
		if v != "read 3" || err != nil || l.small.all.Stats().Used != 40<<10 {
			t.Errorf("got %q, error %v, %d bytes held, want no bytes held while waiting", v, err, l.small.all.Stats().Used)
		}
		release()
	})
}

// TestSmallReadsAreReserved exhausts the bytes for large requests. Small requests must be granted
// at once.
func TestSmallReadsAreReserved(t *testing.T) {
	l := New(Config{})
	for i := range 10 {
		l.TryAcquire(caller(fmt.Sprint("greedy", i)), 16<<20)
	}
	if l.TryAcquire(caller("greedy"), 16<<20) != nil {
		t.Error("a large request was granted from the reserve")
	}
	for i := range 16 {
		if l.TryAcquire(caller(fmt.Sprint("modest", i)), 1<<20) == nil {
			t.Errorf("small request %d was not granted", i)
		}
	}
}

// TestGrantedBytesNeverExceedTheLimit checks that the limiter never grants more bytes than exist, and that all are
// released at the end, even by canceled requests.
func TestGrantedBytesNeverExceedTheLimit(t *testing.T) {
	p := newPool(Config{Bytes: 100, Wait: time.Millisecond, Queue: 20}.withDefaults())
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(2000))*time.Microsecond)
				g, err := p.acquire(ctx, Caller{fmt.Sprint(i % 7), fmt.Sprint(i % 11)}, rand.Int64N(120))
				if err == nil {
					if used := p.all.Stats().Used; used > 100 {
						t.Errorf("got %d bytes held", used)
					}
					g.Release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	wantEmpty(t, p)
}

// TestOnlyWaitsAreMeasured checks that waits are measured, and requests that need not wait are not.
func TestOnlyWaitsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var waits []string
		l := NewUniform(Config{Bytes: 100, Queue: 1, OnWait: func(waited time.Duration, granted bool) {
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, fmt.Sprint(waited, " ", granted))
		}})
		ctx := t.Context()
		release, err := l.Acquire(ctx, caller("a"), 50)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Second, release)
		second, err := l.Acquire(ctx, caller("a"), 50) // gets the bytes of the first
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = l.Acquire(ctx, caller("a"), 50) }() // waits in vain
		synctest.Wait()
		_, err = l.Acquire(ctx, caller("a"), 50) // the caller's queue is full
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

// TestMessagesNameSmallLimits checks that limits below a MiB are not called 0 MiB.
func TestMessagesNameSmallLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{Bytes: 2 << 20}) // of which 512 KiB are for small requests, half of them for a source
		held, err := l.AcquireGrant(t.Context(), caller("a"), 192<<10)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release()
		_, err = l.Acquire(t.Context(), caller("a"), 128<<10)
		if want := "other requests have used all 512 KiB of memory"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err, want := held.Grow(t.Context(), 1<<20), "more than the 192 KiB of memory"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}
