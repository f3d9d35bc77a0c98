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
	"github.com/vedette-io/vedette/server/task"
)

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "vedette.db")})
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

// end waits until a task has ended.
func (s *server) end(t *testing.T, id string) view {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if v := s.task(t, id); v.Status.Completed {
			return v
		}
	}
	t.Fatalf("task %s did not end: %+v", id, s.task(t, id))
	return view{}
}

// TestOnADatabase submits as Orca does, from several sides at once, to two
// servers on one database.
func TestOnADatabase(t *testing.T) {
	const n = 200
	book := openStore(t)
	servers := []*server{newServer(task.Config{Store: book}), newServer(task.Config{Store: book, Server: "vedette-1"})}
	ids := make([][2]string, n)
	var posts sync.WaitGroup
	for i := range n {
		for k, s := range servers {
			posts.Go(func() { ids[i][k] = s.post(t, fmt.Sprintf("/kubernetes/ops?clientRequestId=%d", i), deployThree) })
		}
	}
	posts.Wait()
	for _, s := range servers {
		s.live(t)() // which waits for the tasks that run
	}
	for i, id := range ids {
		if id[0] != id[1] {
			t.Errorf("request %d is task %s and task %s", i, id[0], id[1])
		}
		if v := servers[i%2].task(t, id[0]); !v.Status.Completed || v.Status.Failed || len(v.ResultObjects) != 1 ||
			fmt.Sprint(v.ResultObjects[0].ManifestNamesByNamespace) != "map[shop:[service a service b service c]]" {
			t.Errorf("%+v", v)
		}
	}
	if did := servers[0].cluster.count() + servers[1].cluster.count(); did != 3*n {
		t.Errorf("%d operations for %d tasks of three", did, n)
	}
}

// TestServerDiesOnADatabase is TestServerDies with a real database and real time.
func TestServerDiesOnADatabase(t *testing.T) {
	book := openStore(t)
	dead := newServer(task.Config{Store: book})
	other := newServer(task.Config{Store: book, Server: "vedette-1", AbandonAfter: 30 * time.Millisecond})
	release, reached := make(chan struct{}), make(chan struct{}, 3)
	dead.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
		reached <- struct{}{}
		if dead.cluster.count() == 2 {
			<-release
		}
		return done(op)
	}
	id := dead.post(t, "/kubernetes/ops?clientRequestId=1", deployThree)
	<-reached
	<-reached
	other.live(t)
	v := other.end(t, id)
	if !v.Status.Failed || !strings.Contains(v.Status.Status, "Done so far: Deploy manifest task completed successfully for manifest service a") {
		t.Errorf("%+v", v.Status)
	}
	close(release)
	dead.live(t)() // which waits until it has noticed
	if again := other.task(t, id); fmt.Sprint(again) != fmt.Sprint(v) || dead.cluster.count() != 2 {
		t.Errorf("after %d operations: %+v", dead.cluster.count(), again)
	}
	if again := other.post(t, "/kubernetes/ops?clientRequestId=1", deployThree); again != id || other.cluster.count() != 0 {
		t.Errorf("task %s, %d operations", again, other.cluster.count())
	}
}

// TestRetryOnADatabase is TestRetry with a real database.
func TestRetryOnADatabase(t *testing.T) {
	book := openStore(t)
	s, other := newServer(task.Config{Store: book}), newServer(task.Config{Store: book, Server: "vedette-1"})
	s.cluster.do = hang
	id := s.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
	if code, answer := s.ask(t, "PATCH", "/kubernetes/task/"+id, `{"retry":true}`); code != http.StatusOK {
		t.Fatalf("%d %s", code, answer)
	}
	if again := other.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb); again != id {
		t.Errorf("task %s after %s", again, id)
	}
	v := other.end(t, id)
	if v.Status.Failed || len(v.ResultObjects) != 0 || !strings.Contains(fmt.Sprint(v.History), "Re-initializing Orchestration Task (failure is retryable)") {
		t.Errorf("%+v", v)
	}
	if code, answer := s.ask(t, "PATCH", "/kubernetes/task/"+id, `{"retry":true}`); code != http.StatusConflict || !strings.Contains(answer, "has ended already, as succeeded") {
		t.Errorf("%d %s", code, answer)
	}
}
