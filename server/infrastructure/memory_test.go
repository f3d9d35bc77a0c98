package infrastructure

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/store/read"
)

// TestLargeReadsFollowEachOther begins many reads at a time, of which half do not fit into the memory
// of small ones.
func TestLargeReadsFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewReader(configOf(newMemoryStore()))
		var small, large, mostSmall, mostLarge, done atomic.Int64
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() {
				tries := 0
				_, err := r.withMemory(t.Context(), func(context.Context) error {
					tries++
					running, most := &small, &mostSmall
					if tries == 2 {
						running, most = &large, &mostLarge
					}
					most.Store(max(most.Load(), running.Add(1)))
					defer running.Add(-1)
					time.Sleep(time.Second)
					if i%2 == 0 && tries == 1 {
						return read.ErrRowBudget
					}
					done.Add(1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if done.Load() != 40 || mostSmall.Load() != maxSmall || mostLarge.Load() != 1 {
			t.Errorf("did %d reads, %d small and %d large at a time, want 40, %d and 1", done.Load(), mostSmall.Load(), mostLarge.Load(), maxSmall)
		}
	})
}

func TestTooLargeReadsFail(t *testing.T) {
	r := NewReader(configOf(newMemoryStore()))
	for range 2 * maxSmall {
		if _, err := r.withMemory(t.Context(), func(context.Context) error { return read.ErrRowBudget }); !errors.Is(err, read.ErrRowBudget) {
			t.Errorf("got %v, want %v", err, read.ErrRowBudget)
		}
	}
}

func TestReadsWaitForMemoryNoLongerThanTheirCaller(t *testing.T) {
	r := NewReader(configOf(newMemoryStore()))
	for range maxSmall {
		r.small <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.withMemory(ctx, func(context.Context) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
