package watch

import (
	"context"
	"sync"
	"time"
)

// How much a snapshot may take of a turn that others wait for.
const (
	maxSnapshotWait = time.Minute // waiting for the API server; Config.PagePermitTimeout bounds it for a page
	maxSharedBytes  = 256 << 20
)

// snapshotPermit is the right of one snapshot to be under way. It holds one of the turns
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
type snapshotPermit struct {
	w     *Watcher
	timer *time.Timer

	// Owned by the goroutine of the feed:
	waitStart  time.Time     // of the wait under way
	remaining  time.Duration // to wait during this page
	waited     time.Duration
	bytes      int
	holdsSlow  bool // it holds a turn of the slow ones
	holdsLarge bool // it holds a largeObjectPermit

	mu          sync.Mutex
	holdsShared bool // it holds one of the shared turns
}

// acquireSnapshotPermit waits for a turn.
func (w *Watcher) acquireSnapshotPermit(ctx context.Context) (*snapshotPermit, error) {
	t := &snapshotPermit{w: w, remaining: w.cfg.PagePermitTimeout}
	t.timer = time.AfterFunc(time.Hour, func() {
		w.slow.Store(true)
		t.releaseShared()
	})
	t.timer.Stop()
	if w.slow.Load() {
		return t, t.acquireSlow(ctx)
	}
	if err := acquirePermit(ctx, w.cfg.Limiter.permits); err != nil {
		return t, err
	}
	t.holdsShared = true
	return t, nil
}

func (t *snapshotPermit) acquireSlow(ctx context.Context) error {
	if err := acquirePermit(ctx, t.w.slowPermit); err != nil {
		return err
	}
	if err := acquirePermit(ctx, t.w.cfg.Limiter.slowPermits); err != nil {
		<-t.w.slowPermit
		return err
	}
	t.holdsSlow = true
	return nil
}

// startPage begins the account of another page.
func (t *snapshotPermit) startPage() { t.remaining = t.w.cfg.PagePermitTimeout }

// StartWait says that the API server is waited for from now on.
func (t *snapshotPermit) StartWait() {
	if t == nil {
		return
	}
	t.waitStart = time.Now()
	if !t.holdsSlow {
		t.timer.Reset(t.remaining)
	}
}

// EndWait says that n bytes came. It waits for a turn for slow API servers where
// the wait has cost the snapshot its own. One that reads a big object goes on without
// until that is read: the one that has the turn may be waiting to read one.
func (t *snapshotPermit) EndWait(ctx context.Context, n int) error {
	if t == nil {
		return nil
	}
	t.timer.Stop()
	waited := time.Since(t.waitStart)
	t.remaining, t.waited, t.bytes = t.remaining-waited, t.waited+waited, t.bytes+n
	if t.holdsSlow {
		return nil
	}
	if t.waited > maxSnapshotWait || t.bytes > maxSharedBytes {
		t.releaseShared()
	}
	t.mu.Lock()
	holdsShared := t.holdsShared
	t.mu.Unlock()
	if holdsShared || t.holdsLarge {
		return nil
	}
	return t.acquireSlow(ctx)
}

// releaseShared gives the shared turn back. It may be called at any time.
func (t *snapshotPermit) releaseShared() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holdsShared {
		t.holdsShared = false
		<-t.w.cfg.Limiter.permits
	}
}

// release gives the turn back after the snapshot, which was complete or not.
func (t *snapshotPermit) release(complete bool) {
	t.timer.Stop()
	t.releaseShared()
	if !t.holdsSlow {
		return
	}
	if complete && t.remaining > 0 {
		t.w.slow.Store(false)
	}
	<-t.w.cfg.Limiter.slowPermits
	<-t.w.slowPermit
}
