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

// blockingStore is a database that answers when it is let.
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

// TestInventoryReadIsSharedWhileDatabaseHangs holds that nobody waits for the database longer
// than they want, and that one read serves all who wait.
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
					t.Errorf("%v after %v", err, time.Since(start))
				}
			}()
		}
		time.Sleep(2 * time.Second)
		done := make(chan error)
		for range 50 { // one that asks anew what the read under way can't tell
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
			t.Errorf("%d reads, want the one that hung and one that began later", h.reads)
		}
	})
}
