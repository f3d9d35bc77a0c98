package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/agent/jsonstream"
)

// smallBuffer is the size of the first read buffer of a stream, in bytes.
const smallBuffer = 8 << 10

func newTestPermit(t *testing.T, m *ReadMemory, account string, onTimeout func()) *ReadPermit {
	return m.Permit(t.Context(), ReadPermitConfig{Account: account, Timeout: time.Minute, OnTimeout: onTimeout})
}

func mustAcquire(t *testing.T, p *ReadPermit, size int) {
	t.Helper()
	if err := p.Acquire(size); err != nil {
		t.Fatal(err)
	}
}

// Accounts with many large buffers leave small ones to others, and hold no more than their share.
func TestLargeBuffersLeaveSmallOnesToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewReadMemory()
		var held []*ReadPermit
		for i := range sharedMemory / accountShare {
			for range accountShare / bytesOfBuffers >> 20 {
				p := newTestPermit(t, m, fmt.Sprint("large ", i), nil)
				mustAcquire(t, p, 64<<10)
				mustAcquire(t, p, 1<<20)
				held = append(held, p)
			}
			rest := newTestPermit(t, m, fmt.Sprint("large ", i), nil) // the others have used ownMemory too
			mustAcquire(t, rest, ownMemory/bytesOfBuffers)
			held = append(held, rest)
		}
		began := time.Now()
		small := newTestPermit(t, m, "small", nil)
		mustAcquire(t, small, 8<<10)
		mustAcquire(t, small, 64<<10)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a small buffer waited %v", waited)
		}
		if err := small.Acquire(128 << 10); !errors.Is(err, errNoMemory) || time.Since(began) != time.Minute {
			t.Errorf("got %v after %v for a large buffer, want errNoMemory after a minute", err, time.Since(began))
		}
		go func() { time.Sleep(time.Second); held[0].Release(0) }()
		mustAcquire(t, small, 128<<10)
		synctest.Wait()
		for _, p := range append(held, small) {
			p.Release(0)
		}
		if got := m.line.Stats().Used; got != 0 {
			t.Errorf("got %d bytes used at the end", got)
		}
	})
}

// The first buffer of an object waits however long the others need, because they may wait for the server.
func TestFirstBufferWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewReadMemory()
		var held []*ReadPermit
		for range (ownMemory + accountShare) / (bytesOfBuffers * smallBuffer) {
			p := newTestPermit(t, m, "a", nil)
			mustAcquire(t, p, smallBuffer)
			held = append(held, p)
		}
		go func() {
			time.Sleep(time.Hour)
			for _, p := range held {
				p.Release(0)
			}
		}()
		mustAcquire(t, newTestPermit(t, m, "a", nil), smallBuffer)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := m.Permit(ctx, ReadPermitConfig{Account: "a"}).Acquire(smallBuffer); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v for a stream that has ended", err)
		}
	})
}

// A large object must end in time. What the reader of the objects needs does not count, and neither do small objects.
func TestLargeObjectsMustEnd(t *testing.T) {
	for _, tt := range []struct {
		name     string
		size     int
		use      func(p *ReadPermit)
		timesOut bool
	}{
		{"a small object", 64 << 10, func(p *ReadPermit) { waitForData(p, time.Hour) }, false},
		{"a large object", 128 << 10, func(p *ReadPermit) { waitForData(p, 61*time.Second) }, true},
		{"many short waits", 128 << 10, func(p *ReadPermit) {
			for range 7 {
				waitForData(p, 10*time.Second)
			}
		}, true},
		{"a slow reader", 128 << 10, func(p *ReadPermit) { waitForData(p, 50*time.Second); time.Sleep(time.Hour) }, false},
		{"objects that end", 128 << 10, func(p *ReadPermit) {
			for range 7 {
				waitForData(p, 10*time.Second)
				p.ObjectDone()
			}
		}, false},
		{"a small object after a large one", 128 << 10, func(p *ReadPermit) { p.Release(8 << 10); waitForData(p, time.Hour) }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var timedOut atomic.Bool
			p := newTestPermit(t, NewReadMemory(), "a", func() { timedOut.Store(true) })
			mustAcquire(t, p, smallBuffer)
			mustAcquire(t, p, tt.size)
			tt.use(p)
			synctest.Wait()
			if timedOut.Load() != tt.timesOut {
				t.Errorf("%s: timed out: %t", tt.name, timedOut.Load())
			}
		})
	}
}

func waitForData(p *ReadPermit, d time.Duration) {
	stop := p.StartWait()
	time.Sleep(d)
	stop()
}

// A document that no share suffices for is refused at once.
func TestTooLargeForMemory(t *testing.T) {
	p := newTestPermit(t, NewReadMemory(), "a", nil)
	mustAcquire(t, p, smallBuffer)
	if err := p.Acquire(2 * maxReadBuffer); !errors.Is(err, jsonstream.ErrMalformed) || !strings.Contains(err.Error(), "more than 4 MiB") {
		t.Errorf("got %v, want jsonstream.ErrMalformed with the limit", err)
	}
}

// BenchmarkReadPermit measures what each message of a watch pays for its buffer.
func BenchmarkReadPermit(b *testing.B) {
	p := NewReadMemory().Permit(b.Context(), ReadPermitConfig{Account: "a"})
	for b.Loop() {
		if err := p.Acquire(smallBuffer); err != nil {
			b.Fatal(err)
		}
		p.Release(0)
	}
}
