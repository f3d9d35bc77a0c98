package watch

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestLargeObjectPermitDoesNotWaitForSlowPermit holds that snapshots of one slow account, of which one
// has its slow turn and waits to read a big object, and others read big objects and
// have lost their turns, don't wait for each other.
func TestLargeObjectPermitDoesNotWaitForSlowPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewLimiter(maxLargeObjects)
		watcher := newPermitWatcher(t, shared)
		var permits []*largeObjectPermit
		for range maxLargeObjects {
			snapshot := acquireTestPermit(t, watcher)
			permit := &largeObjectPermit{ctx: t.Context(), permits: shared.largeObjectPermits, limit: time.Minute, snapshot: snapshot}
			if err := permit.Acquire(); err != nil {
				t.Fatal(err)
			}
			permits = append(permits, permit)
		}
		slowSnapshot := &snapshotPermit{w: watcher, timer: time.NewTimer(time.Hour)}
		if err := slowSnapshot.acquireSlow(t.Context()); err != nil {
			t.Fatal(err)
		}
		waiting := &largeObjectPermit{ctx: t.Context(), permits: shared.largeObjectPermits, limit: time.Minute, snapshot: slowSnapshot}
		done := make(chan error, 1)
		go func() { done <- waiting.Acquire() }()
		synctest.Wait()
		began := time.Now()
		for _, permit := range permits {
			permit.snapshot.StartWait()
			time.Sleep(2 * time.Second) // the API server is slow, and the shared turn is gone
			endWait(t, permit.snapshot, 1)
			permit.Release()
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		waiting.Release()
		slowSnapshot.release(true)
		for _, permit := range permits { // now that there are slow turns again
			endWait(t, permit.snapshot, 1)
			permit.snapshot.release(true)
		}
		if waited := time.Since(began); waited > 10*time.Second || len(shared.permits)+len(shared.slowPermits)+len(shared.largeObjectPermits)+len(watcher.slowPermit) != 0 {
			t.Errorf("it took %v; %d, %d, %d and %d turns are left behind", waited, len(shared.permits), len(shared.slowPermits), len(shared.largeObjectPermits), len(watcher.slowPermit))
		}
	})
}
