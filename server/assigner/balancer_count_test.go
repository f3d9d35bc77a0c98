package assigner

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

// countedStore counts how often the objects of all accounts are counted.
type countedStore struct {
	*memoryStore
	counts atomic.Int64
}

func (c *countedStore) AccountSizes(ctx context.Context) (map[vedette.AccountName]int64, error) {
	c.counts.Add(1)
	return c.memoryStore.AccountSizes(ctx)
}

// TestOnlySharedAccountsAreCounted checks that objects are counted as soon as two agents share an
// account, and not before or afterwards.
func TestOnlySharedAccountsAreCounted(t *testing.T) {
	withBalancer(t, func(t *testing.T, w *balanceFixture) {
		w.addAccounts(1000, 1000)
		counted := &countedStore{memoryStore: w.memoryStore}
		w.store = counted
		expect := func(step string, want int64) {
			if got := counted.counts.Swap(0); got != want {
				t.Errorf("%s: objects were counted %d times, want %d", step, got, want)
			}
		}
		w.join("a1")
		time.Sleep(time.Hour)
		expect("one agent", 0)
		second := w.join("a2")
		time.Sleep(1500 * time.Millisecond)
		expect("two agents, at once", 1)
		time.Sleep(10 * countInterval)
		expect("two agents", 10)
		second.Leave(t.Context())
		time.Sleep(time.Hour)
		expect("one agent again", 0)
	})
}
