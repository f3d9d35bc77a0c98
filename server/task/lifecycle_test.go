package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/tasks"
	"github.com/vedette-io/vedette/server/task"
)

// startHousekeeping runs a server's housekeeping until stop is called or the test ends.
func (s *testServer) startHousekeeping(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// waitUntilCanceled blocks operations until their context ends. They are lost then, like those
// of a cluster that never answers.
func waitUntilCanceled(ctx context.Context, op vedette.Operation) vedette.Outcome {
	<-ctx.Done()
	return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: http.StatusGatewayTimeout, Message: "it is unknown whether this took effect: nobody answered"}
}

// TestDuplicateSubmitRunsOnce sends the same request to two servers concurrently. It runs
// once, and both return the same task.
func TestDuplicateSubmitRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryStore()
		a, b := newServer(task.Config{Store: memory}), newServer(task.Config{Store: memory, Server: "vedette-1"})
		first, second := a.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb), b.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
		synctest.Wait()
		third := b.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
		if first != second || first != third || a.cluster.count() != 1 || b.cluster.count() != 0 {
			t.Errorf("got tasks %s, %s and %s with %d and %d operations, want one task", first, second, third, a.cluster.count(), b.cluster.count())
		}
		if v := b.getTask(t, first); !v.Status.Completed || v.Status.Failed {
			t.Errorf("the other server: got %+v", v.Status)
		}
		if one, other := a.post(t, "/kubernetes/ops", scaleWeb), a.post(t, "/kubernetes/ops", scaleWeb); one == other {
			t.Error("got one task for two requests without an ID, want two")
		}
	})
}

// TestDuplicateSubmitDoesNotRerunFailure checks that a repeated request does not run a failed
// task again.
func TestDuplicateSubmitDoesNotRerunFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{})
		s.cluster.do = func(context.Context, vedette.Operation) vedette.Outcome {
			return vedette.Outcome{State: vedette.Failed, Message: "no"}
		}
		id := s.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
		synctest.Wait()
		if second := s.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb); second != id || s.cluster.count() != 1 {
			t.Errorf("got task %s after %s, %d operations", second, id, s.cluster.count())
		}
	})
}

const deployThree = `[{"deployManifest":{"account":"prod","moniker":{"app":"web"},"manifests":[
	{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"shop"}},
	{"apiVersion":"v1","kind":"Service","metadata":{"name":"b","namespace":"shop"}},
	{"apiVersion":"v1","kind":"Service","metadata":{"name":"c","namespace":"shop"}}]}}]`

// TestTaskOfCrashedServerIsEnded stops a server in the middle of a deployment. Another server
// ends the task, and reports what was done.
func TestTaskOfCrashedServerIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryStore()
		crashed, other := newServer(task.Config{Store: memory}), newServer(task.Config{Store: memory, Server: "vedette-1"})
		release := make(chan struct{})
		crashed.cluster.do = func(ctx context.Context, op vedette.Operation) vedette.Outcome {
			if apply := op.Args.(vedette.ApplyArgs); strings.Contains(string(apply.Manifest), `"name":"b"`) {
				<-release
			}
			return doneOutcome(op)
		}
		id := crashed.post(t, "/kubernetes/ops", deployThree) // Run is not running, so there are no heartbeats
		other.startHousekeeping(t)
		time.Sleep(40 * time.Second)
		if v := other.getTask(t, id); v.Status.Completed || v.Status.Status != "Submitting manifest service b to kubernetes master..." {
			t.Errorf("before the server counts as lost: got %+v", v.Status)
		}
		time.Sleep(30 * time.Second)
		v := other.getTask(t, id)
		const want = "The server that ran this task was lost before the task ended. Done so far: Deploy manifest task completed successfully for manifest service a in account prod." +
			" Last step: Submitting manifest service b to kubernetes master. Check the cluster, then run the stage again."
		if !v.Status.Completed || !v.Status.Failed || v.Status.Retryable || len(v.ResultObjects) != 1 ||
			v.ResultObjects[0].Message != want || v.ResultObjects[0].Type != "EXCEPTION" || v.ResultObjects[0].Operation != "KubernetesDeployManifestOperation" {
			t.Errorf("got %+v", v)
		}
		// The server was only slow. What it does now does not change the stored end.
		close(release)
		synctest.Wait()
		if later := other.getTask(t, id); fmt.Sprint(later) != fmt.Sprint(v) {
			t.Errorf("got another end later: %+v", later)
		}
		if n := crashed.cluster.count(); n != 2 {
			t.Errorf("got %d operations: the server continued after its task was taken over", n)
		}
	})
}

// TestLongTaskOfLiveServerGoesOn checks that a task may run for any time while its server is
// alive.
func TestLongTaskOfLiveServerGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryStore()
		s, other := newServer(task.Config{Store: memory}), newServer(task.Config{Store: memory, Server: "vedette-1"})
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			time.Sleep(9 * time.Minute)
			return doneOutcome(op)
		}
		s.startHousekeeping(t)
		other.startHousekeeping(t)
		id := s.post(t, "/kubernetes/ops", `[{"deleteManifest":{"account":"prod","manifestName":"pod web-0","location":"shop"}}]`)
		time.Sleep(8 * time.Minute)
		if v := other.getTask(t, id); v.Status.Completed {
			t.Errorf("got %+v", v.Status)
		}
		time.Sleep(2 * time.Minute)
		if v := other.getTask(t, id); !v.Status.Completed || v.Status.Failed {
			t.Errorf("got %+v", v.Status)
		}
	})
}

// TestStopEndsLongTasks checks a server that stops: tasks that end soon end normally, others
// are stopped and report it, and nothing hangs.
func TestStopEndsLongTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryStore()
		s := newServer(task.Config{Store: memory})
		s.cluster.do = func(ctx context.Context, op vedette.Operation) vedette.Outcome {
			if op.Args.(vedette.ScaleArgs).Replicas == 3 {
				time.Sleep(5 * time.Second)
				return doneOutcome(op)
			}
			return waitUntilCanceled(ctx, op)
		}
		stop := s.startHousekeeping(t)
		shortTask := s.post(t, "/kubernetes/ops", scaleWeb)
		longTask := s.post(t, "/kubernetes/ops", strings.Replace(scaleWeb, "3", "4", 1))
		synctest.Wait()
		start := time.Now()
		stop()
		if elapsed := time.Since(start); elapsed != 8*time.Second {
			t.Errorf("duration of the shutdown: got %s", elapsed)
		}
		if v := s.getTask(t, shortTask); !v.Status.Completed || v.Status.Failed {
			t.Errorf("got %+v", v.Status)
		}
		v := s.getTask(t, longTask)
		if n := len(v.ResultObjects); !v.Status.Failed || n != 2 || !strings.HasPrefix(v.ResultObjects[1].Message, "The server that ran this task was stopped before it ended. Done so far: nothing") ||
			!strings.Contains(v.ResultObjects[0].Message, "it is unknown whether this took effect: nobody answered") {
			t.Errorf("got %+v", v)
		}
		if code, response := s.request(t, "POST", "/kubernetes/ops", scaleWeb); code != http.StatusServiceUnavailable {
			t.Errorf("submit to a stopped server: got %d %s, want %d", code, response, http.StatusServiceUnavailable)
		}
	})
}

// TestStopWhileEverythingHangs checks that a server stops even if a dispatcher ignores its
// context or the database does not answer.
func TestStopWhileEverythingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryStore()
		s := newServer(task.Config{Store: memory})
		release := make(chan struct{})
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			<-release
			return doneOutcome(op)
		}
		stop := s.startHousekeeping(t)
		s.post(t, "/kubernetes/ops", scaleWeb)
		synctest.Wait()
		memory.setUnavailable(true)
		start := time.Now()
		stop()
		if elapsed := time.Since(start); elapsed > 20*time.Second {
			t.Errorf("duration of the shutdown: got %s", elapsed)
		}
		close(release)
		memory.setUnavailable(false)
	})
}

// TestTaskEndsAfterDatabaseOutage checks that a task can end while the database is
// unavailable, and that its end is not visible before it is stored.
func TestTaskEndsAfterDatabaseOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryStore()
		s, other := newServer(task.Config{Store: memory}), newServer(task.Config{Store: memory, Server: "vedette-1"})
		s.startHousekeeping(t)
		other.startHousekeeping(t)
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			memory.setUnavailable(true)
			return doneOutcome(op)
		}
		id := s.post(t, "/kubernetes/ops", scaleWeb)
		time.Sleep(3 * time.Minute) // longer than AbandonAfter
		if v := s.getTask(t, id); v.Status.Completed {
			t.Errorf("got an end that is not stored: %+v", v.Status)
		}
		if code, _ := other.request(t, "GET", "/task/"+id, ""); code != http.StatusServiceUnavailable {
			t.Errorf("the other server: got %d", code)
		}
		memory.setUnavailable(false)
		time.Sleep(time.Minute)
		if v := other.getTask(t, id); !v.Status.Completed || v.Status.Failed {
			t.Errorf("got %+v", v)
		}
		if code, response := s.request(t, "POST", "/kubernetes/ops", scaleWeb); code != http.StatusOK {
			t.Errorf("got %d %s, want %d", code, response, http.StatusOK)
		}
	})
}

// lostReplyStore is a database that stores a task but reports a failure.
type lostReplyStore struct {
	*memoryStore
	lostReplies int
}

func (s *lostReplyStore) CreateTask(ctx context.Context, row tasks.Task) (tasks.Task, bool, error) {
	row, created, err := s.memoryStore.CreateTask(ctx, row)
	if s.lostReplies > 0 {
		s.lostReplies--
		return tasks.Task{}, false, errUnavailable
	}
	return row, created, err
}

// TestLostCreateReply checks that a stored task is run or ended.
func TestLostCreateReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flaky := &lostReplyStore{newMemoryStore(), 1}
		s := newServer(task.Config{Store: flaky})
		s.startHousekeeping(t)
		s.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
		synctest.Wait()
		if s.cluster.count() != 1 {
			t.Errorf("got %d operations", s.cluster.count())
		}
		flaky.lostReplies = 2
		if code, response := s.request(t, "POST", "/kubernetes/ops?clientRequestId=2", scaleWeb); code != http.StatusServiceUnavailable {
			t.Errorf("got %d %s, want %d", code, response, http.StatusServiceUnavailable)
		}
		id := s.post(t, "/kubernetes/ops?clientRequestId=2", scaleWeb) // Orca retries, and gets the same task
		time.Sleep(time.Minute)
		if v := s.getTask(t, id); !v.Status.Failed || !strings.Contains(v.Status.Status, "so late that the server did not begin it") || s.cluster.count() != 1 {
			t.Errorf("got %+v after %d operations", v.Status, s.cluster.count())
		}
	})
}

// TestCancelAndRestart does what Orca does with a task that takes too long: it cancels the
// task, and restarts it with the same ID on another server.
func TestCancelAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryStore()
		s, other := newServer(task.Config{Store: memory}), newServer(task.Config{Store: memory, Server: "vedette-1"})
		s.cluster.do = waitUntilCanceled
		id := s.post(t, "/kubernetes/ops?clientRequestId=1", `[{"deleteManifest":{"account":"prod","manifestName":"pod web-0","location":"shop"}}]`)
		if code, response := s.request(t, "POST", "/kubernetes/task/"+id+"/restart", scaleWeb); code != http.StatusBadRequest || !strings.Contains(response, "is not retryable") {
			t.Errorf("restart of a running task: got %d %s, want %d and %q", code, response, http.StatusBadRequest, "is not retryable")
		}
		if code, response := s.request(t, "PATCH", "/kubernetes/task/"+id, `{"retry":true}`); code != http.StatusOK {
			t.Errorf("got %d %s, want %d", code, response, http.StatusOK)
		}
		v := other.getTask(t, id)
		if !v.Status.Completed || !v.Status.Failed || !v.Status.Retryable {
			t.Errorf("got %+v", v.Status)
		}
		if code, response := other.request(t, "POST", "/kubernetes/task/"+id+"/restart", scaleWeb); code != http.StatusOK || !strings.Contains(response, `"id":"`+id+`"`) {
			t.Errorf("got %d %s, want %d", code, response, http.StatusOK)
		}
		synctest.Wait()
		v = s.getTask(t, id)
		if !v.Status.Completed || v.Status.Failed || len(v.ResultObjects) != 0 || other.cluster.count() != 1 {
			t.Errorf("got %+v after %d operations", v, other.cluster.count())
		}
		if _, response := s.request(t, "GET", "/kubernetes/task/"+id+"/owner", ""); response != `{"name":"vedette-1"}`+"\n" {
			t.Errorf("owner: got %s", response)
		}
	})
}

// TestCancelOnOtherServer cancels a task on a server that does not run it. The server that
// runs it stops it.
func TestCancelOnOtherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newMemoryStore()
		s, other := newServer(task.Config{Store: memory}), newServer(task.Config{Store: memory, Server: "vedette-1"})
		release := make(chan struct{})
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			<-release
			return doneOutcome(op)
		}
		id := s.post(t, "/kubernetes/ops?clientRequestId=1", deployThree)
		synctest.Wait()
		if code, response := other.request(t, "PATCH", "/kubernetes/task/"+id, `{"retry":true}`); code != http.StatusOK {
			t.Errorf("got %d %s, want %d", code, response, http.StatusOK)
		}
		if second := other.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb); second != id { // submitting it again is another way to retry
			t.Errorf("got task %s, want %s", second, id)
		}
		close(release)
		synctest.Wait()
		if v := other.getTask(t, id); !v.Status.Completed || v.Status.Failed || s.cluster.count() != 1 || other.cluster.count() != 1 {
			t.Errorf("got %+v after %d and %d operations", v, s.cluster.count(), other.cluster.count())
		}
	})
}

// TestManyConcurrentTasks runs as many tasks at once as a large installation, each with two
// operations that must keep their order.
func TestManyConcurrentTasks(t *testing.T) {
	const n = 200
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{})
		var mu sync.Mutex
		order := map[string][]vedette.Verb{}
		maxConcurrent, concurrent := 0, 0
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			mu.Lock()
			order[op.Origin] = append(order[op.Origin], op.Args.Verb())
			concurrent++
			maxConcurrent = max(maxConcurrent, concurrent)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			concurrent--
			mu.Unlock()
			return doneOutcome(op)
		}
		stop := s.startHousekeeping(t)
		ids := make([]string, n)
		var posts sync.WaitGroup
		for i := range n {
			posts.Go(func() {
				ids[i] = s.post(t, "/kubernetes/ops?clientRequestId="+fmt.Sprint(i),
					`[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3},
					   "rollingRestartManifest":{"account":"prod","manifestName":"deployment web","location":"shop"}}]`)
				s.getTask(t, ids[i])
			})
		}
		posts.Wait()
		synctest.Wait()
		if _, list := s.request(t, "GET", "/task", ""); strings.Count(list, `"history"`) != n {
			t.Errorf("got %d of %d running tasks", strings.Count(list, `"history"`), n)
		}
		time.Sleep(3 * time.Second)
		for _, id := range ids {
			if v := s.getTask(t, id); !v.Status.Completed || v.Status.Failed || fmt.Sprint(order["task "+id]) != "[scale restart]" {
				t.Errorf("got %+v after %v", v.Status, order["task "+id])
			}
		}
		if maxConcurrent != n {
			t.Errorf("got %d of %d concurrent operations, want all", maxConcurrent, n)
		}
		stop()
	})
}

// TestTasksBeyondTheLimitAreUnavailable checks that a server rejects tasks beyond its limit as unavailable, so that
// the caller retries.
func TestTasksBeyondTheLimitAreUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{MaxTasks: 1, ShutdownTimeout: time.Second})
		s.cluster.do = waitUntilCanceled
		stop := s.startHousekeeping(t)
		s.post(t, "/kubernetes/ops", scaleWeb)
		if code, response := s.request(t, "POST", "/kubernetes/ops", scaleWeb); code != http.StatusServiceUnavailable || !strings.Contains(response, "1 tasks are running on this server") {
			t.Errorf("got %d %s, want %d and %q", code, response, http.StatusServiceUnavailable, "1 tasks are running on this server")
		}
		stop()
	})
}

// TestTasksAreDeletedAfterFourDays checks that a task is kept for four days and then deleted.
func TestTasksAreDeletedAfterFourDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{HeartbeatInterval: time.Hour, AbandonAfter: 3 * time.Hour})
		s.startHousekeeping(t)
		var ids []string
		for range 250 {
			ids = append(ids, s.post(t, "/kubernetes/ops", scaleWeb))
		}
		time.Sleep(4*24*time.Hour - time.Minute)
		s.getTask(t, ids[0])
		time.Sleep(2 * time.Hour)
		for _, id := range ids {
			if code, response := s.request(t, "GET", "/task/"+id, ""); code != http.StatusNotFound || !strings.Contains(response, `"message":"Task not found (id: `+id+`)"`) {
				t.Fatalf("got %d %s, want %d", code, response, http.StatusNotFound)
			}
		}
	})
}

func TestPanicEndsOnlyItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{})
		s.cluster.do = func(context.Context, vedette.Operation) vedette.Outcome { panic("hunter2") }
		id := s.post(t, "/kubernetes/ops", scaleWeb)
		synctest.Wait()
		v := s.getTask(t, id)
		raw, err := json.Marshal(v)
		if err != nil || !v.Status.Failed || !strings.Contains(string(raw), "RuntimeException: [internal error") {
			t.Errorf("got %s, %v", raw, err)
		}
		if strings.Contains(s.log.String(), "hunter2") || !strings.Contains(s.log.String(), "operation panicked") {
			t.Errorf("got log %s", s.log)
		}
	})
}
