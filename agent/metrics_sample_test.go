package agent

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
)

// TestMetricsOfAgent checks the metrics of an agent that reaches neither its server nor its cluster.
func TestMetricsOfAgent(t *testing.T) {
	a := newAgent(t)
	response := httptest.NewRecorder()
	a.cfg.Metrics.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		"vedette_agent_connected 0", `vedette_agent_accounts{state="reaching"} 1`, `vedette_agent_accounts{state="reporting"} 0`,
		`vedette_agent_feeds{state="live"} 0`, "vedette_agent_outbox_bytes 0", "vedette_agent_outbox_limit_bytes 8.388608e+06",
		"vedette_agent_operations_running 0", "vedette_agent_snapshots_limit 8", "vedette_agent_watches 0",
		"kubesvc_resource_agent_total 0", "kubesvc_watches 0", "kubesvc_connection_count 0",
	} {
		if !strings.Contains(response.Body.String(), "\n"+line+"\n") {
			t.Errorf("got no line %q in\n%s", line, response.Body)
		}
	}
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
