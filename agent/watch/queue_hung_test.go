package watch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/agent/watch/queue"
)

// requestTimeout is how long the API servers of these tests hang.
const requestTimeout = 70 * time.Second

// hangingFeed reads a snapshot from an API server that hangs until the request times out.
func hangingFeed(t *testing.T, w *Watcher) {
	permit := acquireTestPermit(t, w)
	permit.StartWait()
	time.Sleep(requestTimeout)
	permit.release(false)
}

// TestHungClusterTakesShortTurns checks with a budget of one that a cluster that hangs holds up the others
// for one request, and not for one per feed, although all its feeds wait before theirs.
func TestHungClusterTakesShortTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewLimiter(queue.Budget{Total: 1})
		began := time.Now()
		var feeds, others sync.WaitGroup
		hung, _ := newQueueWatcher(limiter)
		for range queue.TurnLength {
			feeds.Go(func() { hangingFeed(t, hung) })
		}
		synctest.Wait()
		for range 500 {
			w, _ := newQueueWatcher(limiter)
			for range 3 {
				others.Go(func() {
					permit := acquireTestPermit(t, w)
					time.Sleep(time.Millisecond)
					permit.release(true)
				})
			}
		}
		others.Wait()
		if got, want := time.Since(began), requestTimeout+1500*time.Millisecond; got != want {
			t.Errorf("the others have read after %v, want %v", got, want)
		}
		feeds.Wait()
		expectEmptyQueue(t, limiter)
	})
}

// readHung reads a snapshot of an API server that hangs, as a feed does.
func readHung(t *testing.T, w *Watcher) {
	_ = retryYielded(t.Context(), func(ctx context.Context, yield func()) error {
		permit, err := w.acquireSnapshotPermit(ctx, yield)
		if err != nil {
			return err
		}
		defer permit.release(false)
		permit.StartWait()
		select {
		case <-time.After(requestTimeout):
			return errors.New("no response")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// TestManyHungClusters checks with a budget of one that 20 clusters that hang, and were first, delay 480 others
// by less than one request's limit, although each of them is only known to hang once it was asked. Then they
// have their own turns, with the whole limit.
func TestManyHungClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewLimiter(queue.Budget{Total: 1})
		began := time.Now()
		var hung, others sync.WaitGroup
		for range 20 {
			w, _ := newQueueWatcher(limiter)
			hung.Go(func() { readHung(t, w) })
			hung.Go(func() { readHung(t, w) })
			synctest.Wait()
		}
		for range 480 {
			w, _ := newQueueWatcher(limiter)
			others.Go(func() { acquireTestPermit(t, w).release(true) })
		}
		others.Wait()
		if got, want := time.Since(began), 20*time.Second; got != want { // one second each: Config.PagePermitTimeout
			t.Errorf("the others have read after %v, want %v", got, want)
		}
		hung.Wait()
		if got, want := time.Since(began), 20*time.Second+40*requestTimeout; got != want {
			t.Errorf("the clusters that hang were asked for %v, want %v", got, want)
		}
		expectEmptyQueue(t, limiter)
	})
}

// TestLongListDoesNotYield checks that a snapshot of which much has arrived does not begin again.
func TestLongListDoesNotYield(t *testing.T) {
	for arrived, want := range map[int]bool{minKeptBytes - 1: true, minKeptBytes: false} {
		synctest.Test(t, func(t *testing.T) {
			limiter := NewLimiter(queue.Budget{Total: 1})
			w, _ := newQueueWatcher(limiter)
			yielded := false
			permit, err := w.acquireSnapshotPermit(t.Context(), func() { yielded = true })
			if err != nil {
				t.Fatal(err)
			}
			other, _ := newQueueWatcher(limiter)
			var group sync.WaitGroup
			group.Go(func() { acquireTestPermit(t, other).release(true) })
			synctest.Wait()
			permit.StartWait()
			endWait(t, permit, arrived)
			permit.StartWait()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if yielded != want {
				t.Errorf("after %d bytes: got yielded %v, want %v", arrived, yielded, want)
			}
			permit.release(false)
			group.Wait()
		})
	}
}

// TestHungClusterLetsLaterOnesPass checks that an account that comes while a cluster hangs waits for the
// request that runs, and for no other.
func TestHungClusterLetsLaterOnesPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewLimiter(queue.Budget{Total: 1})
		var feeds sync.WaitGroup
		hung, _ := newQueueWatcher(limiter)
		for range 5 {
			feeds.Go(func() { hangingFeed(t, hung) })
		}
		time.Sleep(2*requestTimeout + time.Second) // the third one runs
		began := time.Now()
		late, _ := newQueueWatcher(limiter)
		acquireTestPermit(t, late).release(true)
		if got, want := time.Since(began), requestTimeout-time.Second; got != want {
			t.Errorf("the account waited for %v, want %v", got, want)
		}
		feeds.Wait()
		expectEmptyQueue(t, limiter)
	})
}

// TestRecoveredClusterReadsOn checks that waiting feeds count as fast again as soon as the API server of
// their account responds.
func TestRecoveredClusterReadsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := NewLimiter(queue.Budget{Total: 4, PerAccount: 1})
		w, _ := newQueueWatcher(limiter)
		var feeds sync.WaitGroup
		feeds.Go(func() { hangingFeed(t, w) })
		synctest.Wait()
		begunSlow := make(chan bool, 3)
		for range 3 {
			feeds.Go(func() {
				permit := acquireTestPermit(t, w)
				begunSlow <- permit.holdsSlow
				permit.release(true)
			})
		}
		feeds.Wait()
		if first, second, third := <-begunSlow, <-begunSlow, <-begunSlow; !first || second || third {
			t.Errorf("got slow starts %v, %v, %v, want only the first one", first, second, third)
		}
		expectEmptyQueue(t, limiter)
	})
}

// TestHungClusterDoesNotPreventVerifications checks that the feeds of an account that is read first, or never,
// because it waits for its own limits, do not prevent that other accounts are verified.
func TestHungClusterDoesNotPreventVerifications(t *testing.T) {
	for name, hold := range map[string]func(t *testing.T, w *Watcher){
		"hangs": hangingFeed,
		"sends without end": func(t *testing.T, w *Watcher) {
			permit := acquireTestPermit(t, w)
			time.Sleep(requestTimeout)
			permit.release(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := NewLimiter(queue.Budget{})
				var feeds sync.WaitGroup
				hung, _ := newQueueWatcher(limiter)
				for range queue.TurnLength {
					feeds.Go(func() { hold(t, hung) })
				}
				time.Sleep(requestTimeout / 2)
				began := time.Now()
				other, _ := newQueueWatcher(limiter)
				permit, err := other.acquireVerificationPermit(t.Context(), func() {})
				if err != nil {
					t.Fatal(err)
				}
				permit.release(true)
				if took := time.Since(began); took > 0 {
					t.Errorf("the verification of another account waited %v, want no wait", took)
				}
				feeds.Wait()
				expectEmptyQueue(t, limiter)
			})
		})
	}
}
