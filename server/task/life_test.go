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
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// live runs a server's housekeeping until the function that it returns is
// called, or the test ends.
func (s *server) live(t *testing.T) (stop func()) {
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

// hang makes operations wait until their context ends, and then be lost, as
// those of a cluster that never answers.
func hang(ctx context.Context, op vedette.Operation) vedette.Outcome {
	<-ctx.Done()
	return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: http.StatusGatewayTimeout, Message: "it is unknown whether this took effect: nobody answered"}
}

// TestSubmittedTwice sends the same request to two servers at once: it is
// carried out once, and both name the same task.
func TestSubmittedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := newMemory()
		a, b := newServer(task.Config{Store: book}), newServer(task.Config{Store: book, Server: "vedette-1"})
		first, second := a.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb), b.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
		synctest.Wait()
		third := b.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
		if first != second || first != third || a.cluster.count() != 1 || b.cluster.count() != 0 {
			t.Errorf("tasks %s, %s and %s, %d and %d operations", first, second, third, a.cluster.count(), b.cluster.count())
		}
		if v := b.task(t, first); !v.Status.Completed || v.Status.Failed {
			t.Errorf("the other server tells %+v", v.Status)
		}
		if one, other := a.post(t, "/kubernetes/ops", scaleWeb), a.post(t, "/kubernetes/ops", scaleWeb); one == other {
			t.Error("two requests without an ID are one task")
		}
	})
}

// TestFailedSubmittedAgain holds that a failure is not run again by the same
// request.
func TestFailedSubmittedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{})
		s.cluster.do = func(context.Context, vedette.Operation) vedette.Outcome {
			return vedette.Outcome{State: vedette.Failed, Message: "no"}
		}
		id := s.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
		synctest.Wait()
		if again := s.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb); again != id || s.cluster.count() != 1 {
			t.Errorf("task %s after %s, %d operations", again, id, s.cluster.count())
		}
	})
}

const deployThree = `[{"deployManifest":{"account":"prod","moniker":{"app":"web"},"manifests":[
	{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"shop"}},
	{"apiVersion":"v1","kind":"Service","metadata":{"name":"b","namespace":"shop"}},
	{"apiVersion":"v1","kind":"Service","metadata":{"name":"c","namespace":"shop"}}]}}]`

// TestServerDies lets a server go away in the middle of a deployment, without a
// word. Another one ends the task, and says how far it came.
func TestServerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := newMemory()
		dead, other := newServer(task.Config{Store: book}), newServer(task.Config{Store: book, Server: "vedette-1"})
		release := make(chan struct{})
		dead.cluster.do = func(ctx context.Context, op vedette.Operation) vedette.Outcome {
			if apply := op.Args.(vedette.ApplyArgs); strings.Contains(string(apply.Manifest), `"name":"b"`) {
				<-release
			}
			return done(op)
		}
		id := dead.post(t, "/kubernetes/ops", deployThree) // and nobody runs its Run, so that it is not heard of
		other.live(t)
		time.Sleep(40 * time.Second)
		if v := other.task(t, id); v.Status.Completed || v.Status.Status != "Submitting manifest service b to kubernetes master..." {
			t.Errorf("while it may live: %+v", v.Status)
		}
		time.Sleep(30 * time.Second)
		v := other.task(t, id)
		const want = "The server that ran this task went away before it ended. Done so far: Deploy manifest task completed successfully for manifest service a in account prod." +
			" It was at: Submitting manifest service b to kubernetes master. Check the cluster, then run the stage again."
		if !v.Status.Completed || !v.Status.Failed || v.Status.Retryable || len(v.ResultObjects) != 1 ||
			v.ResultObjects[0].Message != want || v.ResultObjects[0].Type != "EXCEPTION" || v.ResultObjects[0].Operation != "KubernetesDeployManifestOperation" {
			t.Errorf("%+v", v)
		}
		// It was only very slow: what it does now changes nothing of the end that
		// was told.
		close(release)
		synctest.Wait()
		if again := other.task(t, id); fmt.Sprint(again) != fmt.Sprint(v) {
			t.Errorf("the end was told otherwise later: %+v", again)
		}
		if n := dead.cluster.count(); n != 2 {
			t.Errorf("%d operations: it went on after its task was taken", n)
		}
	})
}

// TestServerLives holds that a task goes on for as long as it takes while its
// server lives.
func TestServerLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := newMemory()
		s, other := newServer(task.Config{Store: book}), newServer(task.Config{Store: book, Server: "vedette-1"})
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			time.Sleep(9 * time.Minute)
			return done(op)
		}
		s.live(t)
		other.live(t)
		id := s.post(t, "/kubernetes/ops", `[{"deleteManifest":{"account":"prod","manifestName":"pod web-0","location":"shop"}}]`)
		time.Sleep(8 * time.Minute)
		if v := other.task(t, id); v.Status.Completed {
			t.Errorf("%+v", v.Status)
		}
		time.Sleep(2 * time.Minute)
		if v := other.task(t, id); !v.Status.Completed || v.Status.Failed {
			t.Errorf("%+v", v.Status)
		}
	})
}

// TestStop holds what a server that is stopped does: tasks that end soon end as
// if nothing was, others are cut short and say so, and nothing hangs.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := newMemory()
		s := newServer(task.Config{Store: book})
		s.cluster.do = func(ctx context.Context, op vedette.Operation) vedette.Outcome {
			if op.Args.(vedette.ScaleArgs).Replicas == 3 {
				time.Sleep(5 * time.Second)
				return done(op)
			}
			return hang(ctx, op)
		}
		stop := s.live(t)
		soon := s.post(t, "/kubernetes/ops", scaleWeb)
		never := s.post(t, "/kubernetes/ops", strings.Replace(scaleWeb, "3", "4", 1))
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took != 8*time.Second {
			t.Errorf("it took %s to stop", took)
		}
		if v := s.task(t, soon); !v.Status.Completed || v.Status.Failed {
			t.Errorf("%+v", v.Status)
		}
		v := s.task(t, never)
		if n := len(v.ResultObjects); !v.Status.Failed || n != 2 || !strings.HasPrefix(v.ResultObjects[1].Message, "The server that ran this task was stopped before it ended. Done so far: nothing") ||
			!strings.Contains(v.ResultObjects[0].Message, "it is unknown whether this took effect: nobody answered") {
			t.Errorf("%+v", v)
		}
		if code, answer := s.ask(t, "POST", "/kubernetes/ops", scaleWeb); code != http.StatusServiceUnavailable {
			t.Errorf("a stopped server takes tasks: %d %s", code, answer)
		}
	})
}

// TestStopThoughAllHangs holds that not even a dispatcher that ignores its
// context, or a database that is away, keeps a server from stopping.
func TestStopThoughAllHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := newMemory()
		s := newServer(task.Config{Store: book})
		release := make(chan struct{})
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			<-release
			return done(op)
		}
		stop := s.live(t)
		s.post(t, "/kubernetes/ops", scaleWeb)
		synctest.Wait()
		book.setAway(true)
		began := time.Now()
		stop()
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s to stop", took)
		}
		close(release)
		book.setAway(false)
	})
}

// TestDatabaseAway holds that a task ends though the database is away when it
// does, and that nobody is told of its end before.
func TestDatabaseAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := newMemory()
		s, other := newServer(task.Config{Store: book}), newServer(task.Config{Store: book, Server: "vedette-1"})
		s.live(t)
		other.live(t)
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			book.setAway(true)
			return done(op)
		}
		id := s.post(t, "/kubernetes/ops", scaleWeb)
		time.Sleep(3 * time.Minute) // longer than a server may be silent
		if v := s.task(t, id); v.Status.Completed {
			t.Errorf("an end is told that is not stored: %+v", v.Status)
		}
		if code, _ := other.ask(t, "GET", "/task/"+id, ""); code != http.StatusServiceUnavailable {
			t.Errorf("%d from the other server", code)
		}
		book.setAway(false)
		time.Sleep(time.Minute)
		if v := other.task(t, id); !v.Status.Completed || v.Status.Failed {
			t.Errorf("%+v", v)
		}
		if code, answer := s.ask(t, "POST", "/kubernetes/ops", scaleWeb); code != http.StatusOK {
			t.Errorf("%d %s", code, answer)
		}
	})
}

// unsure is a database that stores a task and says that it did not.
type unsure struct {
	*memory
	times int
}

func (u *unsure) CreateTask(ctx context.Context, row store.TaskRow) (store.TaskRow, bool, error) {
	row, created, err := u.memory.CreateTask(ctx, row)
	if u.times > 0 {
		u.times--
		return store.TaskRow{}, false, errAway
	}
	return row, created, err
}

// TestStoredWithoutAWord holds that a task that is stored is run, or ended.
func TestStoredWithoutAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &unsure{newMemory(), 1}
		s := newServer(task.Config{Store: book})
		s.live(t)
		s.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb)
		synctest.Wait()
		if s.cluster.count() != 1 {
			t.Errorf("%d operations", s.cluster.count())
		}
		book.times = 2
		if code, answer := s.ask(t, "POST", "/kubernetes/ops?clientRequestId=2", scaleWeb); code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", code, answer)
		}
		id := s.post(t, "/kubernetes/ops?clientRequestId=2", scaleWeb) // Orca tries again, and finds it
		time.Sleep(time.Minute)
		if v := s.task(t, id); !v.Status.Failed || s.cluster.count() != 1 {
			t.Errorf("%+v after %d operations", v.Status, s.cluster.count())
		}
	})
}

// TestRetry plays what Orca does with a task that it gives up: it marks the
// task, and runs it again under its ID, on another server.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := newMemory()
		s, other := newServer(task.Config{Store: book}), newServer(task.Config{Store: book, Server: "vedette-1"})
		s.cluster.do = hang
		id := s.post(t, "/kubernetes/ops?clientRequestId=1", `[{"deleteManifest":{"account":"prod","manifestName":"pod web-0","location":"shop"}}]`)
		if code, answer := s.ask(t, "POST", "/kubernetes/task/"+id+"/restart", scaleWeb); code != http.StatusBadRequest || !strings.Contains(answer, "is not retryable") {
			t.Errorf("restart of what runs: %d %s", code, answer)
		}
		if code, answer := s.ask(t, "PATCH", "/kubernetes/task/"+id, `{"retry":true}`); code != http.StatusOK {
			t.Errorf("%d %s", code, answer)
		}
		v := other.task(t, id)
		if !v.Status.Completed || !v.Status.Failed || !v.Status.Retryable {
			t.Errorf("%+v", v.Status)
		}
		if code, answer := other.ask(t, "POST", "/kubernetes/task/"+id+"/restart", scaleWeb); code != http.StatusOK || !strings.Contains(answer, `"id":"`+id+`"`) {
			t.Errorf("%d %s", code, answer)
		}
		synctest.Wait()
		v = s.task(t, id)
		if !v.Status.Completed || v.Status.Failed || len(v.ResultObjects) != 0 || other.cluster.count() != 1 {
			t.Errorf("%+v after %d operations", v, other.cluster.count())
		}
		if _, answer := s.ask(t, "GET", "/kubernetes/task/"+id+"/owner", ""); answer != `{"name":"vedette-1"}`+"\n" {
			t.Errorf("owner: %s", answer)
		}
	})
}

// TestRetryElsewhere marks a task on a server that does not run it. The one that
// does stops there.
func TestRetryElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := newMemory()
		s, other := newServer(task.Config{Store: book}), newServer(task.Config{Store: book, Server: "vedette-1"})
		release := make(chan struct{})
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			<-release
			return done(op)
		}
		id := s.post(t, "/kubernetes/ops?clientRequestId=1", deployThree)
		synctest.Wait()
		if code, answer := other.ask(t, "PATCH", "/kubernetes/task/"+id, `{"retry":true}`); code != http.StatusOK {
			t.Errorf("%d %s", code, answer)
		}
		if again := other.post(t, "/kubernetes/ops?clientRequestId=1", scaleWeb); again != id { // which is another way to run it again
			t.Errorf("task %s after %s", again, id)
		}
		close(release)
		synctest.Wait()
		if v := other.task(t, id); !v.Status.Completed || v.Status.Failed || s.cluster.count() != 1 || other.cluster.count() != 1 {
			t.Errorf("%+v after %d and %d operations", v, s.cluster.count(), other.cluster.count())
		}
	})
}

// TestMany runs as many stages at once as a big installation does, each with two
// operations that must keep their order.
func TestMany(t *testing.T) {
	const n = 200
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{})
		var mu sync.Mutex
		order := map[string][]vedette.Verb{}
		most, now := 0, 0
		s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
			mu.Lock()
			order[op.Origin] = append(order[op.Origin], op.Args.Verb())
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return done(op)
		}
		stop := s.live(t)
		ids := make([]string, n)
		var posts sync.WaitGroup
		for i := range n {
			posts.Go(func() {
				ids[i] = s.post(t, "/kubernetes/ops?clientRequestId="+fmt.Sprint(i),
					`[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3},
					   "rollingRestartManifest":{"account":"prod","manifestName":"deployment web","location":"shop"}}]`)
				s.task(t, ids[i])
			})
		}
		posts.Wait()
		synctest.Wait()
		if _, list := s.ask(t, "GET", "/task", ""); strings.Count(list, `"history"`) != n {
			t.Errorf("%d of %d tasks are listed as running", strings.Count(list, `"history"`), n)
		}
		time.Sleep(3 * time.Second)
		for _, id := range ids {
			if v := s.task(t, id); !v.Status.Completed || v.Status.Failed || fmt.Sprint(order["task "+id]) != "[scale restart]" {
				t.Errorf("%+v after %v", v.Status, order["task "+id])
			}
		}
		if most != n {
			t.Errorf("%d of %d at once: one waits for another", most, n)
		}
		stop()
	})
}

// TestTooMany holds that a server says when it can't take more, so that the
// caller tries elsewhere or later.
func TestTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{Most: 1, Patience: time.Second})
		s.cluster.do = hang
		stop := s.live(t)
		s.post(t, "/kubernetes/ops", scaleWeb)
		if code, answer := s.ask(t, "POST", "/kubernetes/ops", scaleWeb); code != http.StatusServiceUnavailable || !strings.Contains(answer, "1 tasks run on this server") {
			t.Errorf("%d %s", code, answer)
		}
		stop()
	})
}

// TestPurge holds that a task can be read for four days and is forgotten then.
func TestPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{Beat: time.Hour, AbandonAfter: 3 * time.Hour})
		s.live(t)
		var ids []string
		for range 250 {
			ids = append(ids, s.post(t, "/kubernetes/ops", scaleWeb))
		}
		time.Sleep(4*24*time.Hour - time.Minute)
		s.task(t, ids[0])
		time.Sleep(2 * time.Hour)
		for _, id := range ids {
			if code, answer := s.ask(t, "GET", "/task/"+id, ""); code != http.StatusNotFound || !strings.Contains(answer, `"message":"Task not found (id: `+id+`)"`) {
				t.Fatalf("%d %s", code, answer)
			}
		}
	})
}

// TestPanic holds that an operation that panics ends its task and nothing else.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(task.Config{})
		s.cluster.do = func(context.Context, vedette.Operation) vedette.Outcome { panic("hunter2") }
		id := s.post(t, "/kubernetes/ops", scaleWeb)
		synctest.Wait()
		v := s.task(t, id)
		raw, err := json.Marshal(v)
		if err != nil || !v.Status.Failed || !strings.Contains(string(raw), "RuntimeException: [internal error") {
			t.Errorf("%s, %v", raw, err)
		}
		if strings.Contains(s.log.String(), "hunter2") || !strings.Contains(s.log.String(), "an operation panicked") {
			t.Errorf("log: %s", s.log)
		}
	})
}
