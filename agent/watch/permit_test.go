package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch/queue"
)

func newPermitWatcher(t *testing.T, shared *Limiter) *Watcher {
	return NewWatcher(nil, Selection{}, nil, Config{Limiter: shared, PagePermitTimeout: time.Second})
}

// isSlow reports whether the next snapshot of the account begins without a shared permit.
func isSlow(w *Watcher) bool {
	t := w.cfg.Limiter.queue.Enqueue(&w.queue)
	defer w.cfg.Limiter.queue.Cancel(&w.queue, t)
	return t.Slow
}

func acquireTestPermit(t *testing.T, w *Watcher) *snapshotPermit {
	t.Helper()
	permit, err := w.acquireSnapshotPermit(t.Context(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	return permit
}

// TestSlowSnapshotsReleaseSharedPermit checks that a snapshot loses its shared permit if its
// API server is silent or the list is very long, and that the next snapshots of the account
// start slow until the API server is fast again.
func TestSlowSnapshotsReleaseSharedPermit(t *testing.T) {
	for _, tt := range []struct {
		name     string
		use      func(t *testing.T, p *snapshotPermit)
		slow     bool // the snapshot continues with a slow permit
		slowNext bool // and so does the next one of the account
	}{
		{"a fast page", func(t *testing.T, p *snapshotPermit) { p.StartWait(); endWait(t, p, 1<<20) }, false, false},
		{"a silent API server", func(t *testing.T, p *snapshotPermit) { p.StartWait(); time.Sleep(2 * time.Second); endWait(t, p, 1) }, true, true},
		{"many short silences in one page", func(t *testing.T, p *snapshotPermit) {
			for range 21 {
				p.StartWait()
				time.Sleep(50 * time.Millisecond)
				endWait(t, p, 1)
			}
		}, true, true},
		{"many pages, each within its limit", func(t *testing.T, p *snapshotPermit) {
			for range 121 {
				p.startPage()
				p.StartWait()
				time.Sleep(time.Second / 2)
				endWait(t, p, 1)
			}
		}, true, false},
		{"a page that does not end", func(t *testing.T, p *snapshotPermit) { p.StartWait(); endWait(t, p, maxSharedBytes+1) }, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := NewLimiter(queue.Budget{Fast: 1})
				w := newPermitWatcher(t, shared)
				permit := acquireTestPermit(t, w)
				tt.use(t, permit)
				if permit.holdsSlow != tt.slow || (shared.queue.Load().Fast == 1) == tt.slow || isSlow(w) != tt.slowNext {
					t.Errorf("got slow %v, %d shared permits taken, account slow %v, want slow %v, account slow %v", permit.holdsSlow, shared.queue.Load().Fast, isSlow(w), tt.slow, tt.slowNext)
				}
				permit.release(true)
				if shared.queue.Load().Total != 0 || len(shared.slowPermits) != 0 || len(w.slowPermit) != 0 {
					t.Error("a permit was not released")
				}
			})
		})
	}
}

func endWait(t *testing.T, p *snapshotPermit, n int) {
	t.Helper()
	if err := p.EndWait(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// TestSlowAccountReturnsToSharedPermits checks that an account uses slow permits until a
// snapshot did not have to wait.
func TestSlowAccountReturnsToSharedPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewLimiter(queue.Budget{Fast: 1})
		w := newPermitWatcher(t, shared)
		for _, step := range []struct {
			wait time.Duration
			slow bool
		}{{2 * time.Second, true}, {2 * time.Second, true}, {0, false}} {
			permit := acquireTestPermit(t, w)
			permit.StartWait()
			time.Sleep(step.wait)
			endWait(t, permit, 1)
			permit.release(true)
			if isSlow(w) != step.slow {
				t.Errorf("after a wait of %v: got slow %v, want %v", step.wait, isSlow(w), step.slow)
			}
		}
	})
}

// TestStoppedFeedReleasesPermit stops a feed that waits for a slow permit.
func TestStoppedFeedReleasesPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewLimiter(queue.Budget{Fast: 1})
		w := newPermitWatcher(t, shared)
		shared.queue.SetSlow(&w.queue, true)
		first := acquireTestPermit(t, w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		second, err := w.acquireSnapshotPermit(ctx, func() {})
		if err == nil || vedette.KindOf(err) != "" {
			t.Errorf("second slow permit of an account: got error %v, want that of the context", err)
		}
		second.release(false)
		first.release(false)
		if shared.queue.Load().Total != 0 || len(shared.slowPermits) != 0 || len(w.slowPermit) != 0 {
			t.Error("a permit was not released")
		}
	})
}
