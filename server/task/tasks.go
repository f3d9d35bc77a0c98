package task

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/kinds"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// dispatcher executes an operation in its account's cluster. It returns exactly one outcome,
// at the latest soon after the operation's deadline or the end of ctx.
type dispatcher interface {
	Execute(ctx context.Context, op vedette.Operation) vedette.Outcome
}

// accountStore reads accounts and the kinds that they report.
type accountStore interface {
	Account(ctx context.Context, name vedette.AccountName) (registry.Account, error)
	Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]read.FeedStatus, error)
}

// taskStore stores tasks. A task is written only by the server that owns it, and only while it
// runs; otherwise the error is vedette.Conflict.
type taskStore interface {
	taskWriter
	taskReader
	taskMaintainer
}

type taskWriter interface {
	// CreateTask stores a task. If there is a task with the same request ID, it returns that
	// task and false.
	CreateTask(ctx context.Context, row tasks.Task) (tasks.Task, bool, error)
	SaveTask(ctx context.Context, row tasks.Task) error
	// AcquireTask makes another server the owner of a task, to end it or to run it again.
	AcquireTask(ctx context.Context, id string, from, to vedette.ServerID) (tasks.Task, error)
}

type taskReader interface {
	Task(ctx context.Context, id string) (tasks.Task, error)
	// TaskOwners returns the servers of all running tasks, by the task's ID.
	TaskOwners(ctx context.Context) (map[string]vedette.ServerID, error)
	RunningTasks(ctx context.Context, limit int) ([]tasks.Task, error)
}

type taskMaintainer interface {
	// TouchTasks records that a server, and with it its tasks, is alive.
	TouchTasks(ctx context.Context, server vedette.ServerID, at time.Time) error
	// AbandonedTasks returns running tasks of servers that were not seen for some time, and
	// all running tasks of the given server.
	AbandonedTasks(ctx context.Context, server vedette.ServerID, seenBefore time.Time) ([]tasks.Task, error)
	PurgeTasks(ctx context.Context, endedBefore time.Time, limit int) (int, error)
}

// Config configures tasks. Numbers that are zero have the default of their tag or in their comment.
type Config struct {
	Server   vedette.ServerID
	Store    taskStore
	Accounts accountStore
	Dispatch dispatcher
	// Kinds knows what clusters serve; nil for a cache of these tasks alone.
	Kinds discoverer
	// ArtifactStore is where Orca moves manifests. If nil, requests that refer to it are rejected.
	ArtifactStore artifactStore
	Rules         manifest.Rules // of deployments; those of an account's custom kinds are added
	Output        OutputPolicy   // which accounts' outputs are kept
	Log           *slog.Logger   // nil discards the log
	// OnEnd is called when a task has ended, with its state and how long it took. It must not block;
	// nil is for none.
	OnEnd func(state tasks.State, took time.Duration)

	// Maximum time of one operation in a cluster.
	Timeout time.Duration `config:"timeout" default:"30s" minimum:"1s"`
	// Maximum time until a deleted object is gone, in addition to its grace period.
	DeleteTimeout time.Duration `config:"deleteTimeout" default:"10m" minimum:"1s"`
	// Time for which finished tasks can be read.
	Retention time.Duration `config:"keep" default:"96h" minimum:"1s"`
	// Maximum number of tasks that run at the same time. All together have 256 MiB for their manifests,
	// and those of one client have half. Further tasks are rejected, and Orca tries them again.
	MaxTasks int `config:"maxConcurrent,alias=most" default:"2000" minimum:"1"`

	HeartbeatInterval time.Duration // between heartbeats of the server; default 5 s
	// AbandonAfter is the time without heartbeat after which other servers suspect that a
	// server is lost. They end its tasks some time later. Default 30 s.
	AbandonAfter    time.Duration
	ShutdownTimeout time.Duration // for running tasks when the server stops; default 8 s
	// MaxBytes bounds the memory of the tasks that run at once, as what was sent and answered becomes. One
	// source has half. More are rejected, and can be submitted again. Default 256 MiB.
	MaxBytes int64
	// Sharing is what tasks need of the servers that share the database; nil if none does. Then heartbeats say which servers run.
	Sharing *Sharing
	// MaxCopyBytes is MaxBytes for copies of the tasks of other servers, and for those that go on here. Default 128 MiB.
	MaxCopyBytes int64
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.OnEnd == nil {
		c.OnEnd = func(tasks.State, time.Duration) {}
	}
	if c.Kinds == nil && c.Dispatch != nil {
		c.Kinds = kinds.New(kinds.Config{Execute: c.Dispatch.Execute})
	}
	c = configfile.WithDefaults(c)
	if c.MaxBytes <= 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.MaxCopyBytes <= 0 {
		c.MaxCopyBytes = defaultMaxCopyBytes
	}
	for _, d := range []struct {
		field    *time.Duration
		fallback time.Duration
	}{
		{&c.HeartbeatInterval, 5 * time.Second}, {&c.AbandonAfter, 30 * time.Second}, {&c.ShutdownTimeout, 8 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.fallback
		}
	}
	return c
}

// Options are the options of a submission.
type Options struct {
	RequestID   string // a second submission with it returns the first task; may be empty
	Provider    string // empty: each description may set it
	Application string // recorded with the task
	User        string // who submits it, as the request claims; empty if unknown
	Requester   vedette.Requester
	Source      string // who pays for its memory: what a client cannot multiply
	// MayWrite decides whether the caller may change objects of an account. It returns nil or
	// vedette.Denied. Any other error means that it is unknown, and denies access too. If
	// MayWrite is nil, everything is allowed.
	MayWrite AccessFunc
	// MayReadApplication decides whether the caller may read what belongs to an application, like
	// MayWrite. It is asked about manifests in the artifact store.
	MayReadApplication func(ctx context.Context, application string) error
	// Remote executes the requests that it owns. If it is nil, all requests are executed here.
	Remote Remote
}

// Tasks runs tasks, and reads those of other servers. It is safe for concurrent use.
type Tasks struct {
	cfg   Config
	owner vedette.ServerID // this process; it changes when the server restarts

	baseCtx  context.Context // of runs, which outlive the request
	stopRuns context.CancelCauseFunc

	mu          sync.Mutex
	running     map[string]*taskRun
	copies      map[*HeldCopy]string // of tasks of other servers, with the ids of these
	closed      bool
	abandonRest bool                        // shutdown stopped waiting
	missed      map[string]missedHeartbeats // of tasks of other servers, by ID
	idle        sync.Cond                   // signals that running shrank or abandonRest was set
	// versionTurns lets one deployment at a time retry a version of a series.
	versionTurns *fair.Line
	budget       *fair.Line    // memory of tasks, by source
	copyBudget   *fair.Line    // memory of copies of other servers' tasks, by source
	ended        chan struct{} // has room for one: a server has ended
}

// New returns Tasks without any running task. Run must run too, so that other servers see that
// this one is alive.
func New(cfg Config) *Tasks {
	cfg = cfg.withDefaults()
	process := rand.Text()
	if cfg.Sharing != nil {
		process = cfg.Sharing.Process
	}
	t := &Tasks{cfg: cfg, owner: ownerOf(process, cfg.Server), running: map[string]*taskRun{}, copies: map[*HeldCopy]string{},
		versionTurns: fair.New(fair.Config{Capacity: math.MaxInt32, Share: 1}), budget: newBudget(cfg.MaxBytes),
		copyBudget: newBudget(cfg.MaxCopyBytes), ended: make(chan struct{}, 1)}
	t.baseCtx, t.stopRuns = context.WithCancelCause(context.Background())
	t.idle.L = &t.mu
	return t
}

// Submit validates operations and starts a task that executes them in order. It returns the ID
// of the task. If there is a task with the same request ID, it returns that one, unless it
// failed and can be retried.
//
// If it returns an error, nothing was started. Errors are ValidationError, UnknownError or
// another vedette.Error.
func (t *Tasks) Submit(ctx context.Context, requests []Request, o Options) (string, error) {
	m, err := t.admit(ctx, requests, o)
	if err != nil {
		return "", err
	}
	defer m.releaseUnlessKept()
	ops, err := t.prepare(ctx, requests, o, m)
	if err != nil {
		return "", err
	}
	if o.RequestID == "" {
		o.RequestID = rand.Text()
	}
	r := t.newRun(ctx, ulid.Make().String(), ops, o, m)
	if err := t.register(r); err != nil {
		return "", err
	}
	r.beginCopy() //nolint:contextcheck // the copy outlives the request
	row, created, err := t.create(ctx, r)
	if err == nil && created {
		t.start(r) //nolint:contextcheck // a task outlives the request that submits it
		return r.id, nil
	}
	t.unregister(r)
	if err != nil || row.State != tasks.Retryable {
		return row.ID, err
	}
	err = t.rerun(ctx, row, ops, o, m)
	if vedette.KindOf(err) == vedette.Conflict { // another server accepted the same request
		err = nil
	}
	return row.ID, err
}

// create stores a new task. It continues if the caller leaves, because a stored task must run.
func (t *Tasks) create(ctx context.Context, r *taskRun) (tasks.Task, bool, error) {
	row, err := r.row(r.task)
	if err != nil {
		return row, false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	stored, created, err := t.cfg.Store.CreateTask(ctx, row)
	if vedette.KindOf(err) == vedette.Unavailable { // it may be stored already
		stored, created, err = t.cfg.Store.CreateTask(ctx, row)
	}
	return stored, created, err
}

const storeTimeout = 20 * time.Second

// Restart runs a retryable task again. The caller must pass the operations again, because they
// are not stored.
func (t *Tasks) Restart(ctx context.Context, id string, requests []Request, o Options) error {
	row, err := t.row(ctx, id)
	if err != nil {
		return err
	}
	if row.State != tasks.Retryable {
		return vedette.Errorf(vedette.Invalid, "Task id: %s is not retryable", id)
	}
	m, err := t.admit(ctx, requests, o)
	if err != nil {
		return err
	}
	defer m.releaseUnlessKept()
	ops, err := t.prepare(ctx, requests, o, m)
	if err != nil {
		return err
	}
	return t.rerun(ctx, row, ops, o, m)
}

// rerun runs a stored task again with its ID. If two servers try, one succeeds.
func (t *Tasks) rerun(ctx context.Context, row tasks.Task, ops []validatedOp, o Options, m *memory) error {
	o.RequestID, o.Application = row.RequestID, row.Application
	previous, err := decodeTask(row)
	if err != nil {
		return err
	}
	if err := previous.checkRerun(ctx, o.MayWrite); err != nil {
		return err
	}
	if err := m.grow(ctx, keptCopies*int64(len(row.Body))); err != nil {
		return err
	}
	r := t.newRun(ctx, row.ID, ops, o, m)
	r.task.User, r.task.Accounts = previous.User, allAccounts(previous.Accounts, r.task.Accounts)
	r.task.History = append(previous.History, HistoryEntry{orchestration, "Re-initializing Orchestration Task (failure is retryable)"})
	r.task.Started, r.task.Outputs = previous.Started, previous.Outputs
	if err := t.register(r); err != nil {
		return err
	}
	r.beginCopy() //nolint:contextcheck // the copy outlives the request
	_, err = t.cfg.Store.AcquireTask(ctx, row.ID, row.Server, t.owner)
	if err != nil {
		t.unregister(r)
		return err
	}
	t.start(r) //nolint:contextcheck // a task outlives the request that submits it
	return nil
}

// Cancel ends a task as failed, either retryable or not. A running task stops at its current
// step.
func (t *Tasks) Cancel(ctx context.Context, id string, retryable bool) error {
	if r := t.run(id); r != nil {
		return r.end(ctx, retryable)
	}
	row, err := t.row(ctx, id)
	if err != nil {
		return err
	}
	if t.cancelElsewhere(ctx, row, retryable) {
		return nil
	}
	if row, err = t.row(ctx, id); err != nil { // it may have ended, or moved
		return err
	}
	return t.cancelStored(ctx, row, retryable)
}

// cancelStored ends a task that does not run here. It fails if the task has ended.
func (t *Tasks) cancelStored(ctx context.Context, row tasks.Task, retryable bool) error {
	state := (&cancelledError{retryable}).state()
	switch row.State {
	case state:
		return nil
	case tasks.Running:
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

// Running returns how many tasks run on this server.
func (t *Tasks) Running() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.running)
}

// Get returns a task.
func (t *Tasks) Get(ctx context.Context, id string) (Task, error) {
	if r := t.run(id); r != nil && r.isStarted() {
		return r.currentTask(), nil
	}
	row, err := t.row(ctx, id)
	if err != nil {
		return Task{}, err
	}
	if row, err = t.fresh(ctx, row); err != nil {
		return Task{}, err
	}
	return decodeTask(row)
}

// List returns running tasks of all servers, the oldest first. It returns at most 1000 tasks
// and tasks.MaxBytes.
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
		if r := t.run(row.ID); r != nil && r.isStarted() {
			task = r.currentTask()
		}
		all = append(all, task)
	}
	return all, nil
}

const maxListed = 1000

func (t *Tasks) row(ctx context.Context, id string) (tasks.Task, error) {
	row, err := t.cfg.Store.Task(ctx, id)
	if vedette.KindOf(err) == vedette.NotFound {
		return row, notFound(id)
	}
	if err != nil {
		return row, fmt.Errorf("read task %s: %w", id, err)
	}
	return row, nil
}

// register adds a run to the running ones, unless the limit is reached.
func (t *Tasks) register(r *taskRun) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return errClosed()
	case len(t.running) >= t.cfg.MaxTasks:
		return vedette.Errorf(vedette.Unavailable, "%d tasks are running on this server, which is the limit; retry later", len(t.running))
	case t.running[r.id] != nil:
		return vedette.Errorf(vedette.Conflict, "task %s is running again already", r.id)
	}
	t.running[r.id] = r
	return nil
}

func errClosed() error {
	return vedette.Errorf(vedette.Unavailable, "the server is stopping; retry on another server")
}

func (t *Tasks) unregister(r *taskRun) {
	r.copier.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, r.id)
	t.idle.Broadcast()
	r.cancel(nil)
	close(r.done)
}
