package api

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// hung is a store that answers when it is told to.
type hung struct {
	answers chan struct{}
	asked   atomic.Int32
}

func (h *hung) Accounts(ctx context.Context) ([]store.AccountRow, error) {
	h.asked.Add(1)
	select {
	case <-h.answers:
		return []store.AccountRow{{Account: vedette.Account{Name: "prod"}}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *hung) Feeds(context.Context, ...vedette.AccountName) ([]store.FeedStatus, error) {
	return nil, nil
}

// TestReadersWaitForThemselvesOnly has readers of different patience ask a database that
// hangs: each waits as long as it likes, and the database is asked once.
func TestReadersWaitForThemselvesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hung{answers: make(chan struct{})}
		c := &catalog{store: h}
		began := time.Now()
		waited := make(chan time.Duration, 3)
		for _, patience := range []time.Duration{20 * time.Second, time.Second, 5 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			go func() {
				if _, err := c.get(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				waited <- time.Since(began)
			}()
			synctest.Wait()
		}
		for _, want := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second} {
			if got := <-waited; got != want {
				t.Errorf("a reader waited %v, want %v", got, want)
			}
		}
		if n := h.asked.Load(); n != 1 {
			t.Errorf("the database was asked %d times", n)
		}
		close(h.answers)
		synctest.Wait()
		if i, err := c.get(t.Context()); err != nil || len(i.accounts) != 1 {
			t.Errorf("when it answers: %+v, %v", i, err)
		}
	})
}

// TestWhoLooksAgainReadsAnew holds that who misses something is not given what was read
// before it asked.
func TestWhoLooksAgainReadsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hung{answers: make(chan struct{})}
		c := &catalog{store: h}
		go func() { _, _ = c.get(t.Context()) }()
		synctest.Wait()
		time.Sleep(time.Millisecond) // the bubble's
		done := make(chan error)
		go func() { _, err := c.since(t.Context(), 0); done <- err }()
		synctest.Wait()
		close(h.answers)
		if err := <-done; err != nil || h.asked.Load() != 2 {
			t.Errorf("%v, the database was asked %d times, want 2", err, h.asked.Load())
		}
	})
}
