package watch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/queue"
)

// TestReadPermitDoesNotWaitForSlowPermit checks for a deadlock between snapshots of one
// slow account: one has the slow permit and waits for a large-object permit, the others have
// the large-object permits and no snapshot permit.
func TestReadPermitDoesNotWaitForSlowPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewLimiter(queue.Budget{Fast: maxLargeObjects})
		watcher := newPermitWatcher(t, shared)
		var permits []*readPermit
		for range maxLargeObjects {
			snapshot := acquireTestPermit(t, watcher)
			permit := &readPermit{ReadPermit: &kube.ReadPermit{}, ctx: t.Context(), permits: shared.largeObjectPermits, snapshot: snapshot}
			if err := permit.Acquire(2 * largeBuffer); err != nil {
				t.Fatal(err)
			}
			permits = append(permits, permit)
		}
		slowSnapshot := &snapshotPermit{w: watcher, timer: time.NewTimer(time.Hour)}
		if err := slowSnapshot.acquireSlow(t.Context()); err != nil {
			t.Fatal(err)
		}
		waiting := &readPermit{ReadPermit: &kube.ReadPermit{}, ctx: t.Context(), permits: shared.largeObjectPermits, snapshot: slowSnapshot}
		done := make(chan error, 1)
		go func() { done <- waiting.Acquire(2 * largeBuffer) }()
		synctest.Wait()
		began := time.Now()
		for _, permit := range permits {
			permit.snapshot.StartWait()
			time.Sleep(2 * time.Second) // the API server is slow, so the shared permit is lost
			endWait(t, permit.snapshot, 1)
			permit.Release(0)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		waiting.Release(0)
		slowSnapshot.release(true)
		for _, permit := range permits { // slow permits are available again
			endWait(t, permit.snapshot, 1)
			permit.snapshot.release(true)
		}
		if waited := time.Since(began); waited > 10*time.Second || shared.queue.Load().Total+len(shared.slowPermits)+len(shared.largeObjectPermits)+len(watcher.slowPermit) != 0 {
			t.Errorf("took %v, want at most 10s; %d, %d, %d and %d permits were not released", waited, shared.queue.Load().Total, len(shared.slowPermits), len(shared.largeObjectPermits), len(watcher.slowPermit))
		}
	})
}
