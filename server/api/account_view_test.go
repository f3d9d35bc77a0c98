package api_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
)

type accountAnswer struct {
	Status, Message string
	Stale           bool
	Feeds           map[string]int
}

// TestAccountShowsWhyItIsNotReady follows an account from Ready over Partial and Denied to
// Orphaned.
func TestAccountShowsWhyItIsNotReady(t *testing.T) {
	world := shopWorld(t)
	world.Account("a", "nodes", "pods")
	world.Fleet.Connect("a")
	w := serve(t, configOf(world))
	expect := func(step, status string, stale bool, message string, feeds map[string]int) {
		t.Helper()
		got := getJSON[accountAnswer](w, "/accounts/a")
		if got.Status != status || got.Stale != stale || !strings.Contains(got.Message, message) || (message == "") != (got.Message == "") {
			t.Errorf("%s: got %+v, want %s, stale %v, with %q", step, got, status, stale, message)
		}
		for state, n := range feeds {
			if got.Feeds[state] != n {
				t.Errorf("%s: got feeds %v, want %v", step, got.Feeds, feeds)
			}
		}
	}
	expect("at first", "Ready", false, "", map[string]int{"live": 2})
	world.SetFeedState("a", vedette.Kind{Name: "Pod"}, vedette.FeedDenied, "RBAC says no")
	expect("one feed is denied", "Partial", false, "the cluster denies 1 of 2 feeds (Pod): RBAC says no", map[string]int{"live": 1, "denied": 1})
	world.SetFeedState("a", vedette.Kind{Name: "Node"}, vedette.FeedDenied, "RBAC says no")
	expect("all feeds are denied", "Denied", true, "the cluster denies 2 of 2 feeds (Node, Pod)", map[string]int{"live": 0, "denied": 2})
	world.SetFeedState("a", vedette.Kind{Name: "Node"}, vedette.FeedLive, "")
	world.SetFeedState("a", vedette.Kind{Name: "Pod"}, vedette.FeedLive, "")
	world.Fleet.SetAgents(api.Agent{ID: "agent-a", Accounts: []api.AgentAccount{{Name: "a", Role: api.Cacher, Message: "no kind Podd", ErrorKind: vedette.Invalid}}})
	expect("a kind is misspelt", "Partial", false, "no kind Podd", map[string]int{"live": 2})
	stalled := api.AgentAccount{Name: "a", Role: api.Cacher, Message: "the disk is full", Stalled: true}
	world.Fleet.SetAgents(api.Agent{ID: "agent-a", Accounts: []api.AgentAccount{stalled}})
	expect("the database cannot store changes", "Stale", true, "the disk is full", map[string]int{"live": 2})
	stalled.Stalled, stalled.Message = false, ""
	world.Fleet.SetAgents(api.Agent{ID: "agent-a", Accounts: []api.AgentAccount{stalled}})
	expect("the database stores changes again", "Ready", false, "", map[string]int{"live": 2})
	world.Fleet.Disconnect("a")
	world.Fleet.SetAgents(api.Agent{ID: "agent-a", Accounts: []api.AgentAccount{{Name: "a", Role: api.Reaching, Message: "no such context", ErrorKind: vedette.Invalid}}})
	expect("the agent cannot reach the cluster", "Orphaned", true, "agent agent-a: no such context", map[string]int{"live": 0, "stale": 2})
}

// TestAccountShowsWhoAnswersForIt checks an account of which nothing is stored yet, with and without a Clouddriver behind the server.
func TestAccountShowsWhoAnswersForIt(t *testing.T) {
	world := shopWorld(t)
	if _, err := world.Store.Register(t.Context(), vedette.Account{Name: "new", Cluster: vedette.Cluster{UID: "new"}}); err != nil {
		t.Fatal(err)
	}
	world.Account("whole", "pods")
	for _, hasUpstream := range []bool{true, false} {
		cfg := configOf(world)
		cfg.HasUpstream = hasUpstream
		w := serve(t, cfg)
		const want = "the Clouddriver at upstream.baseUrl answers for this account if it has it: its agent has not reported yet which kinds it caches"
		if got := getJSON[accountAnswer](w, "/accounts/new"); strings.Contains(got.Message, want) != hasUpstream {
			t.Errorf("got %q, want it to say that the Clouddriver behind the server answers: %t", got.Message, hasUpstream)
		}
		if got := getJSON[accountAnswer](w, "/accounts/whole"); strings.Contains(got.Message, "upstream") {
			t.Errorf("got %q, want nothing about a Clouddriver", got.Message)
		}
	}
}
