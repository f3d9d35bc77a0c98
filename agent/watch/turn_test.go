package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

func newTurns(t *testing.T, shared *Shared) *Watcher {
	return NewWatcher(nil, Selection{}, nil, Config{Shared: shared, PageWait: time.Second})
}

func takeTurn(t *testing.T, w *Watcher) *turn {
	t.Helper()
	turn, err := w.takeTurn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// TestTurnsAreGivenBack holds that a snapshot whose API server keeps it waiting, or
// that does not end, loses its turn to others, and that the account begins slow
// until its API server is quick again.
func TestTurnsAreGivenBack(t *testing.T) {
	for _, tt := range []struct {
		why   string
		use   func(t *testing.T, turn *turn)
		slow  bool // it goes on in a slow turn
		later bool // and so does the account's next
	}{
		{"a quick page", func(t *testing.T, turn *turn) { turn.wait(); resume(t, turn, 1<<20) }, false, false},
		{"a silent API server", func(t *testing.T, turn *turn) { turn.wait(); time.Sleep(2 * time.Second); resume(t, turn, 1) }, true, true},
		{"many short silences in one page", func(t *testing.T, turn *turn) {
			for range 21 {
				turn.wait()
				time.Sleep(50 * time.Millisecond)
				resume(t, turn, 1)
			}
		}, true, true},
		{"many pages, each in time", func(t *testing.T, turn *turn) {
			for range 121 {
				turn.newPage()
				turn.wait()
				time.Sleep(time.Second / 2)
				resume(t, turn, 1)
			}
		}, true, false},
		{"a page that does not end", func(t *testing.T, turn *turn) { turn.wait(); resume(t, turn, turnBytes+1) }, true, false},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := NewShared(1)
				w := newTurns(t, shared)
				turn := takeTurn(t, w)
				tt.use(t, turn)
				if turn.slow != tt.slow || len(shared.turns) == cap(shared.turns) == tt.slow || w.slow.Load() != tt.later {
					t.Errorf("slow %v, shared turns taken %d, account slow %v", turn.slow, len(shared.turns), w.slow.Load())
				}
				turn.end(true)
				if len(shared.turns) != 0 || len(shared.slow) != 0 || len(w.slowTurn) != 0 {
					t.Error("a turn was kept")
				}
			})
		})
	}
}

func resume(t *testing.T, turn *turn, n int) {
	t.Helper()
	if err := turn.resume(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// TestSlowAccountsBecomeQuick follows an account from a silence to a snapshot that
// is not kept waiting.
func TestSlowAccountsBecomeQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(1)
		w := newTurns(t, shared)
		for _, step := range []struct {
			wait time.Duration
			slow bool
		}{{2 * time.Second, true}, {2 * time.Second, true}, {0, false}} {
			turn := takeTurn(t, w)
			turn.wait()
			time.Sleep(step.wait)
			resume(t, turn, 1)
			turn.end(true)
			if w.slow.Load() != step.slow {
				t.Errorf("after a wait of %v the account is slow: %v", step.wait, w.slow.Load())
			}
		}
	})
}

// TestAStoppedFeedGivesItsTurnBack ends a feed that waits for a slow turn.
func TestAStoppedFeedGivesItsTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(1)
		w := newTurns(t, shared)
		w.slow.Store(true)
		first := takeTurn(t, w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		second, err := w.takeTurn(ctx)
		if err == nil || vedette.KindOf(err) != "" {
			t.Errorf("an account has two slow turns: %v", err)
		}
		second.end(false)
		first.end(false)
		if len(shared.slow) != 0 || len(w.slowTurn) != 0 {
			t.Error("a turn was kept")
		}
	})
}
