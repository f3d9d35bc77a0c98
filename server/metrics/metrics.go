// Package metrics declares the metrics of a server.
//
// No label names a namespace, an object or a user, no label has a value that an upstream or a caller
// chooses, and only metrics that are off by default name accounts.
package metrics

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/metricset"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// Metrics measures one server. It is safe for concurrent use.
type Metrics struct {
	*metricset.Set
	*metricset.ConfigMetrics
	*metricset.FileMetrics
	State    State
	Fleet    Fleet
	Accounts Accounts

	leaseHeld        *prometheus.GaugeVec
	ingest           ingestMetrics
	transactions     *prometheus.CounterVec
	transactionTime  *prometheus.HistogramVec
	replicaReads     *prometheus.CounterVec
	requests         *prometheus.CounterVec
	requestTime      *prometheus.HistogramVec
	operations       *prometheus.CounterVec
	operationTime    *prometheus.HistogramVec
	predecessorTime  *prometheus.HistogramVec
	forwarded        *prometheus.CounterVec
	forwardTime      *prometheus.HistogramVec
	operationsActive *prometheus.GaugeVec
	tasks            *prometheus.CounterVec
	taskTime         *prometheus.HistogramVec
	viewReads        *prometheus.CounterVec
	memoryWaits      *prometheus.CounterVec
	memoryWaitTime   *prometheus.HistogramVec
}

// ingestMetrics has the metrics of what agents report.
type ingestMetrics struct {
	objects, bytes, batches *prometheus.CounterVec
	duration                *prometheus.HistogramVec
}

// State has the metrics that are read for each scrape, from memory.
type State struct {
	Ready, Agents, Accounts, FreshnessAge                                              *metricset.Sampled
	CacherChanges                                                                      *metricset.Sampled
	Drift, RestoredFeeds                                                               *metricset.Sampled
	Omitted                                                                            *metricset.Sampled
	PoolOpen, PoolInUse, PoolLimit                                                     *metricset.Sampled
	PoolWaits, PoolWaitTime                                                            *metricset.Sampled
	ShardAnswers, ShardWritable                                                        *metricset.Sampled
	WriteProblem, DiskFree, DiskSize                                                   *metricset.Sampled
	TasksRunning                                                                       *metricset.Sampled
	PeerConnections                                                                    *metricset.Sampled
	UpstreamRequests, UpstreamFailures, UpstreamTime, UpstreamLastAnswers, UpstreamAge *metricset.Sampled
}

// Fleet has the metrics that are read from the database at long intervals.
type Fleet struct {
	Accounts, Feeds, Objects *prometheus.GaugeVec
}

// New returns the metrics of a server of a version.
func New(version string) *Metrics {
	m := &Metrics{Set: metricset.New()}
	m.Gauge("vedette_server_build_info", "Always 1; the labels say which version runs.", "version", "go_version").
		WithLabelValues(version, runtime.Version()).Set(1)
	m.ConfigMetrics = metricset.NewConfigMetrics(m.Set, "vedette_server")
	m.FileMetrics = metricset.NewFileMetrics(m.Set, "vedette_server")
	m.addFleet()
	m.addAccounts()
	m.addIngest()
	m.addStore()
	m.addREST()
	m.addOperations()
	m.addUpstream()
	return m
}

func (m *Metrics) addFleet() {
	m.State.Ready = m.SampledGauge("vedette_server_ready", "1 while the server is ready, as /health/readiness says, otherwise 0.")
	m.State.Agents = m.SampledGauge("vedette_server_agents", "Agents that are connected to this server.")
	m.State.Accounts = m.SampledGauge("vedette_server_accounts",
		"Accounts by state. reported: an agent reports it; failing: one does, with an error; stalled: its changes wait for the database; "+
			"orphaned: no agent reports it at present; refused and unreachable: of one agent, another one may report it.", "state")
	m.State.FreshnessAge = m.SampledGauge("vedette_server_freshness_oldest_seconds",
		"How far behind its cluster the account is that is furthest behind, among those that an agent reports.")
	m.State.CacherChanges = m.SampledCounter("vedette_server_cacher_changes_total",
		"Accounts of which another agent became the cacher, which reports them, by reason and result (done or failed; what failed is tried again). "+
			"joined: no agent reported the account; left: its agent disconnected, or no longer has it; rejected: its agent's registration or writes were; "+
			"silent: its agent was, for example frozen; balance: moved so that agents share the work; returned: moved back, because it was not up to "+
			"date with the other agent; drained: the server of its agent stops, and gave it away.", "reason", "result")
	const sampled = " Read from the database every 30 s."
	m.Fleet.Accounts = m.Gauge("vedette_server_stored_accounts", "Accounts in the database, with and without an agent."+sampled)
	m.Fleet.Feeds = m.Gauge("vedette_server_feeds", "Feeds by state: pending, syncing, live, failing or denied."+sampled, "state")
	m.Fleet.Objects = m.Gauge("vedette_server_objects", "Objects in the database."+sampled)
}

func (m *Metrics) addIngest() {
	m.ingest = ingestMetrics{
		objects: m.Counter("vedette_server_ingest_objects_total",
			"Changes of objects in batches that agents sent: upsert, delete, or drop for objects that a snapshot no longer has.", "change"),
		bytes:   m.Counter("vedette_server_ingest_bytes_total", "Bytes of the objects in batches that agents sent, before compression."),
		batches: m.Counter("vedette_server_ingest_batches_total", "Batches that agents sent by result: ok or error. Those with an error are tried again, or their agent must register again.", "result"),
		duration: m.Histogram("vedette_server_ingest_batch_duration_seconds",
			"Time that one batch of an account took in the store, waits included.", metricset.LatencyBounds()),
	}
	m.ingest.batches.WithLabelValues("ok")
	m.ingest.batches.WithLabelValues("error")
	m.State.Drift = m.SampledCounter("vedette_server_drift_objects_total",
		"Objects that differed from their cluster, as verifications found, and were read anew: missing in the database, left_over in it, or changed (stored in another version). Any of them is a defect, or the trace of a restored cluster.", "direction")
	m.State.RestoredFeeds = m.SampledCounter("vedette_server_restored_feeds_total",
		"Feeds that were read anew because their cluster was restored to an earlier state, as by a backup of etcd.")
	m.State.Omitted = m.SampledCounter("vedette_server_ingest_omitted_objects_total", "Objects that were left out because the database cannot store them.")
}

func (m *Metrics) addStore() {
	m.leaseHeld = m.Gauge("vedette_server_lease_held", "1 while this server may write to the database, otherwise 0.")
	m.leaseHeld.WithLabelValues().Set(0)
	m.transactions = m.Counter("vedette_server_store_transactions_total",
		"Attempts to write to the database by result: committed, conflict (retried), unavailable, data (it cannot be stored), rejected (by a rule, "+
			"for example for an agent that was replaced), canceled or other.", "result")
	for _, result := range sqldb.TransactionResults() {
		m.transactions.WithLabelValues(string(result))
	}
	m.transactionTime = m.Histogram("vedette_server_store_transaction_duration_seconds",
		"Time of an attempt to write to the database, with the wait for a connection.", metricset.LatencyBounds())
	m.replicaReads = m.Counter("vedette_server_database_replica_reads_total",
		"Reads that a read replica could have answered, by result: replica (it has), behind (none had the last commits in time, so the primary was read) or "+
			"failed (none answered, so the primary was read).", "result")
	for _, result := range sqldb.ReplicaResults {
		m.replicaReads.WithLabelValues(string(result))
	}
	m.State.WriteProblem = m.SampledGauge("vedette_server_database_write_problem",
		"1 while the database takes no writes, by reason: disk_full, or read_only, as after a failover. Otherwise 0.", "reason")
	m.State.DiskFree = m.SampledGauge("vedette_server_database_disk_free_bytes", "Room on the file system of a SQLite database.")
	m.State.DiskSize = m.SampledGauge("vedette_server_database_disk_size_bytes", "Size of the file system of a SQLite database.")
	m.State.ShardAnswers = m.SampledGauge("vedette_server_shard_answers",
		"1 while a database of sql.shards answers, otherwise 0: its accounts can neither be read nor written then.", "shard")
	m.State.ShardWritable = m.SampledGauge("vedette_server_shard_writable",
		"1 while a database of sql.shards takes writes, otherwise 0.", "shard")
	m.State.PoolOpen = m.SampledGauge("vedette_server_database_connections", "Open connections to the database. SQLite has two pools, read and write; others have write only, and one for each database of sql.shards.", "pool")
	m.State.PoolInUse = m.SampledGauge("vedette_server_database_connections_in_use", "Connections to the database that are in use.", "pool")
	m.State.PoolLimit = m.SampledGauge("vedette_server_database_connections_limit",
		"How many connections to the database may be open; 0 for any number.", "pool")
	m.State.PoolWaits = m.SampledCounter("vedette_server_database_connection_waits_total",
		"How often something waited for a connection to the database.", "pool")
	m.State.PoolWaitTime = m.SampledCounter("vedette_server_database_connection_wait_seconds_total",
		"Time of all waits for a connection to the database.", "pool")
}

func (m *Metrics) addREST() {
	m.requests = m.Counter("vedette_server_http_requests_total",
		"REST requests by the pattern of their route and by status. route is unmatched if there is no such path, and `passed on` if the upstream Clouddriver "+
			"answers; code is none if the connection was closed without an answer.", "route", "code")
	m.requestTime = m.Histogram("vedette_server_http_request_duration_seconds", "Time until the response to a REST request began.",
		metricset.LatencyBounds(), "route")
	m.viewReads = m.Counter("vedette_server_view_reads_total",
		"Reads of applications for Spinnaker's views: hit if the application was in memory and current, otherwise miss.", "result")
	m.viewReads.WithLabelValues("hit")
	m.viewReads.WithLabelValues("miss")
	m.memoryWaits = m.Counter("vedette_server_read_limit_waits_total",
		"Requests that waited for response memory (server.readBytes), by whether they got it: granted or rejected.", "result")
	m.memoryWaits.WithLabelValues("granted")
	m.memoryWaits.WithLabelValues("rejected")
	m.memoryWaitTime = m.Histogram("vedette_server_read_limit_wait_seconds", "Time of waits for response memory.", metricset.LatencyBounds())
}

func (m *Metrics) addOperations() {
	m.operations = m.Counter("vedette_server_operations_total", "Operations by verb and result: done, failed or lost.", "verb", "result")
	for _, v := range vedette.Verbs() { // rate and increase do not see a series' first value
		for _, result := range []vedette.OutcomeState{vedette.Done, vedette.Failed, vedette.Lost} {
			m.operations.WithLabelValues(string(v.Verb), string(result))
		}
	}
	m.operationTime = m.Histogram("vedette_server_operation_duration_seconds",
		"Time from acceptance to outcome, with the way to the agent and back.", metricset.LatencyBounds(), "verb")
	m.operationsActive = m.Gauge("vedette_server_operations_running", "Operations without an outcome.")
	m.operationsActive.WithLabelValues().Set(0)
	m.predecessorTime = m.Histogram("kubesvc_ops_processTime_seconds",
		"Time of operations of all verbs, under the name of the predecessor's plugin. result is done, failed or lost, not the text of an error.",
		metricset.LatencyBounds(), "result")
	m.addPeers()
	m.tasks = m.Counter("vedette_server_tasks_total", "Spinnaker's tasks that ended on this server: succeeded, failed, or retryable.", "result")
	for _, state := range []tasks.State{tasks.Succeeded, tasks.Failed, tasks.Retryable} {
		m.tasks.WithLabelValues(string(state))
	}
	m.taskTime = m.Histogram("vedette_server_task_duration_seconds", "Time of Spinnaker's tasks, until they ended.",
		[]float64{0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600})
	m.State.TasksRunning = m.SampledGauge("vedette_server_tasks_running", "Spinnaker's tasks that run on this server.")
}

func (m *Metrics) addPeers() {
	m.forwarded = m.Counter("vedette_server_forwarded_operations_total",
		"Operations that this server sent to another one, to which the agent is connected, by result: done, failed or lost; unsent: the agent did not receive it; "+
			"gone: the agent or the connection is lost; canceled: nobody waits for it any more. An operation may be sent several times.", "result")
	for _, result := range []string{"done", "failed", "lost", "unsent", "gone", "canceled"} {
		m.forwarded.WithLabelValues(result)
	}
	m.forwardTime = m.Histogram("vedette_server_forward_duration_seconds",
		"Time from the sending of an operation to another server to its result.", metricset.LatencyBounds())
	m.State.PeerConnections = m.SampledGauge("vedette_server_peer_connections",
		"Connections between servers. in: from other servers; out: to others.", "direction")
}

// Forwarded counts an operation that was sent to another server.
func (m *Metrics) Forwarded(result string, took time.Duration) {
	m.forwarded.WithLabelValues(result).Inc()
	m.forwardTime.WithLabelValues().Observe(took.Seconds())
}

func (m *Metrics) addUpstream() {
	m.State.UpstreamRequests = m.SampledCounter("vedette_server_upstream_requests_total", "Requests to the Clouddriver behind this server, if there is one.")
	m.State.UpstreamFailures = m.SampledCounter("vedette_server_upstream_failures_total",
		"Requests to the Clouddriver behind this server without a usable answer. reason is timeout, unreachable, cut-off, invalid-answer, too-large, busy, incomplete, loop or a status, as status-502.", "reason")
	m.State.UpstreamTime = m.SampledCounter("vedette_server_upstream_answer_seconds_total",
		"Time until the answers of the Clouddriver behind this server began, all together.")
	m.State.UpstreamLastAnswers = m.SampledCounter("vedette_server_upstream_last_answers_total",
		"Answers that had the last complete part of the Clouddriver behind this server, because it did not give the current one.")
	m.State.UpstreamAge = m.SampledGauge("vedette_server_upstream_answer_age_seconds",
		"Age of the last complete answer of the Clouddriver behind this server to the requests that cannot do without it.", "answer")
}

// LeaseHeld records whether this server may write to the database.
func (m *Metrics) LeaseHeld(held bool) {
	value := 0.0
	if held {
		value = 1
	}
	m.leaseHeld.WithLabelValues().Set(value)
}

// TransactionEnded counts an attempt to write.
func (m *Metrics) TransactionEnded(result sqldb.TransactionResult, took time.Duration) {
	m.transactions.WithLabelValues(string(result)).Inc()
	m.transactionTime.WithLabelValues().Observe(took.Seconds())
}

// ReplicaRead counts a read that a replica could have answered.
func (m *Metrics) ReplicaRead(result sqldb.ReplicaResult) {
	m.replicaReads.WithLabelValues(string(result)).Inc()
}

// RequestEnded counts a REST request.
func (m *Metrics) RequestEnded(r middleware.Measurement) {
	route := r.Route
	if route == "" {
		route = "unmatched"
	}
	m.requests.WithLabelValues(route, metricset.StatusCode(r.Status)).Inc()
	m.requestTime.WithLabelValues(route).Observe(r.Took.Seconds())
}

// TaskEnded counts a task.
func (m *Metrics) TaskEnded(state tasks.State, took time.Duration) {
	m.tasks.WithLabelValues(string(state)).Inc()
	m.taskTime.WithLabelValues().Observe(took.Seconds())
}

// ViewRead counts a read of an application.
func (m *Metrics) ViewRead(cached bool) {
	result := "miss"
	if cached {
		result = "hit"
	}
	m.viewReads.WithLabelValues(result).Inc()
}

// ReadLimitWaited counts a request that waited for response memory.
func (m *Metrics) ReadLimitWaited(waited time.Duration, granted bool) {
	result := "rejected"
	if granted {
		result = "granted"
	}
	m.memoryWaits.WithLabelValues(result).Inc()
	m.memoryWaitTime.WithLabelValues().Observe(waited.Seconds())
}

func (m *Metrics) operationEnded(verb vedette.Verb, state vedette.OutcomeState, took time.Duration) {
	m.operations.WithLabelValues(string(verb), string(state)).Inc()
	m.operationTime.WithLabelValues(string(verb)).Observe(took.Seconds())
	m.predecessorTime.WithLabelValues(string(state)).Observe(took.Seconds())
}
