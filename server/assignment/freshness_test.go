package assignment

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// TestFreshnessIsStoredInOneBatch holds that the freshness of all accounts is stored at
// once, and only of those that have got fresher.
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
			why  string
			do   func()
			want []int // accounts in each call so far
		}{
			{"nothing was heard of any yet", func() {}, nil},
			{"both agents are heard", func() { first.SetFreshness(time.Now()); second.SetFreshness(time.Now()) }, []int{4}},
			{"nothing is heard", func() {}, []int{4}},
			{"one is heard", func() { first.SetFreshness(time.Now()) }, []int{4, 3}},
			{"one of its accounts is stalled", func() {
				first.Stall("two", vedette.Errorf(vedette.Unavailable, "locked"))
				first.SetFreshness(time.Now())
			}, []int{4, 3, 2}},
			{"it goes on", func() { first.Resume("two"); first.SetFreshness(time.Now()) }, []int{4, 3, 2, 3}},
		} {
			tt.do()
			time.Sleep(15 * time.Second) // the bubble's
			synctest.Wait()
			w.memoryStore.mu.Lock()
			if !slices.Equal(w.seenCounts, tt.want) {
				t.Errorf("%s: accounts were stored by calls of %v, want %v", tt.why, w.seenCounts, tt.want)
			}
			w.memoryStore.mu.Unlock()
		}
	})
}
