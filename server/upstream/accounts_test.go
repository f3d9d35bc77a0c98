package upstream

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// countingAccounts counts reads, each of which takes some time.
type countingAccounts struct {
	reads atomic.Int64
	names atomic.Pointer[[]vedette.AccountName]
}

func (c *countingAccounts) AccountNames(ctx context.Context) ([]vedette.AccountName, error) {
	c.reads.Add(1)
	select {
	case <-time.After(time.Second):
		return *c.names.Load(), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TestAccountCache checks that many requests read the accounts once, and that a new account is known
// soon.
func TestAccountCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &countingAccounts{}
		source.names.Store(&[]vedette.AccountName{"a"})
		c := &accountCache{source: source}
		for range 100 {
			go func() {
				if names, err := c.current(t.Context()); err != nil || !names.has("a") || names.has("b") {
					t.Errorf("got %v %v, want the account a", names, err)
				}
			}()
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if n := source.reads.Load(); n != 1 {
			t.Errorf("got %d reads for 100 requests, want 1", n)
		}
		source.names.Store(&[]vedette.AccountName{"a", "b"})
		time.Sleep(accountMaxAge)
		if names, err := c.current(t.Context()); err != nil || !names.has("b") {
			t.Errorf("after %s: got %v %v, want the account b", accountMaxAge, names, err)
		}
	})
}

// TestAccountCacheOfALeavingCaller checks that a caller who leaves does not fail others.
func TestAccountCacheOfALeavingCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &countingAccounts{}
		source.names.Store(&[]vedette.AccountName{"a"})
		c := &accountCache{source: source}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if _, err := c.current(ctx); err == nil {
				t.Error("got the accounts for a caller who left")
			}
		}()
		synctest.Wait()
		go cancel()
		if names, err := c.current(t.Context()); err != nil || !names.has("a") {
			t.Errorf("got %v %v, want the accounts", names, err)
		}
	})
}
