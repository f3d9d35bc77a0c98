package task

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/store"
)

// dispatcher brings an operation to its account's cluster and returns its one
// outcome, soon after the operation's deadline or the end of ctx at the latest.
type dispatcher interface {
	Execute(ctx context.Context, op vedette.Operation) vedette.Outcome
}

// accountStore is where accounts and the kinds that they report come from.
type accountStore interface {
	Account(ctx context.Context, name vedette.AccountName) (store.AccountRow, error)
	Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]store.FeedStatus, error)
}

// taskStore is where tasks are kept, as store.Store keeps them: a task's row is
// written only by the server that it names, and only while the task runs; else the
// error is vedette.Conflict.
type taskStore interface {
	taskWriter
	taskReader
	taskMaintainer
}

type taskWriter interface {
	// CreateTask returns the task that has the same request ID, where there is one,
	// and false.
	CreateTask(ctx context.Context, row store.TaskRow) (store.TaskRow, bool, error)
	SaveTask(ctx context.Context, row store.TaskRow) error
	// AcquireTask makes a task run on another server, for it to be ended or run again.
	AcquireTask(ctx context.Context, id string, from, to vedette.ServerID) (store.TaskRow, error)
}

type taskReader interface {
	Task(ctx context.Context, id string) (store.TaskRow, error)
	RunningTasks(ctx context.Context, limit int) ([]store.TaskRow, error)
}

type taskMaintainer interface {
	// TouchTasks tells that a server lives, and with it the tasks that it runs.
	TouchTasks(ctx context.Context, server vedette.ServerID, at time.Time) error
	// AbandonedTasks returns what counts as running on servers that were not seen
	// for long, and all that does on the one that asks.
	AbandonedTasks(ctx context.Context, server vedette.ServerID, seenBefore time.Time) ([]store.TaskRow, error)
	PurgeTasks(ctx context.Context, endedBefore time.Time, limit int) (int, error)
}

// Config is what tasks need, and how long things may take. Zero durations mean
// what stands behind them.
type Config struct {
	Server   vedette.ServerID
	Store    taskStore
	Accounts accountStore
	Dispatch dispatcher
	Rules    manifest.Rules // of deployments; those of an account's custom kinds are added
	Output   OutputPolicy   // of which accounts a task keeps what was done and said
	Log      *slog.Logger   // nil: nothing is logged

	Timeout time.Duration // of one operation in a cluster; 30 s
	// DeleteTimeout is how long a deletion may take until the object is gone,
	// besides the time that its pods are given; 10 min.
	DeleteTimeout     time.Duration
	HeartbeatInterval time.Duration // how often the server says that it lives; 5 s
	// AbandonAfter is how long a server may be silent before others begin to doubt
	// it; they end its tasks when they heard nothing for some time more. 30 s.
	AbandonAfter    time.Duration
	Retention       time.Duration // how long the end of a task can be read; 4 days
	ShutdownTimeout time.Duration // that running tasks have to end when the server stops; 8 s
	// MaxTasks is how many tasks may run at once. What is beyond is refused and may be
	// submitted again; each holds the manifests it was given. 2000.
	MaxTasks int
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.MaxTasks <= 0 {
		c.MaxTasks = 2000
	}
	for _, d := range []struct {
		field    *time.Duration
		fallback time.Duration
	}{
		{&c.Timeout, 30 * time.Second}, {&c.DeleteTimeout, 10 * time.Minute}, {&c.HeartbeatInterval, 5 * time.Second},
		{&c.AbandonAfter, 30 * time.Second}, {&c.Retention, 4 * 24 * time.Hour}, {&c.ShutdownTimeout, 8 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.fallback
		}
	}
	return c
}

// Options are what a submission says besides its operations.
type Options struct {
	RequestID   string // a second submission under it is the first; empty for one that never comes twice
	Provider    string // empty: each description may say
	Application string // for those who look for tasks
	User        string // on whose behalf; empty where nobody said
	// MayWrite decides whether the caller may change what is in an account: nil, or
	// a vedette.Denied. Any other error is that it can't be told, and then nobody
	// may. Without one everybody may.
	MayWrite AccessFunc
}

// Tasks runs tasks and knows of all that others run. It is safe for use by many
// at once.
type Tasks struct {
	cfg   Config
	owner vedette.ServerID // this process: a server that is started anew is another one

	baseCtx  context.Context // of runs: they outlive the request that submits them
	stopRuns context.CancelCauseFunc

	mu          sync.Mutex
	running     map[string]*taskRun
	closed      bool
	abandonRest bool                        // nobody waits for the rest any more
	missed      map[string]missedHeartbeats // tasks of others, by ID
	idle        sync.Cond                   // running has become less, or left is set
	kinds       kindCache
}

// New returns Tasks that run none yet. What is submitted runs at once; Run must
// be running too for others to see that this server lives.
func New(cfg Config) *Tasks {
	cfg = cfg.withDefaults()
	t := &Tasks{cfg: cfg, owner: vedette.ServerID(rand.Text()[:10] + "@" + string(cfg.Server)), running: map[string]*taskRun{}}
	t.baseCtx, t.stopRuns = context.WithCancelCause(context.Background())
	t.idle.L = &t.mu
	return t
}

// Submit judges operations, and starts a task that carries them out in order.
// It returns the task's ID. What was submitted before under the same request ID
// is not run again, unless it failed and may be retried.
//
// Errors are a ValidationError, an UnknownError or another vedette.Error, and
// then nothing was started.
func (t *Tasks) Submit(ctx context.Context, requests []Request, o Options) (string, error) {
	ops, err := t.prepare(ctx, requests, o)
	if err != nil {
		return "", err
	}
	if o.RequestID == "" {
		o.RequestID = rand.Text()
	}
	r := t.newRun(ulid.Make().String(), ops, o)
	if err := t.register(r); err != nil {
		return "", err
	}
	row, created, err := t.create(ctx, r)
	if err == nil && created {
		t.start(r)
		return r.id, nil
	}
	t.unregister(r)
	if err != nil || row.State != store.TaskRetryable {
		return row.ID, err
	}
	err = t.rerun(ctx, row, ops, o)
	if vedette.KindOf(err) == vedette.Conflict { // the same request has come to another server too
		err = nil
	}
	return row.ID, err
}

// create stores a new task. The caller may go while that is done: a task that
// is stored must run.
func (t *Tasks) create(ctx context.Context, r *taskRun) (store.TaskRow, bool, error) {
	row, err := r.row(r.task)
	if err != nil {
		return row, false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	stored, created, err := t.cfg.Store.CreateTask(ctx, row)
	if vedette.KindOf(err) == vedette.Unavailable { // it may be stored nonetheless, and then it is found
		stored, created, err = t.cfg.Store.CreateTask(ctx, row)
	}
	return stored, created, err
}

const storeTimeout = 20 * time.Second

// Restart runs a task that may be retried once more, with operations that are
// given anew, because none are kept.
func (t *Tasks) Restart(ctx context.Context, id string, requests []Request, o Options) error {
	row, err := t.row(ctx, id)
	if err != nil {
		return err
	}
	if row.State != store.TaskRetryable {
		return vedette.Errorf(vedette.Invalid, "Task id: %s is not retryable", id)
	}
	ops, err := t.prepare(ctx, requests, o)
	if err != nil {
		return err
	}
	return t.rerun(ctx, row, ops, o)
}

// rerun runs a stored task under its ID. Of two servers that want to, one does.
func (t *Tasks) rerun(ctx context.Context, row store.TaskRow, ops []validatedOp, o Options) error {
	o.RequestID, o.Application = row.RequestID, row.Application
	previous, err := decodeTask(row)
	if err != nil {
		return err
	}
	if err := previous.checkRerun(ctx, o.MayWrite); err != nil {
		return err
	}
	r := t.newRun(row.ID, ops, o)
	r.task.User, r.task.Accounts = previous.User, allAccounts(previous.Accounts, r.task.Accounts)
	r.task.History = append(previous.History, HistoryEntry{orchestration, "Re-initializing Orchestration Task (failure is retryable)"})
	r.task.Started, r.task.Outputs = previous.Started, previous.Outputs
	if err := t.register(r); err != nil {
		return err
	}
	_, err = t.cfg.Store.AcquireTask(ctx, row.ID, row.Server, t.owner)
	if err != nil {
		t.unregister(r)
		return err
	}
	t.start(r)
	return nil
}

// Cancel ends a task as failed, and says whether it may be run again. One that
// runs is stopped where it is.
func (t *Tasks) Cancel(ctx context.Context, id string, retryable bool) error {
	t.mu.Lock()
	r := t.running[id]
	t.mu.Unlock()
	if r != nil {
		r.cancel(&cancelledError{retryable})
		select {
		case <-r.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	row, err := t.row(ctx, id)
	if err != nil {
		return err
	}
	return t.cancelStored(ctx, row, retryable)
}

// cancelStored ends a task that does not run here. What has ended has ended.
func (t *Tasks) cancelStored(ctx context.Context, row store.TaskRow, retryable bool) error {
	state := (&cancelledError{retryable}).state()
	switch row.State {
	case state:
		return nil
	case store.TaskRunning:
	default:
		return vedette.Errorf(vedette.Conflict, "Task id: %s has ended already, as %s", row.ID, row.State)
	}
	task, err := decodeTask(row)
	if err != nil {
		return err
	}
	task.finish(state, cancelledText)
	return t.storeEnd(ctx, row, task)
}

// Get returns a task.
func (t *Tasks) Get(ctx context.Context, id string) (Task, error) {
	t.mu.Lock()
	r := t.running[id]
	t.mu.Unlock()
	if r != nil && r.isStarted() {
		return r.currentTask(), nil
	}
	row, err := t.row(ctx, id)
	if err != nil {
		return Task{}, err
	}
	return decodeTask(row)
}

// List returns the tasks that run, on any server, the oldest first; a thousand
// at most, and no more than store.MaxTaskBytes of them.
func (t *Tasks) List(ctx context.Context) ([]Task, error) {
	rows, err := t.cfg.Store.RunningTasks(ctx, maxListed)
	if err != nil {
		return nil, err
	}
	all := []Task{}
	for _, row := range rows {
		task, err := decodeTask(row)
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		r := t.running[row.ID]
		t.mu.Unlock()
		if r != nil && r.isStarted() {
			task = r.currentTask()
		}
		all = append(all, task)
	}
	return all, nil
}

const maxListed = 1000

func (t *Tasks) row(ctx context.Context, id string) (store.TaskRow, error) {
	row, err := t.cfg.Store.Task(ctx, id)
	if vedette.KindOf(err) == vedette.NotFound {
		return row, notFound(id)
	}
	if err != nil {
		return row, fmt.Errorf("read task %s: %w", id, err)
	}
	return row, nil
}

// register counts a run among those that run, if there is room.
func (t *Tasks) register(r *taskRun) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return vedette.Errorf(vedette.Unavailable, "the server is stopping; try again, another one may answer")
	case len(t.running) >= t.cfg.MaxTasks:
		return vedette.Errorf(vedette.Unavailable, "%d tasks run on this server, which is as many as it takes; try again when some have ended", len(t.running))
	case t.running[r.id] != nil:
		return vedette.Errorf(vedette.Conflict, "task %s runs again already", r.id)
	}
	t.running[r.id] = r
	return nil
}

func (t *Tasks) unregister(r *taskRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, r.id)
	t.idle.Broadcast()
	r.cancel(nil)
	close(r.done)
}
