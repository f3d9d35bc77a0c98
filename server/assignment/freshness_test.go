package assignment

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// TestFreshnessIsStoredInOneBatch checks that one call stores the freshness of all accounts, and
// only of those whose freshness has changed.
func TestFreshnessIsStoredInOneBatch(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		first, _ := w.connect("a1")
		second, _ := w.connect("a2")
		for m, names := range map[*Member][]vedette.AccountName{first: {"one", "two", "three"}, second: {"four"}} {
			for _, name := range names {
				if err := m.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: string(name)}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, tt := range []struct {
			name string
			do   func()
			want []int // accounts in each call so far
		}{
			{"no freshness yet", func() {}, nil},
			{"both agents report", func() { first.SetFreshness(time.Now()); second.SetFreshness(time.Now()) }, []int{4}},
			{"no agent reports", func() {}, []int{4}},
			{"one agent reports", func() { first.SetFreshness(time.Now()) }, []int{4, 3}},
			{"one account is stalled", func() {
				first.Stall("two", vedette.Errorf(vedette.Unavailable, "locked"))
				first.SetFreshness(time.Now())
			}, []int{4, 3, 2}},
			{"the account resumes", func() { first.Resume("two"); first.SetFreshness(time.Now()) }, []int{4, 3, 2, 3}},
		} {
			tt.do()
			time.Sleep(15 * time.Second) // bubble time
			synctest.Wait()
			w.memoryStore.mu.Lock()
			if !slices.Equal(w.seenCounts, tt.want) {
				t.Errorf("%s: got calls with %v accounts, want %v", tt.name, w.seenCounts, tt.want)
			}
			w.memoryStore.mu.Unlock()
		}
	})
}
