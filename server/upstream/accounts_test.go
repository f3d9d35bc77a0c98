package upstream

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/store/registry"
)

// TestAccountsWithAHungUpstream checks that requests find out which accounts agents have although an account is being read and the
// upstream Clouddriver does not say whether it has that one.
func TestAccountsWithAHungUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore(ourAccount)
		store.set("arriving", registry.FirstSync{Settled: time.Unix(1, 0)})
		c := &accountCache{accounts: accountlist.NewCache(store), index: newIndex(time.Minute, time.Hour, func() bool { return false }),
			readIndex: func(ctx context.Context) { <-ctx.Done() }}
		set, err := c.current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !set.Has(ourAccount) || !set.isArriving("arriving") {
			t.Errorf("got owned accounts %v and arriving %v, want %s and the one that is being read", set.owned, set.arriving, ourAccount)
		}
	})
}

// TestAccountsAfterTheTimeOfAMerge checks that a request whose time ends while it waits for the accounts gets an error that says to try
// again.
func TestAccountsAfterTheTimeOfAMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		store.set("arriving", registry.FirstSync{Settled: time.Unix(1, 0)})
		c := &accountCache{accounts: accountlist.NewCache(store), index: newIndex(time.Minute, time.Hour, func() bool { return false }),
			readIndex: func(ctx context.Context) { <-ctx.Done() }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.exact(ctx); vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("got error %v, want one that says to try again", err)
		}
		time.Sleep(accountTimeout) // the read goes on
	})
}

// TestNewestAccountsStay lets requests wait that have found different accounts. What they derive must not replace what another one has
// derived of more recent accounts, because that is what counts while the database does not answer.
func TestNewestAccountsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		store.set("arriving", registry.FirstSync{Settled: time.Unix(1, 0)})
		isRead := make(chan struct{})
		c := &accountCache{accounts: accountlist.NewCache(store), index: newIndex(time.Minute, time.Hour, func() bool { return false }),
			readIndex: func(context.Context) { <-isRead }}
		const changes = 20
		var requests sync.WaitGroup
		for i := range changes {
			store.set(vedette.AccountName(fmt.Sprint("a", i)), registry.FirstSync{Settled: time.Unix(1, 0), Complete: time.Unix(1, 0)})
			requests.Go(func() {
				if set, err := c.exact(t.Context()); err != nil || !set.Has(fmt.Sprint("a", i)) {
					t.Errorf("request %d: got %v and error %v, want its accounts", i, set, err)
				}
			})
			synctest.Wait()
		}
		close(isRead)
		requests.Wait()
		if last := c.sets.Last(); len(last.owned) != changes {
			t.Errorf("got %d accounts at last, want %d", len(last.owned), changes)
		}
	})
}
