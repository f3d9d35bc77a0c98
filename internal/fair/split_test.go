package fair

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// newTestSplit returns a Split of 10 small units, of which a key may hold 5 and a grant 2, and 20 large ones, of which
// a key may hold 10.
func newTestSplit() *Split {
	return NewSplit(Config{Capacity: 10, Share: 5}, Config{Capacity: 20, Share: 10, Wait: time.Second}, 2)
}

// Large grants of several keys, and requests that wait for more, leave small units to others.
func TestSmallGrantsDoNotWaitForLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSplit()
		a, b := s.TryAcquire("a", 10), s.TryAcquire("b", 8)
		if err := a.Grow(t.Context(), 1); err != nil {
			t.Errorf("got %v for a small growth", err)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- s.TryAcquire("c", 1).Grow(t.Context(), 5) }()
		synctest.Wait()
		for range 5 {
			if d := s.TryAcquire("d", 1); d == nil {
				t.Error("a small request was not granted")
			}
		}
		if d := s.TryAcquire("d", 1); d != nil {
			t.Error("a key got more than its share of small units, and overtook a large request")
		}
		b.Release()
		if err := <-waiting; err != nil {
			t.Errorf("got %v, want the large units that became free", err)
		}
	})
}

// A grant takes large units when it has used its small ones, and returns those first.
func TestSplitGrantGrowsAndShrinks(t *testing.T) {
	s := newTestSplit()
	g := s.TryAcquire("a", 1)
	for _, tt := range []struct{ grow, small, large int64 }{{1, 2, 0}, {1, 2, 1}, {9, 2, 10}, {-3, 2, 7}, {-8, 1, 0}, {1, 2, 0}, {-9, 0, 0}, {3, 0, 3}} {
		if err := g.Grow(t.Context(), tt.grow); err != nil {
			t.Fatal(err)
		}
		g.Shrink(-tt.grow)
		if small, large := g.small.Units(), g.large.Units(); small != tt.small || large != tt.large || g.Units() != small+large {
			t.Errorf("after %+d: got %d and %d units, want %d and %d", tt.grow, small, large, tt.small, tt.large)
		}
	}
	if err := g.Grow(t.Context(), 11); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	g.Release()
	if err := g.Grow(t.Context(), 1); !errors.Is(err, errReleased) || s.Stats() != (Stats{}) {
		t.Errorf("got %v and %+v after the release, want errReleased and nothing", err, s.Stats())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.TryAcquire("b", 1).Grow(ended, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for a context that has ended", err)
	}
}

func TestNilSplitGrantsEverything(t *testing.T) {
	var s *Split
	g, err := s.Acquire(t.Context(), "a", 1)
	if err != nil || g.Grow(t.Context(), 1<<40) != nil || s.TryAcquire("a", 1) == nil {
		t.Errorf("got %v", err)
	}
	g.Shrink(1)
	g.Release()
	if g = s.None("a"); g.Grow(t.Context(), 1<<40) != nil || g.Units() != 0 {
		t.Errorf("got %d units of a nil Split", g.Units())
	}
}

// A grant of nothing waits for nothing, and grows as any other.
func TestGrantOfNothingGrows(t *testing.T) {
	s := newTestSplit()
	a, b := s.TryAcquire("a", 10), s.TryAcquire("b", 10)
	g := s.None("c")
	if g.Units() != 0 || g.Grow(t.Context(), 2) != nil || g.small.Units() != 2 {
		t.Errorf("got %d units, want 2 small ones", g.Units())
	}
	a.Release()
	b.Release()
	g.Release()
	if s.Stats() != (Stats{}) {
		t.Errorf("got %+v at the end", s.Stats())
	}
}
