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
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/internal/tracing"
	"github.com/vedette-io/vedette/server/store/lease"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/tasks"
)

// orchestration is the phase of history lines that belong to no operation.
const orchestration = "ORCHESTRATION"

type taskRun struct {
	tasks   *Tasks
	id      string
	ops     []validatedOp // nil after they are done, because they contain the request
	options Options
	memory  *memory         // used by the goroutine that executes the operations
	ctx     context.Context // ends with a cause: errStopped, errTakenOver or a cancelledError
	cancel  context.CancelCauseFunc
	started atomic.Bool
	done    chan struct{} // closed by leave
	span    trace.Span    // from the request that submits the task to the end of the task

	journal journal    // of the current operation; used by the goroutine that executes the operations
	copier  *copier    // nil if there is no other server
	first   int        // the operation with which this run begins
	point   checkpoint // the state before it
	// isContinued is true if another server has begun the run.
	isContinued bool

	saving  sync.Mutex // held while the row is written
	isSaved bool       // the end is being stored; guarded by saving
	mu      sync.Mutex
	task    Task

	linesOmitted bool // from the history
}

var (
	errStopped   = errors.New("the server that runs the task is stopping")
	errTakenOver = errors.New("another server took over the task")
)

// cancelledError is the cause of a canceled task.
type cancelledError struct{ retryable bool }

func (*cancelledError) Error() string { return cancelledText }

const cancelledText = "The task was ended by request"

func (e *cancelledError) state() tasks.State {
	if e.retryable {
		return tasks.Retryable
	}
	return tasks.Failed
}

// newRun returns a run that outlives the request with context ctx. The run has the id and the trace of
// the request.
func (t *Tasks) newRun(ctx context.Context, id string, ops []validatedOp, o Options, m *memory) *taskRun {
	r := &taskRun{tasks: t, id: id, ops: ops, options: o, memory: m, done: make(chan struct{})}
	ctx, r.span = tracing.Start(ctx, "task", attribute.String("vedette.task", id))
	r.ctx, r.cancel = context.WithCancelCause(tracing.Inherit(requestid.Inherit(t.baseCtx, ctx), ctx))
	r.task = Task{ID: id, RequestID: o.RequestID, Owner: string(t.owner), User: o.User, Accounts: opAccounts(ops), State: tasks.Running,
		Started: time.Now(),
		History: []HistoryEntry{{orchestration, "Initializing Orchestration Task"}}, Results: []json.RawMessage{}}
	r.journal = journal{run: rand.Text(), began: time.Now()}
	return r
}

// end ends the run as canceled, and waits until that is stored.
func (r *taskRun) end(ctx context.Context, retryable bool) error {
	r.cancel(&cancelledError{retryable})
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// beginCopy lets another server have a copy of the task.
func (r *taskRun) beginCopy() {
	if r.copier = r.tasks.newCopier(r); r.copier == nil {
		return
	}
	r.copier.moved = func() { r.saveProgress(r.copier.ctx) }
	if !r.isContinued {
		r.point = r.checkpoint(0, false, false)
	}
	r.copier.begin(r.point, r.journal.steps)
}

// checkpoint returns the state before an operation.
func (r *taskRun) checkpoint(op int, failed, lastFailed bool) checkpoint {
	body, err := r.currentTask().encodeBody()
	if err != nil { // tasks consist of decoded values
		panic(err)
	}
	return checkpoint{Op: op, Failed: failed, LastFailed: lastFailed, Body: body}
}

func (t *Tasks) start(r *taskRun) {
	r.started.Store(true)
	r.memory.keep()
	t.cfg.Log.InfoContext(r.ctx, "task started", "task", r.id, "user", r.options.Requester.User, "requester", r.options.Requester,
		"operations", opNames(r.ops),
		"accounts", opAccounts(r.ops))
	go func() {
		defer r.memory.grant.Release() // the task is forgotten
		defer t.unregister(r)
		defer r.span.End()
		if r.isContinued {
			r.beginCopy()
			r.saveProgress(r.ctx)
		}
		r.runAll()
	}()
}

func opNames(ops []validatedOp) []string {
	var names []string
	for _, op := range ops {
		if op.operation != nil { // it has ended
			names = append(names, op.name)
		}
	}
	return names
}

func opAccounts(ops []validatedOp) []vedette.AccountName {
	names := []vedette.AccountName{}
	for _, op := range ops {
		if op.operation != nil { // it has ended
			names = append(names, op.account())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *taskRun) isStarted() bool { return r.started.Load() }

// currentTask returns the current state of the task. The end is visible only after it is
// stored, so that all servers report the same.
func (r *taskRun) currentTask() Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	task := r.task
	task.History = slices.Clone(task.History)
	task.Results = slices.Clone(task.Results)
	task.Outputs = slices.Clone(task.Outputs)
	return task
}

// addHistory adds a line of a bounded length, or one that memory was taken for.
func (r *taskRun) addHistory(phase, status string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.task.History = append(r.task.History, HistoryEntry{phase, status})
}

// report adds a line if there is memory for it.
func (r *taskRun) report(phase, status string) {
	if r.memory.tryTake(len(phase) + len(status)) {
		r.addHistory(phase, status)
		return
	}
	if !r.linesOmitted {
		r.linesOmitted = true
		r.addHistory(phase, "Further lines are left out: running tasks have used the memory that this server has for them")
	}
}

// runAll executes the operations one after the other. If one fails, the next one still runs.
func (r *taskRun) runAll() {
	failed, lastFailed := r.point.Failed, r.point.LastFailed
	for i := r.first; i < len(r.ops); i++ {
		if r.ctx.Err() != nil {
			break
		}
		op := r.ops[i]
		if i > r.first {
			r.journal = journal{run: r.journal.run, began: r.journal.began, op: i}
			if r.copier != nil {
				r.copier.beginOp(r.checkpoint(i, failed, lastFailed))
			}
		}
		if i > 0 && !lastFailed {
			r.addHistory(orchestration, completedStatus(failed))
		}
		r.addHistory(orchestration, "Processing op: "+op.class)
		r.memory.beginOp(op.bytes)
		lastFailed = !r.runOp(op)
		failed = failed || lastFailed
		r.ops[i], op = validatedOp{}, validatedOp{}
		r.memory.endOp()
	}
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, errTakenOver):
		r.tasks.cfg.Log.WarnContext(r.ctx, "another server took over a running task", "task", r.id)
	case errors.Is(cause, errStopped) && r.copier.handOver():
		r.tasks.cfg.Log.InfoContext(r.ctx, "another server goes on with a running task", "task", r.id)
	case cause != nil:
		r.finish(r.interruptedTask(cause))
	default:
		r.finish(r.completedTask(failed, lastFailed))
	}
}

// completedTask returns the task after all operations. If the last operation failed, its
// message stays the last line, because Deck shows that line.
func (r *taskRun) completedTask(failed, lastFailed bool) Task {
	task := r.currentTask()
	switch {
	case !failed:
		task.finish(tasks.Succeeded, completedStatus(failed))
	case lastFailed:
		task.State = tasks.Failed
	default:
		task.finish(tasks.Failed, completedStatus(failed))
	}
	return task
}

// completedStatus returns the line after each operation that succeeded. After the last
// operation it ends the task, and is visible only after it is stored.
func completedStatus(failed bool) string {
	if failed {
		return "Orchestration completed with errors, see prior task logs."
	}
	return "Orchestration completed."
}

// interruptedTask returns the task if it is stopped before its end.
func (r *taskRun) interruptedTask(cause error) Task {
	task := r.currentTask()
	if cancelled, ok := errors.AsType[*cancelledError](cause); ok {
		task.finish(cancelled.state(), cancelledText)
	} else {
		task.abandon("The server that ran this task was stopped before it ended.")
	}
	return task
}

func (r *taskRun) runOp(op validatedOp) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			// The panic value can contain the request, the stack does not.
			id := rand.Text()[:10]
			r.tasks.cfg.Log.ErrorContext(r.ctx, "operation panicked", "id", id, "task", r.id, "operation", op.name, "stack", string(debug.Stack()))
			r.fail(op, &failure{class: "RuntimeException", message: "internal error; see the server's log for id " + id})
		}
	}()
	result, err := op.run(r.ctx, &opContext{taskRun: r, op: op})
	if errors.Is(err, errReported) {
		return false
	}
	if err != nil {
		r.fail(op, r.toFailure(op, err))
		return false
	}
	if result == nil {
		return true
	}
	if err := r.keepResult(encodeResult(result)); err != nil {
		r.fail(op, &failure{class: "IllegalStateException", message: "The clusters were changed, but the result is left out: " + err.Error()})
		return false
	}
	return true
}

// fail adds the failure of an operation. Its texts are cut if there is no memory for them.
func (r *taskRun) fail(op validatedOp, f *failure) {
	const messages = 3 // in the history, and twice in the result
	if !r.memory.tryTake(messages*len(f.message) + 2*len(f.cause)) {
		f = &failure{class: f.class, message: textcheck.Truncate(f.message, maxFailureBytes), cause: textcheck.Truncate(f.cause, maxFailureBytes)}
	}
	r.addHistory(orchestration, "Orchestration failed: "+op.class+" | "+f.class+": ["+f.message+"]")
	r.addResult(encodeResult(f.exception(op.class)))
}

func encodeResult(result any) json.RawMessage {
	raw, err := json.Marshal(result)
	if err != nil { // results consist of decoded values
		panic(err)
	}
	return raw
}

// keepResult waits for the memory of a result, and adds it.
func (r *taskRun) keepResult(raw json.RawMessage) error {
	if err := r.memory.grow(r.ctx, keptCopies*int64(len(raw))); err != nil {
		return err
	}
	r.addResult(raw)
	return nil
}

func (r *taskRun) addResult(raw json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.task.Results = append(r.task.Results, raw)
}

// saveProgress stores the progress before each change in a cluster. If this server is lost,
// the server that ends the task can then report what was done.
func (r *taskRun) saveProgress(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	r.saving.Lock()
	defer r.saving.Unlock()
	if r.isSaved {
		return
	}
	err := r.save(ctx, r.currentTask())
	switch {
	case isTakenOver(err):
		r.cancel(errTakenOver)
	case err != nil && ctx.Err() == nil:
		r.tasks.cfg.Log.WarnContext(ctx, "cannot store the progress of a task", "task", r.id, "error", err)
	}
}

func (r *taskRun) save(ctx context.Context, task Task) error {
	row, err := r.row(task)
	if err != nil {
		return err
	}
	return r.tasks.cfg.Store.SaveTask(ctx, row)
}

func (r *taskRun) row(task Task) (tasks.Task, error) {
	body, err := task.encodeBodyWith(r.copier.standby())
	row := tasks.Task{ID: task.ID, RequestID: task.RequestID, Server: vedette.ServerID(task.Owner), Application: r.options.Application,
		User: r.options.User, State: task.State, Body: body, Created: task.Started, LastSeen: time.Now()}
	if !task.Running() {
		row.Ended = row.LastSeen
	}
	return row, err
}

// finish stores the end of a task, however long the database is unavailable.
// Until then readers see the task as running. When the server stops, finish tries
// once more; if that fails, another server ends the task.
func (r *taskRun) finish(task Task) {
	r.saving.Lock()
	r.isSaved = true
	r.saving.Unlock()
	log := r.tasks.cfg.Log.With("task", r.id)
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 15*time.Second
	attempt := func() (struct{}, error) { return struct{}{}, r.tryFinish(&task) }
	_, err := backoff.Retry(r.tasks.baseCtx, attempt, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, _ time.Duration) {
			log.WarnContext(r.ctx, "retrying to store the end of a task", "error", err)
		}))
	if err != nil && r.tasks.baseCtx.Err() != nil && !isTakenOver(err) {
		err = r.saveEnd(task)
	}
	switch {
	case err == nil:
		r.mu.Lock()
		r.task = task
		r.mu.Unlock()
		log.InfoContext(r.ctx, "task ended", "state", string(task.State))
		r.tasks.cfg.OnEnd(task.State, time.Since(task.Started))
	case isTakenOver(err):
		log.WarnContext(r.ctx, "another server took over a running task")
	default:
		log.ErrorContext(r.ctx, "cannot store the end of a task, another server will end it", "error", err)
	}
}

// tryFinish stores the end of a task. A task that the database rejects is trimmed
// for the next attempt.
func (r *taskRun) tryFinish(task *Task) error {
	err := r.saveEnd(*task)
	if isTakenOver(err) {
		return backoff.Permanent(err)
	}
	if errors.Is(err, sqldb.ErrData) { // trimming does not help against other errors
		task.trimForStorage()
	}
	return err
}

// isTakenOver reports whether another server owns the task now, or everything that this server had.
func isTakenOver(err error) bool {
	return vedette.KindOf(err) == vedette.Conflict || errors.Is(err, lease.ErrLost)
}

const finalStoreTimeout = 3 * time.Second

// saveEnd stores the end of a task, even if the context of the run has ended.
func (r *taskRun) saveEnd(task Task) error {
	timeout := storeTimeout
	if r.tasks.baseCtx.Err() != nil {
		timeout = finalStoreTimeout
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), timeout)
	defer cancel()
	return r.save(ctx, task)
}
