// Package metrics declares the metrics of an agent: those of the predecessor, whose names its
// dashboards use, and Vedette's own.
//
// No label names a namespace or an object, no label has a value that a cluster chooses, and only
// metrics that are off by default name accounts.
package metrics

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/internal/metricset"
)

// Metrics measures one agent. It is safe for concurrent use.
type Metrics struct {
	*metricset.Set
	*metricset.ConfigMetrics
	*metricset.FileMetrics
	State    State
	Accounts AccountState

	predecessor              predecessor
	connections              *prometheus.CounterVec
	disconnections           *prometheus.CounterVec
	connectFailures          *prometheus.CounterVec
	changesSent, bytesOfSent *prometheus.CounterVec
	wireBytes                *prometheus.CounterVec
	snapshots                *prometheus.CounterVec
	operations               *prometheus.CounterVec
	operationDuration        *prometheus.HistogramVec
	requests                 *prometheus.CounterVec
	requestDuration          *prometheus.HistogramVec
}

// predecessor has the metrics of the predecessor that count.
type predecessor struct {
	connections, disconnections, disconnectionCount *prometheus.CounterVec
	events, eventBytes                              *prometheus.CounterVec
	requests                                        *prometheus.CounterVec
}

// State has the metrics that are read for each scrape.
type State struct {
	Connected                                *metricset.Sampled
	Accounts, AccountErrors, Feeds           *metricset.Sampled
	OldCredentials, EndingCredentials        *metricset.Sampled
	Watches, Snapshots, SnapshotLimit        *metricset.Sampled
	OutboxBytes, OutboxLimit, OutboxUnacked  *metricset.Sampled
	OutboxAge                                *metricset.Sampled
	OperationsRunning                        *metricset.Sampled
	PredecessorResources, PredecessorWatches *metricset.Sampled
}

// New returns the metrics of an agent of a version.
func New(version string) *Metrics {
	m := &Metrics{Set: metricset.New()}
	build := m.Gauge("vedette_agent_build_info", "Always 1; the labels say which version runs.", "version", "go_version")
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.addPredecessor()
	m.addConnection()
	m.addFeeds()
	m.addAccounts()
	m.addOperations()
	m.addRequests()
	m.ConfigMetrics = metricset.NewConfigMetrics(m.Set, "vedette_agent")
	m.FileMetrics = metricset.NewFileMetrics(m.Set, "vedette_agent")
	m.beginWithZero()
	return m
}

func (m *Metrics) addPredecessor() {
	m.predecessor = predecessor{
		connections:        m.Counter("kubesvc_connection_count", "Connections to the server that were established."),
		disconnections:     m.Counter("kubesvc_disconnection_total", "Established connections to the server that ended."),
		disconnectionCount: m.Counter("kubesvc_disconnection_count", "The same as kubesvc_disconnection_total: the name in the predecessor's dashboard."),
		events: m.Counter("kubesvc_events_sent_total",
			"Changes of objects that were sent to the server. The label is a kind of Kubernetes, or other.", "event_kind"),
		eventBytes: m.Counter("kubesvc_events_bytes_sent_total",
			"Bytes of changes of objects that were sent, before compression. The label is an API group of Kubernetes, core or other.", "event_group"),
		requests: m.Counter("kubesvc_kubernetes_requests", "Requests to API servers."),
	}
	m.State.PredecessorResources = m.SampledGauge("kubesvc_resource_agent_total", "Feeds: the kinds that are watched, counted for each account.")
	m.State.PredecessorWatches = m.SampledGauge("kubesvc_watches", "Watches that are open at API servers.")
}

func (m *Metrics) addConnection() {
	m.State.Connected = m.SampledGauge("vedette_agent_connected", "1 while the agent is connected to a server, otherwise 0.")
	m.connections = m.Counter("vedette_agent_connections_total", "Connections to the server that were established.")
	m.disconnections = m.Counter("vedette_agent_disconnections_total",
		"Established connections that ended. reason is drain (the server asked for it), heartbeat (the server was silent), closed, stopped or a gRPC code.", "reason")
	m.connectFailures = m.Counter("vedette_agent_connect_failures_total",
		"Attempts to connect that failed. reason is handshake (the server sent nothing), drain (it asked at once to connect again), stopped or a gRPC code.", "reason")
	m.wireBytes = m.Counter("vedette_agent_sent_bytes_total", "Bytes of changes that were sent to the server, after compression.")
	m.State.OutboxBytes = m.SampledGauge("vedette_agent_outbox_bytes", "Memory of changes that the server has not acknowledged.")
	m.State.OutboxLimit = m.SampledGauge("vedette_agent_outbox_limit_bytes",
		"Limit of vedette_agent_outbox_bytes (outbox.maxBytes). Near it, the agent reads no faster than the server stores.")
	m.State.OutboxUnacked = m.SampledGauge("vedette_agent_outbox_unacknowledged_bytes",
		"The part of vedette_agent_outbox_bytes that was sent.")
	m.State.OutboxAge = m.SampledGauge("vedette_agent_outbox_oldest_seconds",
		"How long the oldest change that was not sent has waited; 0 if none waits. Changes of snapshots do not count.")
}

func (m *Metrics) addFeeds() {
	m.State.Accounts = m.SampledGauge("vedette_agent_accounts",
		"Accounts by state: reaching (the cluster does not answer), registered, reporting, standby or refused.", "state")
	m.State.OldCredentials = m.SampledGauge("vedette_agent_accounts_with_old_credentials",
		"Accounts whose changed credentials cannot be used, so that the old ones stay in use until they expire.")
	m.State.EndingCredentials = m.SampledGauge("vedette_agent_accounts_with_ending_credentials",
		"Accounts whose client certificate or token ends soon, or has ended: a tenth of its lifetime is left, and at most a week.")
	m.State.AccountErrors = m.SampledGauge("vedette_agent_account_errors", "Accounts with an error, in any state.")
	m.State.Feeds = m.SampledGauge("vedette_agent_feeds",
		"Feeds of reporting accounts by state: pending, syncing, live, failing or denied.", "state")
	m.State.Watches = m.SampledGauge("vedette_agent_watches", "Watches that are open at API servers.")
	m.State.Snapshots = m.SampledGauge("vedette_agent_snapshots_running", "Feeds that read a snapshot now.")
	m.State.SnapshotLimit = m.SampledGauge("vedette_agent_snapshots_limit", "How many feeds may read a snapshot at a time.")
	m.snapshots = m.Counter("vedette_agent_snapshots_total", "Snapshots that began: complete listings of a feed.")
	m.changesSent = m.Counter("vedette_agent_changes_sent_total",
		"Changes of objects that were sent. group is an API group of Kubernetes, core or other; priority is live, or bulk for snapshots.",
		"group", "priority")
	m.bytesOfSent = m.Counter("vedette_agent_changes_sent_bytes_total", "Bytes of changes of objects that were sent, before compression. The labels are those of vedette_agent_changes_sent_total.", "group", "priority")
}

func (m *Metrics) addOperations() {
	m.operations = m.Counter("vedette_agent_operations_total", "Operations by verb and result: done, failed or lost.", "verb", "result")
	m.operationDuration = m.Histogram("vedette_agent_operation_duration_seconds",
		"Time of operations in the agent, until their outcome. Logs count until they begin.", metricset.LatencyBounds(), "verb")
	m.State.OperationsRunning = m.SampledGauge("vedette_agent_operations_running", "Operations without an outcome.")
}

func (m *Metrics) addRequests() {
	m.requests = m.Counter("vedette_agent_kubernetes_requests_total",
		"Requests to API servers by verb (get, list, watch, create, update, patch, delete) and status; none if there was no answer. "+
			"Only lists of feeds count as list, page by page; discovery counts as get.", "verb", "code")
	m.requestDuration = m.Histogram("vedette_agent_kubernetes_request_duration_seconds",
		"Time until an API server began its answer.", metricset.LatencyBounds(), "verb")
}

// beginWithZero creates the series that can be known, because rate and increase do not see a series'
// first value: the first lost operation would not raise an alert.
func (m *Metrics) beginWithZero() {
	for _, reason := range []string{"drain", "heartbeat", "closed", "stopped", "Unavailable"} {
		m.disconnections.WithLabelValues(reason)
	}
	for _, reason := range []string{"handshake", "drain", "Unavailable", "Unauthenticated", "PermissionDenied"} {
		m.connectFailures.WithLabelValues(reason)
	}
	for _, v := range vedette.Verbs() {
		for _, result := range []vedette.OutcomeState{vedette.Done, vedette.Failed, vedette.Lost} {
			m.operations.WithLabelValues(string(v.Verb), string(result))
		}
	}
}

// Connected counts an established connection. Connected, Disconnected and Sent are for the uplink.
func (m *Metrics) Connected() {
	m.connections.WithLabelValues().Inc()
	m.predecessor.connections.WithLabelValues().Inc()
}

// Disconnected counts a connection that ended, or that was not established.
func (m *Metrics) Disconnected(reason string, wasEstablished bool) {
	if !wasEstablished {
		m.connectFailures.WithLabelValues(reason).Inc()
		return
	}
	m.disconnections.WithLabelValues(reason).Inc()
	m.predecessor.disconnections.WithLabelValues().Inc()
	m.predecessor.disconnectionCount.WithLabelValues().Inc()
}

// Sent counts what was sent to the server: changes, in so many bytes.
func (m *Metrics) Sent(changes []outbox.Change, wireBytes int) {
	m.wireBytes.WithLabelValues().Add(float64(wireBytes))
	for i := range changes {
		c := &changes[i]
		if concernsObject(c) {
			m.changeSent(c)
		}
	}
}

// concernsObject reports whether a change is about one object, not about its feed or account. Keys
// of other changes are empty or begin with a zero byte.
func concernsObject(c *outbox.Change) bool {
	return c.Priority != outbox.Control && c.Key != "" && c.Key[0] != 0
}

func (m *Metrics) changeSent(c *outbox.Change) {
	kind := kindLabel(c.Feed.Kind)
	group := groupLabel(c.Feed.Kind)
	priority := priorityLabel(c.Priority)
	size := float64(len(c.Record))
	m.predecessor.events.WithLabelValues(kind).Inc()
	m.predecessor.eventBytes.WithLabelValues(group).Add(size)
	m.changesSent.WithLabelValues(group, priority).Inc()
	m.bytesOfSent.WithLabelValues(group, priority).Add(size)
}

// SnapshotBegan counts a snapshot.
func (m *Metrics) SnapshotBegan() { m.snapshots.WithLabelValues().Inc() }

// OperationEnded counts an operation.
func (m *Metrics) OperationEnded(verb vedette.Verb, state vedette.OutcomeState, took time.Duration) {
	m.operations.WithLabelValues(string(verb), string(state)).Inc()
	m.operationDuration.WithLabelValues(string(verb)).Observe(took.Seconds())
}

// RequestAnswered counts a request to an API server. The code is 0 if there was no answer.
func (m *Metrics) RequestAnswered(verb string, code int, took time.Duration) {
	m.requests.WithLabelValues(verb, metricset.StatusCode(code)).Inc()
	m.requestDuration.WithLabelValues(verb).Observe(took.Seconds())
	m.predecessor.requests.WithLabelValues().Inc()
}

func priorityLabel(p outbox.Priority) string {
	if p == outbox.Bulk {
		return "bulk"
	}
	return "live"
}
