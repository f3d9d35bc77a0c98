package assigner

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
)

// pass lets time pass, until all that is due has run: a Registry forgets accounts without agents.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestLoadCountsStatesAndAge(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		first, _ := w.connect("a1")
		second, _ := w.connect("a2")
		for _, name := range []vedette.AccountName{"one", "two", "three"} {
			if err := first.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: string(name)}}); err != nil {
				t.Fatal(err)
			}
		}
		first.SetFreshness(time.Now())
		for _, step := range []struct {
			name string
			do   func()
			want Load
		}{
			{"three accounts", func() {}, Load{Agents: 2, Reported: 3}},
			{"time passes", func() { pass(time.Minute) }, Load{Agents: 2, Reported: 3, Oldest: time.Minute}},
			{"one is stalled", func() {
				first.Stall("two", vedette.Errorf(vedette.Unavailable, "locked"))
				first.SetFreshness(time.Now())
			}, Load{Agents: 2, Reported: 2, Stalled: 1, Oldest: time.Minute}},
			{"one waits for its first list", func() { first.SetAccountError("one", AccountError{Kind: vedette.Waiting, Message: "1 of 5"}) },
				Load{Agents: 2, Reported: 2, Stalled: 1, Oldest: time.Minute}},
			{"one fails", func() { first.SetAccountError("three", AccountError{Message: "forbidden"}) },
				Load{Agents: 2, Reported: 1, Failing: 1, Stalled: 1, Oldest: time.Minute}},
			{"the stalled one resumes", func() { first.Resume("two") }, Load{Agents: 2, Reported: 2, Failing: 1}},
			{"an agent cannot reach a cluster", func() { second.SetAccountError("four", AccountError{Message: "no route"}) },
				Load{Agents: 2, Reported: 2, Failing: 1, Reaching: 1}},
			{"an agent is refused", func() {
				if err := second.Register(t.Context(), vedette.Account{Name: "one", Cluster: vedette.Cluster{UID: "another"}}); err != nil {
					t.Fatal(err)
				}
			}, Load{Agents: 2, Reported: 2, Failing: 1, Reaching: 1, Refused: 1}},
			{"the agent leaves", func() { first.Leave(t.Context()) }, Load{Agents: 1, Orphaned: 3, Reaching: 1, Refused: 1}},
		} {
			step.do()
			if got := w.Load(); got != step.want {
				t.Errorf("%s: got %+v, want %+v", step.name, got, step.want)
			}
		}
	})
}

// TestEachAccountHasStateAndAge checks the state and the age of single accounts.
func TestEachAccountHasStateAndAge(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		agent, _ := w.connect("a1")
		for _, name := range []vedette.AccountName{"failing", "reported", "stalled"} {
			if err := agent.Register(t.Context(), vedette.Account{Name: name, Cluster: vedette.Cluster{UID: string(name)}}); err != nil {
				t.Fatal(err)
			}
		}
		agent.SetFreshness(time.Now())
		agent.Stall("stalled", vedette.Errorf(vedette.Unavailable, "locked"))
		agent.SetAccountError("failing", AccountError{Message: "forbidden"})
		pass(time.Minute)
		agent.SetFreshness(time.Now())
		want := func(step string, want ...AccountLoad) {
			t.Helper()
			got := w.AccountLoads()
			slices.SortFunc(got, func(a, b AccountLoad) int { return cmp.Compare(a.Account, b.Account) })
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %+v, want %+v", step, got, want)
			}
		}
		want("an agent reports them", AccountLoad{Account: "failing", State: Failing}, AccountLoad{Account: "reported", State: Reported},
			AccountLoad{Account: "stalled", State: Stalled, Age: time.Minute})
		if role, _ := agent.Role("stalled"); !role.Stalled || role.Message != "locked" {
			t.Errorf("got %+v for operators, want that the account is stalled, and why", role)
		}
		if role, _ := agent.Role("reported"); role.Stalled {
			t.Errorf("got %+v for operators, want that the account is not stalled", role)
		}
		agent.Leave(t.Context())
		want("the agent left", AccountLoad{Account: "failing", State: Orphaned}, AccountLoad{Account: "reported", State: Orphaned},
			AccountLoad{Account: "stalled", State: Orphaned})
	})
}

// TestAgeOfUnprovenAccounts checks how old accounts are of which the agent has not said yet up to when they are complete: neither as
// fresh as the connection of the agent, nor older than what is known.
func TestAgeOfUnprovenAccounts(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		want := func(step string, age time.Duration) {
			t.Helper()
			if got := w.AccountLoads(); len(got) != 1 || got[0].Age != age {
				t.Errorf("%s: got %+v, want the age %v", step, got, age)
			}
		}
		agent := w.Join(assignment.Agent{ID: "a1", Connected: time.Now()}, func(assignment.Assignment) {})
		agent.SetAccountFreshness(time.Now(), nil)
		pass(time.Hour)
		w.register(agent, nil)
		want("an agent adds an account after an hour", 0)
		pass(time.Minute)
		agent.SetAccountFreshness(time.Now(), nil)
		want("it has not listed it", time.Minute)
		for range 3 { // a new connection each minute
			agent.Leave(t.Context())
			agent = w.Join(assignment.Agent{ID: "a1", Connected: time.Now()}, func(assignment.Assignment) {})
			w.register(agent, nil)
			pass(time.Minute)
			agent.SetAccountFreshness(time.Now(), nil)
		}
		want("it connects again and again", 4*time.Minute)
		_, term := w.Cacher("prod")
		agent.SetAccountFreshness(time.Now(), map[vedette.AccountName]vedette.AccountAge{"prod": {Term: term, Live: time.Now(), All: time.Now()}})
		want("it has listed it", 0)
		w.setFeeds("prod", read.FeedStatus{State: vedette.FeedLive, LastSeen: time.Now()}, read.FeedStatus{State: vedette.FeedDenied, LastSeen: time.Now().Add(-time.Hour)},
			read.FeedStatus{State: vedette.FeedFailing, LastSeen: time.Now().Add(-2 * time.Minute)}, read.FeedStatus{State: vedette.FeedPending})
		agent.Leave(t.Context())
		pass(time.Minute)
		agent = w.Join(assignment.Agent{ID: "a1", Connected: time.Now()}, func(assignment.Assignment) {})
		w.register(agent, nil)
		want("what the store knows counts", 3*time.Minute)
	})
}

// BenchmarkLoad measures what a scrape costs with 10,000 accounts of 100 agents.
func BenchmarkLoad(b *testing.B) {
	memory := &memoryStore{rows: map[vedette.AccountName]*registry.Account{}}
	r := New("s1", assignment.Config{}, memory, memory, slog.New(slog.DiscardHandler))
	defer r.Close()
	for i := range 100 {
		m := r.Join(assignment.Agent{ID: vedette.AgentID(fmt.Sprint("a", i))}, func(assignment.Assignment) {})
		for j := range 100 {
			name := fmt.Sprint("account-", i, "-", j)
			if err := m.Register(b.Context(), vedette.Account{Name: vedette.AccountName(name), Cluster: vedette.Cluster{UID: name}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		r.Load()
	}
}
