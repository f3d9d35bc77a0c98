package task

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// orchestration is the phase of what is no single operation's.
const orchestration = "ORCHESTRATION"

// run is a task that runs here.
type run struct {
	tasks   *Tasks
	id      string
	works   []work // let go when they are done: they hold what was submitted
	options Options
	ctx     context.Context // ends with a cause: errStopped, errTaken or a givenUp
	cancel  context.CancelCauseFunc
	begun   atomic.Bool
	done    chan struct{} // closed by leave

	mu   sync.Mutex
	task Task
}

var (
	errStopped = errors.New("the server that runs the task is stopped")
	errTaken   = errors.New("the task was taken by another server")
)

// givenUp is why a task ends that somebody wants to end.
type givenUp struct{ again bool }

func (*givenUp) Error() string { return givenUpText }

const givenUpText = "The task was ended by request"

func (g *givenUp) state() store.TaskState {
	if g.again {
		return store.TaskRetryable
	}
	return store.TaskFailed
}

func (t *Tasks) newRun(id string, works []work, o Options) *run {
	r := &run{tasks: t, id: id, works: works, options: o, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(t.base)
	r.task = Task{ID: id, RequestID: o.RequestID, Owner: string(t.owner), User: o.User, Accounts: accountsOf(works), State: store.TaskRunning, Started: time.Now(),
		History: []Line{{orchestration, "Initializing Orchestration Task"}}, Results: []json.RawMessage{}}
	return r
}

// start lets a run run. It must have been entered.
func (t *Tasks) start(r *run) {
	r.begun.Store(true)
	t.cfg.Log.Info("task started", "task", r.id, "user", r.options.User, "operations", namesOf(r.works), "accounts", accountsOf(r.works))
	go func() {
		defer t.leave(r)
		r.all()
	}()
}

func namesOf(works []work) []string {
	var names []string
	for _, w := range works {
		names = append(names, w.name)
	}
	return names
}

func accountsOf(works []work) []vedette.AccountName {
	names := []vedette.AccountName{}
	for _, w := range works {
		names = append(names, w.account())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *run) started() bool { return r.begun.Load() }

// snapshot returns the task as it is now. What ends it shows when that is
// stored, so that nobody is told of an end that others can't read.
func (r *run) snapshot() Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	task := r.task
	task.History, task.Results, task.Outputs = slices.Clone(task.History), slices.Clone(task.Results), slices.Clone(task.Outputs)
	return task
}

func (r *run) say(phase, status string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.task.History = append(r.task.History, Line{phase, status})
}

// all carries the operations out, one after the other; that one fails does not
// keep the next one from its turn.
func (r *run) all() {
	var failed, last bool
	for i, w := range r.works {
		if r.ctx.Err() != nil {
			break
		}
		if i > 0 && !last {
			r.say(orchestration, completed(failed))
		}
		r.say(orchestration, "Processing op: "+w.class)
		last = !r.one(w)
		failed = failed || last
		r.works[i] = work{}
	}
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, errTaken):
		r.tasks.cfg.Log.Warn("a task was taken by another server while it ran", "task", r.id)
	case cause != nil:
		r.finish(r.cutShort(cause))
	default:
		r.finish(r.ended(failed, last))
	}
}

// ended returns the task as it ends by itself. Where the last operation failed
// its own words stay the last ones: they are what Deck shows.
func (r *run) ended(failed, last bool) Task {
	task := r.snapshot()
	switch {
	case !failed:
		task.end(store.TaskSucceeded, completed(failed))
	case last:
		task.State = store.TaskFailed
	default:
		task.end(store.TaskFailed, completed(failed))
	}
	return task
}

// completed is what is said after each operation that succeeded. After the last
// one it ends the task, and shows no sooner than that is stored.
func completed(failed bool) string {
	if failed {
		return "Orchestration completed with errors, see prior task logs."
	}
	return "Orchestration completed."
}

// cutShort returns the task as it ends before its time.
func (r *run) cutShort(cause error) Task {
	task := r.snapshot()
	var g *givenUp
	if errors.As(cause, &g) {
		task.end(g.state(), givenUpText)
	} else {
		task.abandon("The server that ran this task was stopped before it ended.")
	}
	return task
}

// one carries out one operation and reports whether it succeeded.
func (r *run) one(w work) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			// The value may hold what was submitted; the stack does not.
			id := rand.Text()[:10]
			r.tasks.cfg.Log.Error("an operation panicked", "id", id, "task", r.id, "operation", w.name, "stack", string(debug.Stack()))
			r.fail(w, &failure{class: "RuntimeException", message: "internal error; the server's log tells more under id " + id})
		}
	}()
	result, err := w.run(r.ctx, &turn{run: r, work: w})
	if err != nil {
		r.fail(w, r.explain(w, err))
		return false
	}
	if result != nil {
		r.add(result)
	}
	return true
}

func (r *run) fail(w work, f *failure) {
	r.say(orchestration, "Orchestration failed: "+w.class+" | "+f.class+": ["+f.message+"]")
	r.add(f.exception(w.class))
}

// add keeps a result.
func (r *run) add(result any) {
	raw, err := json.Marshal(result)
	if err != nil { // results are made of what was decoded
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.task.Results = append(r.task.Results, raw)
}

// progress stores what is known so far, before something is changed in a
// cluster: should this server go away then, the one that ends the task can tell.
func (r *run) progress(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := r.save(ctx, r.snapshot())
	switch {
	case vedette.KindOf(err) == vedette.Conflict:
		r.cancel(errTaken)
	case err != nil && ctx.Err() == nil:
		r.tasks.cfg.Log.Warn("the progress of a task was not stored", "task", r.id, "error", err)
	}
}

func (r *run) save(ctx context.Context, task Task) error {
	row, err := r.row(task)
	if err != nil {
		return err
	}
	return r.tasks.cfg.Store.SaveTask(ctx, row)
}

func (r *run) row(task Task) (store.TaskRow, error) {
	body, err := task.body()
	row := store.TaskRow{ID: task.ID, RequestID: task.RequestID, Server: vedette.ServerID(task.Owner), Application: r.options.Application,
		User: r.options.User, State: task.State, Body: body, Created: task.Started, LastSeen: time.Now()}
	if !task.Running() {
		row.Ended = row.LastSeen
	}
	return row, err
}

// finish stores the end of a task, however long the database is away; while it
// is, readers are told that the task goes on. A server that is stopped tries once
// more: what it can't store then another one ends.
func (r *run) finish(task Task) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 15*time.Second
	last := false
	for {
		err := r.put(task)
		switch {
		case err == nil:
			r.mu.Lock()
			r.task = task
			r.mu.Unlock()
			r.tasks.cfg.Log.Info("task ended", "task", r.id, "state", string(task.State))
			return
		case vedette.KindOf(err) == vedette.Conflict:
			r.tasks.cfg.Log.Warn("a task was taken by another server while it ran", "task", r.id)
			return
		case last:
			r.tasks.cfg.Log.Error("the end of a task is not stored; another server will end it", "task", r.id, "error", err)
			return
		}
		r.tasks.cfg.Log.Warn("the end of a task is not stored yet; tried again", "task", r.id, "error", err)
		if errors.Is(err, store.ErrData) { // nothing else is better of a shorter one
			task.shorten()
		}
		timer := time.NewTimer(wait.NextBackOff())
		select {
		case <-timer.C:
		case <-r.tasks.base.Done():
			timer.Stop()
			last = true
		}
	}
}

const lastStore = 3 * time.Second

// put stores the end of a task, which the end of its context must not prevent.
func (r *run) put(task Task) error {
	limit := storeTimeout
	if r.tasks.base.Err() != nil {
		limit = lastStore
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), limit)
	defer cancel()
	return r.save(ctx, task)
}
