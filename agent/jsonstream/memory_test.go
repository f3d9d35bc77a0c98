package jsonstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newTestPermit(t *testing.T, m *Memory, account string, onTimeout func()) *MemoryPermit {
	return m.Permit(t.Context(), PermitConfig{Account: account, Timeout: time.Minute, OnTimeout: onTimeout})
}

func mustAcquire(t *testing.T, p *MemoryPermit, size int) {
	t.Helper()
	if err := p.Acquire(size); err != nil {
		t.Fatal(err)
	}
}

// Accounts with many large buffers leave small ones to others, and hold no more than their share.
func TestLargeBuffersLeaveSmallOnesToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		var held []*MemoryPermit
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
		m := NewMemory()
		var held []*MemoryPermit
		for range (ownMemory + accountShare) / (bytesOfBuffers * minBuffer) {
			p := newTestPermit(t, m, "a", nil)
			mustAcquire(t, p, minBuffer)
			held = append(held, p)
		}
		go func() {
			time.Sleep(time.Hour)
			for _, p := range held {
				p.Release(0)
			}
		}()
		mustAcquire(t, newTestPermit(t, m, "a", nil), minBuffer)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := m.Permit(ctx, PermitConfig{Account: "a"}).Acquire(minBuffer); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v for a stream that has ended", err)
		}
	})
}

// A large object must end in time. What the reader of the objects needs does not count, and neither do small objects.
func TestLargeObjectsMustEnd(t *testing.T) {
	for _, tt := range []struct {
		name     string
		size     int
		use      func(p *MemoryPermit)
		timesOut bool
	}{
		{"a small object", 64 << 10, func(p *MemoryPermit) { waitForData(p, time.Hour) }, false},
		{"a large object", 128 << 10, func(p *MemoryPermit) { waitForData(p, 61*time.Second) }, true},
		{"many short waits", 128 << 10, func(p *MemoryPermit) {
			for range 7 {
				waitForData(p, 10*time.Second)
			}
		}, true},
		{"a slow reader", 128 << 10, func(p *MemoryPermit) { waitForData(p, 50*time.Second); time.Sleep(time.Hour) }, false},
		{"objects that end", 128 << 10, func(p *MemoryPermit) {
			for range 7 {
				waitForData(p, 10*time.Second)
				p.ObjectDone()
			}
		}, false},
		{"a small object after a large one", 128 << 10, func(p *MemoryPermit) { p.Release(8 << 10); waitForData(p, time.Hour) }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			timedOut := false
			p := newTestPermit(t, NewMemory(), "a", func() { timedOut = true })
			mustAcquire(t, p, minBuffer)
			mustAcquire(t, p, tt.size)
			tt.use(p)
			synctest.Wait()
			if timedOut != tt.timesOut {
				t.Errorf("%s: timed out: %t", tt.name, timedOut)
			}
		})
	}
}

func waitForData(p *MemoryPermit, d time.Duration) {
	stop := p.StartWait()
	time.Sleep(d)
	stop()
}

// A document that no share suffices for is refused at once.
func TestTooLargeForMemory(t *testing.T) {
	p := newTestPermit(t, NewMemory(), "a", nil)
	mustAcquire(t, p, minBuffer)
	if err := p.Acquire(2 * MaxMemoryBuffer); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "more than 4 MiB") {
		t.Errorf("got %v, want ErrMalformed with the limit", err)
	}
}

// permitLog records the calls of a Splitter.
type permitLog struct {
	calls     []string
	contended bool
}

func (p *permitLog) Acquire(size int) error {
	p.calls = append(p.calls, fmt.Sprint("acquire ", size>>10))
	return nil
}
func (p *permitLog) StartWait() (stop func()) { return func() {} }
func (p *permitLog) ObjectDone() bool         { return p.contended }
func (p *permitLog) Release(size int)         { p.calls = append(p.calls, fmt.Sprint("release ", size>>10)) }

// A Splitter acquires each larger buffer, gives a large one back if others wait, and all of it at the end.
func TestSplitterUsesItsPermit(t *testing.T) {
	list := `{"items":[{"a":"` + strings.Repeat("x", 60<<10) + `"}` + strings.Repeat(`,{"b":"`+strings.Repeat("y", 1000)+`"}`, 500) + `]}`
	for _, tt := range []struct {
		contended bool
		free      int
		want      []string
	}{
		{false, 0, []string{"acquire 8", "acquire 16", "acquire 32", "acquire 64", "release 0"}},
		{true, 0, []string{"acquire 8", "acquire 16", "acquire 32", "acquire 64", "release 8", "release 0"}},
		{false, 32 << 10, []string{"acquire 64", "release 0"}},
		{true, 32 << 10, []string{"acquire 64", "release 32"}},
		{true, 64 << 10, nil},
	} {
		permit := &permitLog{contended: tt.contended}
		s := NewSplitter(io.NopCloser(strings.NewReader(list)), new(BufferPool), Options{Permit: permit, FreeBuffer: tt.free})
		objects := 0
		if _, err := s.List(nil, func([]byte) error { objects++; return nil }); !errors.Is(err, ErrNoVersion) || objects != 501 {
			t.Fatalf("got %d objects, %v", objects, err)
		}
		s.Close()
		if !slices.Equal(permit.calls, tt.want) {
			t.Errorf("contended %t, %d KiB free: got %q, want %q", tt.contended, tt.free>>10, permit.calls, tt.want)
		}
	}
}

// BenchmarkMemoryPermit measures what each message of a watch pays for its buffer.
func BenchmarkMemoryPermit(b *testing.B) {
	p := NewMemory().Permit(b.Context(), PermitConfig{Account: "a"})
	for b.Loop() {
		if err := p.Acquire(minBuffer); err != nil {
			b.Fatal(err)
		}
		p.Release(0)
	}
}
