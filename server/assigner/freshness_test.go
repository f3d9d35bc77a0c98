package assigner

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
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

// TestAgeOfLostClustersIsStored checks that the store knows up to when an account was complete whose feeds all fail, because its cluster
// is lost, when the agent leaves as well.
func TestAgeOfLostClustersIsStored(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		agent, _ := w.connect("a1")
		for _, name := range []vedette.AccountName{"fails", "lost", "never", "works"} {
			if err := agent.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: string(name)}}); err != nil {
				t.Fatal(err)
			}
		}
		lostAt, now := time.Now(), time.Now().Add(time.Minute)
		pass(time.Minute)
		agent.SetAccountFreshness(now, map[vedette.AccountName]vedette.AccountAge{"lost": {Term: 1, All: lostAt}, "never": {Term: 1},
			"fails": {Term: 1, Live: now, All: lostAt}, "works": {Term: 1, Live: now, All: now}})
		w.sightings = nil
		agent.Leave(t.Context())
		want := []registry.LastSeen{{Account: "fails", Term: 1, At: now, Complete: lostAt, HasEnded: true}, {Account: "lost", Term: 1, Complete: lostAt, HasEnded: true},
			{Account: "works", Term: 1, At: now, HasEnded: true}}
		slices.SortFunc(w.sightings, func(a, b registry.LastSeen) int { return cmp.Compare(a.Account, b.Account) })
		if !slices.Equal(w.sightings, want) {
			t.Errorf("got %+v\nwant %+v", w.sightings, want)
		}
	})
}

// TestAgeOfFailingFeedsIsStoredOnce checks that an account whose cluster is lost is stored when that is known, and not again and again,
// although other feeds of it stay live.
func TestAgeOfFailingFeedsIsStoredOnce(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		agent, _ := w.connect("a1")
		w.register(agent, nil)
		lostAt := time.Now()
		pass(time.Minute)
		for range 4 {
			now := time.Now()
			agent.SetAccountFreshness(now, map[vedette.AccountName]vedette.AccountAge{"prod": {Term: 1, Live: now, All: lostAt}})
			pass(freshnessInterval)
		}
		stored := 0
		for _, seen := range w.sightings {
			if seen.Complete.Equal(lostAt) {
				stored++
			}
		}
		if len(w.sightings) != 4 || stored != 1 {
			t.Errorf("got %+v, want 4 with one age of the failing feeds", w.sightings)
		}
	})
}

// TestWaitingChangesAreNoHeartbeat checks that an agent without accounts, whose first heartbeats are not read at once, counts as heard, and
// that the age of changes that wait is not taken for that of a heartbeat.
func TestWaitingChangesAreNoHeartbeat(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		agent, _ := w.connect("a1")
		want := func(step string, at time.Time) {
			t.Helper()
			if got := agent.LastHeartbeat(); got.Sub(at).Abs() > time.Millisecond {
				t.Errorf("%s: got %v, want %v", step, got, at)
			}
		}
		agent.BeginReceive()
		joined := time.Now()
		pass(3 * time.Second)
		want("it has just connected", joined)
		agent.EndReceive()
		want("a message is handled", time.Now())
		agent.BeginReceive()
		received := time.Now()
		pass(2 * time.Second)
		want("a message has arrived", received)
		agent.SetAccountFreshness(time.Now().Add(-time.Minute), nil)
		read := time.Now()
		pass(time.Second)
		want("a heartbeat says that changes wait", read)
	})
}

// TestSlowStoreKeepsTheLastFreshness checks that a store that takes several seconds delays the standbys for one, and stores up to when
// the account was complete all the same.
func TestSlowStoreKeepsTheLastFreshness(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		agent, _ := w.connect("a1")
		w.register(agent, nil)
		agent.SetFreshness(time.Now())
		w.hang()
		go agent.Leave(t.Context())
		pass(3 * time.Second)
		if len(w.stored) != 0 {
			t.Fatalf("got %+v stored while the store hangs", w.stored)
		}
		w.resume()
		pass(time.Second)
		if len(w.stored) != 1 || w.stored[0].At.IsZero() {
			t.Errorf("got %+v stored", w.stored)
		}
	})
}
