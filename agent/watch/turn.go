package watch

import (
	"context"
	"sync"
	"time"
)

// How much a snapshot may take of a turn that others wait for.
const (
	snapshotWait = time.Minute // waiting for the API server; Config.PageWait bounds it for a page
	turnBytes    = 256 << 20
)

// turn is the right of one snapshot to be under way. It holds one of the turns
// that all accounts share, and gives that back when the API server keeps it
// waiting or the list does not end. The snapshot then goes on, or waits to go
// on, in one of the turns for slow API servers, of which an account has one at a
// time. So clusters that hang wait for each other, and for nobody else. The zero
// pointer is no turn: it bounds nothing.
//
//	shared ──the API server is silent, or the list very long──> slow
//
// An account whose API server kept a page waiting begins its next snapshots slow,
// until one of them was not kept waiting.
type turn struct {
	w     *Watcher
	timer *time.Timer

	// Owned by the goroutine of the feed:
	began  time.Time     // of the wait under way
	left   time.Duration // to wait during this page
	waited time.Duration
	bytes  int
	slow   bool // it holds a turn of the slow ones
	big    bool // it holds a bigTurn

	mu     sync.Mutex
	shared bool // it holds one of the shared turns
}

// takeTurn waits for a turn.
func (w *Watcher) takeTurn(ctx context.Context) (*turn, error) {
	t := &turn{w: w, left: w.cfg.PageWait}
	t.timer = time.AfterFunc(time.Hour, func() {
		w.slow.Store(true)
		t.yield()
	})
	t.timer.Stop()
	if w.slow.Load() {
		return t, t.takeSlow(ctx)
	}
	if err := acquire(ctx, w.cfg.Shared.turns); err != nil {
		return t, err
	}
	t.shared = true
	return t, nil
}

func (t *turn) takeSlow(ctx context.Context) error {
	if err := acquire(ctx, t.w.slowTurn); err != nil {
		return err
	}
	if err := acquire(ctx, t.w.cfg.Shared.slow); err != nil {
		<-t.w.slowTurn
		return err
	}
	t.slow = true
	return nil
}

// newPage begins the account of another page.
func (t *turn) newPage() { t.left = t.w.cfg.PageWait }

// wait says that the API server is waited for from now on.
func (t *turn) wait() {
	if t == nil {
		return
	}
	t.began = time.Now()
	if !t.slow {
		t.timer.Reset(t.left)
	}
}

// resume says that n bytes came. It waits for a turn for slow API servers where
// the wait has cost the snapshot its own. One that reads a big object goes on without
// until that is read: the one that has the turn may be waiting to read one.
func (t *turn) resume(ctx context.Context, n int) error {
	if t == nil {
		return nil
	}
	t.timer.Stop()
	waited := time.Since(t.began)
	t.left, t.waited, t.bytes = t.left-waited, t.waited+waited, t.bytes+n
	if t.slow {
		return nil
	}
	if t.waited > snapshotWait || t.bytes > turnBytes {
		t.yield()
	}
	t.mu.Lock()
	shared := t.shared
	t.mu.Unlock()
	if shared || t.big {
		return nil
	}
	return t.takeSlow(ctx)
}

// yield gives the shared turn back. It may be called at any time.
func (t *turn) yield() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shared {
		t.shared = false
		<-t.w.cfg.Shared.turns
	}
}

// end gives the turn back after the snapshot, which was complete or not.
func (t *turn) end(complete bool) {
	t.timer.Stop()
	t.yield()
	if !t.slow {
		return
	}
	if complete && t.left > 0 {
		t.w.slow.Store(false)
	}
	<-t.w.cfg.Shared.slow
	<-t.w.slowTurn
}
