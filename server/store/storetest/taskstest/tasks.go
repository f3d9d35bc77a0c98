package taskstest

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// Tasks are tests that store tasks and read them.
var Tasks = map[string]func(*testing.T, *store.Store){
	"a task is read back as it was stored, before and after its end": func(t *testing.T, s *store.Store) {
		want := task(1)
		createTask(t, s, want)
		checkTask(t, s, want)
		want.Body, want.LastSeen = []byte(strings.Repeat(`{"phase":"DEPLOY","status":"é🙂"},`, 500)), want.LastSeen.Add(time.Second)
		saveTask(t, s, want)
		checkTask(t, s, want)
		want.State = tasks.Succeeded
		want.Ended = want.LastSeen.Add(time.Second)
		want.Body = nil
		saveTask(t, s, want)
		checkTask(t, s, want)
		if list, err := s.RunningTasks(t.Context(), 10); err != nil || len(list) != 0 {
			t.Errorf("got running tasks %v, %v, want none", list, err)
		}
	},
	"the list of running tasks has a byte limit": func(t *testing.T, s *store.Store) {
		for i := range 5 {
			large := task(i)
			large.Body = []byte(`"` + strings.Repeat("x", tasks.MaxBytes/2-1<<20) + `"`)
			createTask(t, s, large)
		}
		if list, err := s.RunningTasks(t.Context(), 10); err != nil || len(list) != 2 || len(list[1].Body) < 1<<20 {
			t.Errorf("got %d tasks, %v, want 2", len(list), err)
		}
	},
	"requests with similar ids create a task each": func(t *testing.T, s *store.Store) {
		for i, name := range storetest.SimilarNames() {
			row := task(i)
			row.RequestID = name
			createTask(t, s, row)
			checkTask(t, s, row)
		}
	},
	"a request creates one task": func(t *testing.T, s *store.Store) {
		first := task(1)
		first.RequestID = "request é"
		createTask(t, s, first)
		second := task(2)
		second.RequestID = first.RequestID
		got, created, err := s.CreateTask(t.Context(), second)
		if err != nil || created || !reflect.DeepEqual(got, first) {
			t.Errorf("got %+v, %v, %v, want the first task", got, created, err)
		}
		if _, err := s.Task(t.Context(), second.ID); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("second task: got %v, want an error of kind %s", err, vedette.NotFound)
		}
		if _, created, err := s.CreateTask(t.Context(), first); err != nil || !created {
			t.Errorf("first task again: got created %v, %v, want true", created, err)
		}
		createTask(t, s, task(3))
		createTask(t, s, task(4)) // neither has a request id
		if _, _, err := s.CreateTask(t.Context(), task(4)); vedette.KindOf(err) != vedette.Conflict {
			t.Errorf("id of another task: got %v, want an error of kind %s", err, vedette.Conflict)
		}
	},
	"concurrent requests with one id create one task": func(t *testing.T, s *store.Store) {
		for round := range 5 {
			var made atomic.Int64
			ids := make([]string, 6)
			var wg sync.WaitGroup
			for i := range ids {
				wg.Go(func() {
					request := task(round*10 + i)
					request.RequestID = fmt.Sprint("request ", round)
					got, created, err := s.CreateTask(t.Context(), request)
					if err != nil {
						t.Error(err)
					}
					ids[i] = got.ID
					if created {
						made.Add(1)
					}
				})
			}
			wg.Wait()
			for _, id := range ids {
				if id != ids[0] {
					t.Errorf("got tasks %v, want one", ids)
				}
			}
			if made.Load() != 1 {
				t.Errorf("got %d tasks created, want 1", made.Load())
			}
		}
	},
	"only the owner of a running task saves it": func(t *testing.T, s *store.Store) {
		want := task(1)
		createTask(t, s, want)
		other := want
		other.Server, other.Body = "server-2", []byte("{}")
		if err := s.SaveTask(t.Context(), other); vedette.KindOf(err) != vedette.Conflict || !strings.Contains(err.Error(), "server-1") {
			t.Errorf("another server: got %v, want an error of kind %s", err, vedette.Conflict)
		}
		checkTask(t, s, want)
		want.State, want.Ended = tasks.Failed, want.LastSeen.Add(time.Second)
		saveTask(t, s, want)
		saveTask(t, s, want) // the answer to the first one was lost
		retried := want
		retried.State = tasks.Succeeded
		if err := s.SaveTask(t.Context(), retried); vedette.KindOf(err) != vedette.Conflict || !strings.Contains(err.Error(), "failed") {
			t.Errorf("ended task: got %v, want an error of kind %s", err, vedette.Conflict)
		}
		retried.State = tasks.Running
		if err := s.SaveTask(t.Context(), retried); vedette.KindOf(err) != vedette.Conflict {
			t.Errorf("ended task that runs again: got %v, want an error of kind %s", err, vedette.Conflict)
		}
		checkTask(t, s, want)
		if err := s.SaveTask(t.Context(), task(9)); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("missing task: got %v, want an error of kind %s", err, vedette.NotFound)
		}
	},
	"the owners of the running tasks are known": func(t *testing.T, s *store.Store) {
		for n, owner := range []vedette.ServerID{"one", "two", "one", "three"} {
			o := task(n)
			o.Server = owner
			createTask(t, s, o)
		}
		ended := task(3)
		ended.Server, ended.State = "three", tasks.Failed
		ended.Ended = ended.LastSeen
		saveTask(t, s, ended)
		got, err := s.TaskOwners(t.Context())
		want := map[string]vedette.ServerID{task(0).ID: "one", task(1).ID: "two", task(2).ID: "one"}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	},
	"one server acquires a task of a stopped server": func(t *testing.T, s *store.Store) {
		createTask(t, s, task(1))
		var winners atomic.Int64
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				newOwner := vedette.ServerID(fmt.Sprint("taker-", i))
				got, err := s.AcquireTask(t.Context(), task(1).ID, "server-1", newOwner)
				switch {
				case err == nil:
					winners.Add(1)
					if got.Server != newOwner || got.State != tasks.Running || string(got.Body) != string(task(1).Body) {
						t.Errorf("got %+v, want it running on the new server", got)
					}
				case vedette.KindOf(err) != vedette.Conflict:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if winners.Load() != 1 {
			t.Errorf("got %d winners, want 1", winners.Load())
		}
		if err := s.SaveTask(t.Context(), task(1)); vedette.KindOf(err) != vedette.Conflict {
			t.Errorf("former owner: got %v, want an error of kind %s", err, vedette.Conflict)
		}
		if _, err := s.AcquireTask(t.Context(), task(9).ID, "server-1", "server-2"); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("missing task: got %v, want an error of kind %s", err, vedette.NotFound)
		}
	},
	"a retryable task runs again": func(t *testing.T, s *store.Store) {
		for n, state := range []tasks.State{tasks.Succeeded, tasks.Failed, tasks.Retryable} {
			o := task(n)
			createTask(t, s, o)
			o.State, o.Ended = state, o.LastSeen
			saveTask(t, s, o)
		}
		for n := range 2 {
			if _, err := s.AcquireTask(t.Context(), task(n).ID, "server-1", "server-2"); vedette.KindOf(err) != vedette.Conflict {
				t.Errorf("task %d: got %v, want an error of kind %s", n, err, vedette.Conflict)
			}
		}
		got, err := s.AcquireTask(t.Context(), task(2).ID, "server-1", "server-1")
		if err != nil || got.State != tasks.Running || !got.Ended.IsZero() {
			t.Errorf("got %+v, %v, want it running", got, err)
		}
		if _, err := s.AcquireTask(t.Context(), task(2).ID, "server-1", "server-1"); vedette.KindOf(err) != vedette.Conflict {
			t.Errorf("second time: got %v, want an error of kind %s", err, vedette.Conflict)
		}
		saveTask(t, s, task(2))
	},
	"abandoned tasks": func(t *testing.T, s *store.Store) {
		for n := range 6 {
			o := task(n)
			o.Server = vedette.ServerID(fmt.Sprint("server-", n%3))
			createTask(t, s, o)
		}
		at := task(100).LastSeen
		if err := s.TouchTasks(t.Context(), "server-1", at); err != nil {
			t.Fatal(err)
		}
		checkAbandoned(t, s, "nobody", at, 0, 2, 3, 5)
		checkAbandoned(t, s, "server-1", at, 0, 1, 2, 3, 4, 5)
		checkAbandoned(t, s, "server-0", task(0).LastSeen, 0, 3)
		o := task(3)
		o.Server, o.State = "server-0", tasks.Failed
		saveTask(t, s, o)
		checkAbandoned(t, s, "server-0", task(0).LastSeen, 0)
		if err := s.TouchTasks(t.Context(), "server-0", at); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Task(t.Context(), o.ID); err != nil || !got.LastSeen.Equal(o.LastSeen) || got.Ended.IsZero() {
			t.Errorf("ended task: got %+v, %v, want it unchanged", got, err)
		}
	},
	"running tasks": func(t *testing.T, s *store.Store) {
		for n := range 5 {
			createTask(t, s, task(n))
		}
		for limit, want := range map[int]int{3: 3, 10: 5, 0: 0, -1: 0} {
			if list, err := s.RunningTasks(t.Context(), limit); err != nil || len(list) != want {
				t.Errorf("limit %d: got %d tasks, %v, want %d", limit, len(list), err, want)
			}
		}
	},
	"ended tasks are purged": func(t *testing.T, s *store.Store) {
		for n := range 6 {
			o := task(n)
			createTask(t, s, o)
			if n > 0 {
				o.State, o.Ended = tasks.Failed, time.UnixMicro(int64(1000*n)).UTC()
				saveTask(t, s, o)
			}
		}
		for _, want := range []int{2, 1, 0} {
			if n, err := s.PurgeTasks(t.Context(), time.UnixMicro(4000), 2); err != nil || n != want {
				t.Errorf("got %d purged tasks, %v, want %d", n, err, want)
			}
		}
		for n, exists := range []bool{true, false, false, false, true, true} {
			if _, err := s.Task(t.Context(), task(n).ID); (err == nil) != exists {
				t.Errorf("task %d: got %v, want it to exist: %v", n, err, exists)
			}
		}
	},
	"tasks that cannot be stored": func(t *testing.T, s *store.Store) {
		for _, change := range []func(*tasks.Task){
			func(o *tasks.Task) {
				o.ID = ""
			}, func(o *tasks.Task) { o.ID = strings.Repeat("x", 27) }, func(o *tasks.Task) { o.ID = "\x00" },
			func(o *tasks.Task) { o.RequestID = strings.Repeat("x", 256) }, func(o *tasks.Task) { o.RequestID = "\xff" },
		} {
			o := task(1)
			change(&o)
			if _, _, err := s.CreateTask(t.Context(), o); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%+v: got %v, want an error of kind %s", o, err, vedette.Invalid)
			}
		}
	},
}

// task returns a running task; tasks with higher numbers are newer.
func task(n int) tasks.Task {
	at := time.UnixMicro(1_700_000_000_000_000 + int64(n)).UTC()
	return tasks.Task{ID: fmt.Sprintf("01K%023d", n), Server: "server-1", Application: "shop", User: "ann", State: tasks.Running,
		Body: fmt.Appendf(nil, `{"history":[%d]}`, n), Created: at, LastSeen: at}
}

func createTask(t *testing.T, s *store.Store, o tasks.Task) {
	t.Helper()
	if got, created, err := s.CreateTask(t.Context(), o); err != nil || !created || !reflect.DeepEqual(got, o) {
		t.Fatalf("got %+v, %v, %v, want a new task", got, created, err)
	}
}

func saveTask(t *testing.T, s *store.Store, o tasks.Task) {
	t.Helper()
	if err := s.SaveTask(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func checkTask(t *testing.T, s *store.Store, want tasks.Task) {
	t.Helper()
	if got, err := s.Task(t.Context(), want.ID); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func checkAbandoned(t *testing.T, s *store.Store, server vedette.ServerID, before time.Time, want ...int) {
	t.Helper()
	list, err := s.AbandonedTasks(t.Context(), server, before)
	if err != nil {
		t.Fatal(err)
	}
	var got, ids []string
	for _, o := range list {
		got = append(got, o.ID)
	}
	for _, n := range want {
		ids = append(ids, task(n).ID)
	}
	storetest.Equal(t, "abandoned", got, ids)
}
