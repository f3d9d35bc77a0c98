package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// blockingStore is a database that blocks until the test releases it.
type blockingStore struct {
	reads   int
	release chan struct{}
}

func (h *blockingStore) Accounts(ctx context.Context) ([]store.AccountRow, error) {
	h.reads++
	select {
	case <-h.release:
		return []store.AccountRow{{Account: vedette.Account{Name: "prod"}}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (*blockingStore) Feeds(context.Context, ...vedette.AccountName) ([]store.FeedStatus, error) {
	return nil, nil
}

// TestInventoryReadIsSharedWhileDatabaseHangs checks that requests wait for the database only
// until they end, and that all waiting requests share one read.
func TestInventoryReadIsSharedWhileDatabaseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &blockingStore{release: make(chan struct{})}
		c := &inventoryCache{store: h}
		start := time.Now()
		for range 100 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := c.get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
					t.Errorf("got %v after %v", err, time.Since(start))
				}
			}()
		}
		time.Sleep(2 * time.Second)
		done := make(chan error)
		for range 50 { // each needs a read that begins after the blocked one
			go func() { _, err := c.getFresh(t.Context(), 0); done <- err }()
		}
		synctest.Wait()
		close(h.release)
		for range 50 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if h.reads != 2 {
			t.Errorf("got %d reads, want 2: the blocked one and one later", h.reads)
		}
	})
}
