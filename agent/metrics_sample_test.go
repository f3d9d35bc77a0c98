package agent

import (
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/internal/metricset/metricstest"
)

// TestMetricsOfAgent checks the metrics of an agent that reaches neither its server nor its cluster.
func TestMetricsOfAgent(t *testing.T) {
	metricstest.WantLines(t, newAgent(t).cfg.Metrics, "vedette_agent_connected 0", `vedette_agent_accounts{state="reaching"} 1`,
		`vedette_agent_accounts{state="reporting"} 0`, `vedette_agent_feeds{state="live"} 0`, "vedette_agent_outbox_bytes 0",
		"vedette_agent_outbox_limit_bytes 8.388608e+06", "vedette_agent_operations_running 0", "vedette_agent_snapshots_limit 8",
		"vedette_agent_watches 0", "kubesvc_resource_agent_total 0", "kubesvc_watches 0", "kubesvc_connection_count 0", "no prod")
}

// TestMetricsByAccount checks that the first accounts by name have metrics of their own, that the number
// of the others is shown, and that an account that has gone has no metrics anymore.
func TestMetricsByAccount(t *testing.T) {
	a := newAgent(t)
	a.cfg.Metrics.Accounts.Limit = 2
	for _, name := range []vedette.AccountName{"b", "c", "a\xff"} {
		a.accounts.put(newAccount(a, Account{Name: name}))
	}
	a.accounts.get("b").setState("reaching", vedette.Errorf(vedette.Unavailable, "10.1.2.3 does not answer"))
	metricstest.WantLines(t, a.cfg.Metrics, `vedette_agent_account_state{account="b",state="reaching"} 1`, `vedette_agent_account_error{account="b"} 1`,
		`vedette_agent_account_error{account="c"} 0`, `vedette_agent_account_watches{account="c"} 0`,
		`vedette_agent_account_feeds{account="c",state="live"} 0`, `no account="prod"`, `no account="a`, "vedette_agent_accounts_without_metrics 2")
	a.accounts.remove("b")
	metricstest.WantLines(t, a.cfg.Metrics, `no account="b"`, `vedette_agent_account_state{account="prod",state="reaching"} 1`,
		"vedette_agent_accounts_without_metrics 1")
}

func TestFeedsAreCountedByState(t *testing.T) {
	box := outbox.New(1 << 20)
	feeds := &feedAnnouncements{box: box, account: "a"}
	pods, jobs, nodes := vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}, vedette.Feed{Kind: vedette.Kind{Name: "Job"}}, vedette.Feed{Kind: vedette.Kind{Name: "Node"}}
	want := func(step string, states map[vedette.FeedState]int) {
		t.Helper()
		got := map[vedette.FeedState]int{}
		feeds.countStates(got)
		for _, state := range feedStates {
			if got[state] != states[state] {
				t.Errorf("%s: got %v, want %v", step, got, states)
			}
		}
	}
	want("nothing is declared", nil)
	if err := feeds.declare(t.Context(), map[vedette.Feed]bool{pods: true, jobs: true, nodes: true}, []byte("d")); err != nil {
		t.Fatal(err)
	}
	want("declared", map[vedette.FeedState]int{vedette.FeedPending: 3})
	for feed, state := range map[vedette.Feed]vedette.FeedState{pods: vedette.FeedLive, jobs: vedette.FeedDenied} {
		if err := feeds.setStatus(t.Context(), feed, state, []byte("s")); err != nil {
			t.Fatal(err)
		}
	}
	want("two have a status", map[vedette.FeedState]int{vedette.FeedLive: 1, vedette.FeedDenied: 1, vedette.FeedPending: 1})
	if err := feeds.declare(t.Context(), map[vedette.Feed]bool{pods: true}, []byte("d")); err != nil {
		t.Fatal(err)
	}
	want("two are gone", map[vedette.FeedState]int{vedette.FeedLive: 1})
}
