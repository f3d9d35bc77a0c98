package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/metricset/metricstest"
	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/tasks"
)

func TestRequestsAreCountedByRoute(t *testing.T) {
	m := metrics.New("v1")
	m.RequestEnded(middleware.Measurement{Route: "GET /credentials", Status: 200, Took: 3 * time.Millisecond})
	m.RequestEnded(middleware.Measurement{Status: 404})
	m.RequestEnded(middleware.Measurement{Route: "passed on", Status: 799})
	metricstest.WantLines(t, m, `vedette_server_http_requests_total{code="200",route="GET /credentials"} 1`,
		`vedette_server_http_requests_total{code="404",route="unmatched"} 1`, `vedette_server_http_requests_total{code="other",route="passed on"} 1`,
		`vedette_server_http_request_duration_seconds_bucket{route="GET /credentials",le="0.005"} 1`)
}

// batches is a store of which every second batch fails.
type batches struct {
	*store.Store
	n int
}

func (b *batches) Commit(context.Context, commit.Batch) ([]commit.Change, error) {
	b.n++
	if b.n%2 == 0 {
		return nil, errors.New("the disk is full")
	}
	return []commit.Change{{Type: commit.Added}}, nil
}

func TestBatchesAndObjectsAreCounted(t *testing.T) {
	m := metrics.New("v1")
	st := m.MeasureIngest(&batches{})
	batch := commit.Batch{Upserts: []vedette.Object{{Body: make([]byte, 100)}, {Body: make([]byte, 11)}}, Deletes: make([]commit.Deletion, 3),
		Drops: []commit.Drop{{Digests: make([]uint64, 4)}, {Digests: make([]uint64, 1)}}}
	changes, err := st.Commit(t.Context(), batch)
	if err != nil || len(changes) != 1 {
		t.Errorf("got %v, %v; want the store's answer", changes, err)
	}
	if _, err := st.Commit(t.Context(), batch); err == nil {
		t.Error("got no error, want the store's")
	}
	metricstest.WantLines(t, m, `vedette_server_ingest_batches_total{result="ok"} 1`, `vedette_server_ingest_batches_total{result="error"} 1`,
		`vedette_server_ingest_objects_total{change="upsert"} 2`, `vedette_server_ingest_objects_total{change="delete"} 3`,
		`vedette_server_ingest_objects_total{change="drop"} 5`, "vedette_server_ingest_bytes_total 111",
		"vedette_server_ingest_batch_duration_seconds_count 2")
}

type failingDispatcher struct{ m *metrics.Metrics }

func (d failingDispatcher) Execute(context.Context, vedette.Operation) vedette.Outcome {
	return vedette.Outcome{State: vedette.Failed, Status: http.StatusConflict}
}

func TestOperationsAreCountedByVerb(t *testing.T) {
	m := metrics.New("v1")
	out := m.MeasureOperations(failingDispatcher{m}).Execute(t.Context(), vedette.Operation{Args: vedette.ScaleArgs{}})
	if out.Status != http.StatusConflict {
		t.Errorf("got %+v, want the outcome of the dispatcher", out)
	}
	metricstest.WantLines(t, m, `vedette_server_operations_total{result="failed",verb="scale"} 1`, "vedette_server_operations_running 0",
		`vedette_server_operation_duration_seconds_count{verb="scale"} 1`, `kubesvc_ops_processTime_seconds_count{result="failed"} 1`)
}

func TestEventsOfAllPartsAreCounted(t *testing.T) {
	m := metrics.New("v1")
	m.LeaseHeld(true)
	m.TransactionEnded(sqldb.Committed, time.Millisecond)
	m.TaskEnded(tasks.Succeeded, time.Minute)
	m.ViewRead(true)
	m.ViewRead(false)
	m.ReadLimitWaited(time.Second, false)
	metricstest.WantLines(t, m, "vedette_server_lease_held 1", `vedette_server_store_transactions_total{result="committed"} 1`,
		`vedette_server_store_transactions_total{result="unavailable"} 0`, `vedette_server_tasks_total{result="succeeded"} 1`,
		"vedette_server_task_duration_seconds_sum 60", `vedette_server_view_reads_total{result="hit"} 1`,
		`vedette_server_view_reads_total{result="miss"} 1`, `vedette_server_read_limit_waits_total{result="rejected"} 1`)
	m.LeaseHeld(false)
	metricstest.WantLines(t, m, "vedette_server_lease_held 0")
}
