package metrics

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/internal/metricset/metricstest"
)

func TestLabelsOfKinds(t *testing.T) {
	for kind, want := range map[vedette.Kind]string{
		{Name: "Pod"}:                                 "Pod core",
		{Group: "apps", Name: "Deployment"}:           "Deployment apps",
		{Group: "batch", Name: "CronJob"}:             "CronJob batch",
		{Group: "networking.k8s.io", Name: "Ingress"}: "Ingress networking.k8s.io",
		{Group: "stable.example.com", Name: "Pod"}:    "other other",
		{Group: "nodots", Name: "Deployment"}:         "other other",
		{Group: "apps", Name: "Invented"}:             "other apps",
		{}:                                            "other core",
	} {
		if got := kindLabel(kind) + " " + groupLabel(kind); got != want {
			t.Errorf("%v: got %s, want %s", kind, got, want)
		}
	}
}

// TestSentCountsObjects checks that changes of objects count, and bookmarks, snapshots' ends and
// declarations do not.
func TestSentCountsObjects(t *testing.T) {
	m := New("v1")
	pods, crontabs := vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}, vedette.Feed{Kind: vedette.Kind{Group: "x.example.com", Name: "CronTab"}}
	m.Sent([]outbox.Change{
		{Feed: pods, Priority: outbox.Live, Key: "default/a", Record: make([]byte, 100)},
		{Feed: pods, Priority: outbox.Bulk, Key: "default/b", Record: make([]byte, 200)},
		{Feed: crontabs, Priority: outbox.Live, Key: "default/c", Record: make([]byte, 50)},
		{Feed: pods, Priority: outbox.Live, Key: "\x00bookmark", Record: make([]byte, 1000)},
		{Feed: pods, Priority: outbox.Bulk, Record: make([]byte, 1000)},
		{Priority: outbox.Control, Key: "declare", Record: make([]byte, 1000)},
	}, 77)
	m.Sent(nil, 3) // a heartbeat
	metricstest.WantLines(t, m, `kubesvc_events_sent_total{event_kind="Pod"} 2`, `kubesvc_events_sent_total{event_kind="other"} 1`,
		`kubesvc_events_bytes_sent_total{event_group="core"} 300`, `kubesvc_events_bytes_sent_total{event_group="other"} 50`,
		`vedette_agent_changes_sent_total{group="core",priority="bulk"} 1`,
		`vedette_agent_changes_sent_bytes_total{group="core",priority="live"} 100`, "vedette_agent_sent_bytes_total 80")
}

func TestConnectionsAndFailuresAreCounted(t *testing.T) {
	m := New("v1")
	m.Disconnected("Unavailable", false)
	m.Connected()
	m.Disconnected("drain", true)
	m.Connected()
	metricstest.WantLines(t, m, "kubesvc_connection_count 2", "kubesvc_disconnection_count 1", "kubesvc_disconnection_total 1",
		"vedette_agent_connections_total 2", `vedette_agent_disconnections_total{reason="drain"} 1`,
		`vedette_agent_connect_failures_total{reason="Unavailable"} 1`)
}

func TestRequestsAndOperations(t *testing.T) {
	m := New("v1")
	m.RequestAnswered("list", 200, 30*time.Millisecond)
	m.RequestAnswered("watch", 0, time.Second)
	m.RequestAnswered("get", 987, time.Second)
	m.OperationEnded(vedette.VerbScale, vedette.Failed, 3*time.Second)
	metricstest.WantLines(t, m, "kubesvc_kubernetes_requests 3", `vedette_agent_kubernetes_requests_total{code="200",verb="list"} 1`,
		`vedette_agent_kubernetes_requests_total{code="none",verb="watch"} 1`, `vedette_agent_kubernetes_requests_total{code="other",verb="get"} 1`,
		`vedette_agent_kubernetes_request_duration_seconds_bucket{verb="list",le="0.05"} 1`,
		`vedette_agent_operations_total{result="failed",verb="scale"} 1`, `vedette_agent_operation_duration_seconds_sum{verb="scale"} 3`)
}
