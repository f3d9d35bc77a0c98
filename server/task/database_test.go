package task_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/task"
)

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "vedette.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// awaitEnd waits until a task has ended.
func (s *testServer) awaitEnd(t *testing.T, id string) taskView {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if v := s.getTask(t, id); v.Status.Completed {
			return v
		}
	}
	t.Fatalf("task %s has not ended: %+v", id, s.getTask(t, id))
	return taskView{}
}

// TestConcurrentSubmitsOnDatabase submits requests concurrently, some of them twice, to two
// servers with one database.
func TestConcurrentSubmitsOnDatabase(t *testing.T) {
	const n = 200
	db := openStore(t)
	wait := time.Minute // for running tasks, also on a slow machine
	servers := []*testServer{newServer(task.Config{Store: db, ShutdownTimeout: wait}),
		newServer(task.Config{Store: db, Server: "vedette-1", ShutdownTimeout: wait})}
	ids := make([][2]string, n)
	var posts sync.WaitGroup
	for i := range n {
		for k, s := range servers {
			posts.Go(func() { ids[i][k] = s.post(t, fmt.Sprintf("/kubernetes/ops?clientRequestId=%d", i), deployThree) })
		}
	}
	posts.Wait()
	for _, s := range servers {
		s.startHousekeeping(t)() // waits for running tasks
	}
	for i, id := range ids {
		if id[0] != id[1] {
			t.Errorf("request %d: got task %s and task %s, want one task", i, id[0], id[1])
		}
		if v := servers[i%2].getTask(t, id[0]); !v.Status.Completed || v.Status.Failed || len(v.ResultObjects) != 1 ||
			fmt.Sprint(v.ResultObjects[0].ManifestNamesByNamespace) != "map[shop:[service a service b service c]]" {
			t.Errorf("got %+v", v)
		}
	}
	if operations := servers[0].cluster.count() + servers[1].cluster.count(); operations != 3*n {
		t.Errorf("got %d operations for %d tasks of three", operations, n)
	}
}

// TestTaskOfCrashedServerOnDatabase is TestTaskOfCrashedServerIsEnded with a real database and real time.
func TestTaskOfCrashedServerOnDatabase(t *testing.T) {
	db := openStore(t)
	crashed := newServer(task.Config{Store: db})
	other := newServer(task.Config{Store: db, Server: "vedette-1", AbandonAfter: 30 * time.Millisecond})
	release, reached := make(chan struct{}), make(chan struct{}, 3)
	crashed.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
		reached <- struct{}{}
		if crashed.cluster.count() == 2 {
			<-release
		}
		return doneOutcome(op)
	}
	id := crashed.post(t, "/kubernetes/ops?clientRequestId=1", deployThree)
	<-reached
	<-reached
	other.startHousekeeping(t)
	v := other.awaitEnd(t, id)
	if !v.Status.Failed || !strings.Contains(v.Status.Status, "Done so far: Deploy manifest task completed successfully for manifest service a") {
		t.Errorf("got %+v", v.Status)
	}
	close(release)
	crashed.startHousekeeping(t)() // waits until it noticed
	if later := other.getTask(t, id); fmt.Sprint(later) != fmt.Sprint(v) || crashed.cluster.count() != 2 {
		t.Errorf("after %d operations: got %+v", crashed.cluster.count(), later)
	}
	if second := other.post(t, "/kubernetes/ops?clientRequestId=1", deployThree); second != id || other.cluster.count() != 0 {
		t.Errorf("got task %s and %d operations", second, other.cluster.count())
	}
}

// TestCancelAndRestartOnDatabase is TestCancelAndRestart with a real database.
func TestCancelAndRestartOnDatabase(t *testing.T) {
	db := openStore(t)
	s, other := newServer(task.Config{Store: db}), newServer(task.Config{Store: db, Server: "vedette-1"})
	s.cluster.do = waitUntilCanceled
	id := s.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
	if code, response := s.request(t, "PATCH", "/kubernetes/task/"+id, `{"retry":true}`); code != http.StatusOK {
		t.Fatalf("got %d %s, want %d", code, response, http.StatusOK)
	}
	if second := other.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb); second != id {
		t.Errorf("got task %s, want %s", second, id)
	}
	v := other.awaitEnd(t, id)
	if v.Status.Failed || len(v.ResultObjects) != 0 || !strings.Contains(fmt.Sprint(v.History), "Re-initializing Orchestration Task (failure is retryable)") {
		t.Errorf("got %+v", v)
	}
	if code, response := s.request(t, "PATCH", "/kubernetes/task/"+id, `{"retry":true}`); code != http.StatusConflict || !strings.Contains(response, "has ended already, as succeeded") {
		t.Errorf("got %d %s, want %d and %q", code, response, http.StatusConflict, "has ended already, as succeeded")
	}
}
