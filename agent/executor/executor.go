// Package executor executes an agent's operations, and keeps their outcomes until the server has
// acknowledged them.
//
// Guarantees:
//
//   - An operation that is received twice takes effect once. If it has ended, the second request is
//     answered from memory.
//   - An operation changes nothing after its deadline, nor while the server may have given it to another
//     agent: see Control.
//   - An outcome that was not sent or not acknowledged is sent again on the next connection.
//   - Accounts take turns. The operations of one account, however slow its cluster is, leave workers,
//     logs and memory for those of others.
//   - Memory is limited. Above the limit the oldest outcomes lose their payload, and those of
//     read-only operations are forgotten, because these can be repeated.
//
// Nothing survives the process. The server recognizes a new process by its name; server/dispatch
// describes what it does then.
//
// Waiting for deletions is the last part of a delete and needs no worker: 64 deletions of objects with finalizers, whose
// callers had left, kept all other accounts of an agent waiting for 90 seconds. A recreate keeps its worker, because it
// changes something after its wait, and might get none again. When the caller of such a wait leaves, the server sends Cancel
// and the wait ends; the outcome says that the object is being deleted. A request with an id is not cancelled, because its
// caller may come back and ask for the outcome. A worker is a goroutine, so many are cheap; what operations hold is limited
// by memory (docs/decisions/0116).
package executor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
)

// Config limits an Executor. Zero values mean the defaults.
type Config struct {
	MaxWorkers      int           // operations that are executed at once; default 512, of one account an eighth of it
	MaxWaits        int           // operations that wait, without a worker, until objects are gone; default 512, of one account an eighth
	MaxStreams      int           // logs that are read at once; default 64, of one account a quarter
	MaxQueued       int           // operations of one account that wait for a worker; default 256
	MaxOutcomeBytes int           // bytes of all outcomes that are kept; default 8 MiB
	AckTimeout      time.Duration // how long an outcome is kept without an acknowledgement; default 15 min
	// StopTimeout is how long operations may continue, and outcomes wait for their acknowledgement, when the agent stops; default 8 s.
	StopTimeout time.Duration
	// Memory limits the bytes of operations, by account. Nil means no limit.
	Memory *fair.Split
}

func (c *Config) setDefaults() {
	for _, d := range []struct {
		field *int
		value int
	}{{&c.MaxWorkers, 512}, {&c.MaxWaits, 512}, {&c.MaxStreams, 64}, {&c.MaxQueued, 256}, {&c.MaxOutcomeBytes, 8 << 20}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.AckTimeout == 0 {
		c.AckTimeout = 15 * time.Minute
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 8 * time.Second
	}
}

// Delivery is one arrival of an operation over a connection.
type Delivery interface {
	// Late returns nil until the deadline of the operation by its server's clock, and why it is late after it.
	Late() error
	// Interrupted returns nil while the server cannot have given the operation to another agent.
	Interrupted() error
}

// Handler executes an operation to its outcome.
type Handler func(context.Context, vedette.Operation, *Control) vedette.Outcome

// Executor executes operations. It is safe for concurrent use.
type Executor struct {
	cfg         Config
	handler     Handler
	sendOutcome func(vedette.Outcome)
	workers     *fair.Line // keys are accounts
	waits       *fair.Line // likewise
	streams     *fair.Line // likewise

	mu           sync.Mutex
	ctx          context.Context // of operations; nil before Run
	entries      map[vedette.OperationID]*entry
	finished     []*entry // in the order in which they ended
	outcomeBytes int      // of the outcomes of finished
	wg           sync.WaitGroup
}

// entry is one operation: running, then finished, then removed.
type entry struct {
	id         vedette.OperationID
	running    RunningOperation
	readOnly   bool
	cancel     context.CancelCauseFunc
	finishedAt time.Time // zero while it is running
	isStream   bool      // its outcome is sent while it is produced, once
	isLog      bool      // its outcome is a log
	outcome    vedette.Outcome
	size       int
	sending    int              // how many goroutines send the outcome
	memory     *fair.SplitGrant // of the manifest, and then of the outcome
	control    *Control
	removed    bool
}

func (e *entry) isFinished() bool { return !e.finishedAt.IsZero() }

// New returns an Executor that executes operations by handler and passes each outcome to
// sendOutcome, which returns when the outcome is sent or cannot be. If the outcome has a Stream or
// More, sendOutcome closes it and calls Forget, which it may do later.
func New(cfg Config, handler Handler, sendOutcome func(vedette.Outcome)) *Executor {
	cfg.setDefaults()
	line := func(capacity, part int) *fair.Line {
		return fair.New(fair.Config{Capacity: int64(capacity), Share: max(1, int64(capacity/part)), Queue: cfg.MaxQueued})
	}
	return &Executor{cfg: cfg, handler: handler, sendOutcome: sendOutcome, workers: line(cfg.MaxWorkers, 8), waits: line(cfg.MaxWaits, 8),
		streams: line(cfg.MaxStreams, 4), entries: map[vedette.OperationID]*entry{}}
}

// Run executes operations until ctx ends. It returns when the running ones have ended, and the server has their outcomes, for which
// they have StopTimeout. Meanwhile others are accepted, because the server may have sent them before it knew that the agent stops.
func (x *Executor) Run(ctx context.Context) error {
	operations, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	x.mu.Lock()
	x.ctx = operations
	x.mu.Unlock()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			x.drain(stop)
			x.wg.Wait()
			return nil
		case now := <-tick.C:
			x.expire(now)
		}
	}
}

// stopQuiet is for how long nothing must have been running when the executor stops: what was sent has arrived then.
const stopQuiet = 200 * time.Millisecond

// drain waits until no operation has been running, and no outcome waiting for its acknowledgement, for stopQuiet, or until StopTimeout
// has passed, and then stops those that run. Logs that are being read end at once.
func (x *Executor) drain(stop context.CancelFunc) {
	timeout := time.NewTimer(x.cfg.StopTimeout)
	defer timeout.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	idleSince := time.Now()
	for {
		if x.isBusy() {
			idleSince = time.Now()
		} else if time.Since(idleSince) >= stopQuiet && x.stopIfIdle(stop) {
			return
		}
		select {
		case <-timeout.C:
			x.mu.Lock()
			stop()
			x.mu.Unlock()
			return
		case <-tick.C:
		}
	}
}

// IsBusy reports whether an operation runs, or its outcome waits for its acknowledgement, for less than ackWait. Logs do not count,
// because they may last for hours.
func (x *Executor) IsBusy(ackWait time.Duration) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.entries {
		if !e.isLog && (!e.isFinished() || e.isStream || time.Since(e.finishedAt) < ackWait) {
			return true
		}
	}
	return false
}

func (x *Executor) isBusy() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.isBusyLocked()
}

// isBusyLocked reports whether an operation runs, or its outcome waits for its acknowledgement, however long.
func (x *Executor) isBusyLocked() bool {
	for _, e := range x.entries {
		if !e.isLog {
			return true
		}
	}
	return false
}

// stopIfIdle stops accepting operations if there is nothing to wait for.
func (x *Executor) stopIfIdle(stop context.CancelFunc) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.isBusyLocked() {
		return false
	}
	stop()
	return true
}

// Submit starts an operation and returns at once. If it has not ended, the new delivery replaces the earlier
// one. A nil delivery is always wanted.
func (x *Executor) Submit(op vedette.Operation, d Delivery) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.entries[op.ID]; e != nil {
		e.control.redeliver(d)
		if e.isFinished() && !e.isStream {
			e.sending++
			go x.send(e, e.outcome)
		}
		return
	}
	if x.ctx == nil || x.ctx.Err() != nil {
		return // the agent stops; the server sees that by the connection
	}
	ctx, cancel := context.WithCancelCause(x.ctx)
	e := &entry{id: op.ID, running: newRunningOperation(op, time.Now()), readOnly: op.Args == nil || op.Reads(), cancel: cancel}
	e.control = &Control{executor: x, op: op, delivery: d, redelivered: make(chan struct{}), abandoned: make(chan struct{})}
	x.entries[op.ID] = e
	if e.memory = x.cfg.Memory.TryAcquire(string(op.Account), operationSize(op)); e.memory != nil {
		e.control.Memory = e.memory
		x.wg.Go(func() { x.finish(e, x.execute(ctx, e, op)) })
		return
	}
	x.wg.Go(func() { x.finish(e, x.executeWithMemory(ctx, e, op)) })
}

// executeWithMemory executes an operation when there is memory for it, until its deadline. Others may wait
// for theirs, which a small operation does not overtake.
func (x *Executor) executeWithMemory(ctx context.Context, e *entry, op vedette.Operation) vedette.Outcome {
	waitCtx, cancel := withDeadline(ctx, op)
	memory, err := x.cfg.Memory.Acquire(waitCtx, string(op.Account), operationSize(op))
	cancel()
	if err != nil {
		return noMemoryOutcome(op)
	}
	x.mu.Lock()
	e.memory, e.control.Memory = memory, memory
	x.mu.Unlock()
	return x.execute(ctx, e, op)
}

// execute executes an operation when it has a worker. If the outcome has More, the operation keeps the
// worker until that is closed.
func (x *Executor) execute(ctx context.Context, e *entry, op vedette.Operation) vedette.Outcome {
	worker, err := x.acquireWorker(ctx, op)
	if late := e.control.late(); late != nil {
		worker.Release()
		return lateOutcome(op, late)
	}
	if err != nil {
		return busyOutcome(op, err, x.cfg)
	}
	e.control.setWorker(worker)
	out := x.handler(ctx, op, e.control)
	if out.More != nil {
		out.More = &releasingObjects{out.More, e.control.releaseWorker}
		return out
	}
	e.control.releaseWorker()
	if out.Stream == nil {
		return out
	}
	if e.control.stream = x.streams.TryAcquire(string(op.Account), 1); e.control.stream == nil {
		_ = out.Stream.Close() // nothing was read from it
		return tooManyStreamsOutcome(op, max(1, x.cfg.MaxStreams/4))
	}
	return out
}

// acquireWorker waits for a worker until the operation's deadline.
func (x *Executor) acquireWorker(ctx context.Context, op vedette.Operation) (*fair.Grant, error) {
	ctx, cancel := withDeadline(ctx, op)
	defer cancel()
	return x.workers.Acquire(ctx, string(op.Account), 1)
}

// withDeadline returns a context that ends at the operation's deadline, if it has one.
func withDeadline(ctx context.Context, op vedette.Operation) (context.Context, context.CancelFunc) {
	if op.Deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, op.Deadline)
}

// finish records and sends an outcome.
func (x *Executor) finish(e *entry, out vedette.Outcome) {
	out.ID = e.id
	x.mu.Lock()
	canceled := e.removed
	e.sending++
	x.finishLocked(e, out)
	x.mu.Unlock()
	if canceled && closeStream(out) { // nobody reads it
		out = vedette.Outcome{ID: e.id, State: vedette.Failed, Message: errCanceled.Error()}
		e.control.stream.Release()
	}
	x.send(e, out)
}

// closeStream closes what an outcome is sent from, and reports whether there is such.
func closeStream(out vedette.Outcome) bool {
	if out.Stream != nil {
		_ = out.Stream.Close() // nothing was read from it
	}
	if out.More != nil {
		out.More.Close()
	}
	return out.Stream != nil || out.More != nil
}

// send sends an outcome. The caller has counted it in e.sending.
func (x *Executor) send(e *entry, out vedette.Outcome) {
	x.sendOutcome(out)
	x.mu.Lock()
	defer x.mu.Unlock()
	e.sending--
	e.releaseMemoryLocked()
}

// releaseMemoryLocked releases the memory of an outcome that is neither kept nor being sent.
func (e *entry) releaseMemoryLocked() {
	if e.sending == 0 && (e.removed || !e.isStream && e.size == 0) {
		e.memory.Release()
	}
}

func (x *Executor) finishLocked(e *entry, out vedette.Outcome) {
	e.finishedAt = time.Now()
	if out.Stream != nil || out.More != nil {
		e.isStream, e.isLog = true, out.Stream != nil
		return
	}
	e.cancel(nil)
	if x.entries[e.id] != e {
		return // it was canceled
	}
	e.outcome, e.size = out, outcomeSize(out)
	e.memory.Shrink(e.memory.Units() - int64(e.size))
	x.finished = append(x.finished, e)
	x.outcomeBytes += e.size
	for i := 0; x.outcomeBytes > x.cfg.MaxOutcomeBytes && i < len(x.finished); {
		if x.dropPayloadLocked(x.finished[i]) {
			i++
		}
	}
}

// dropPayloadLocked removes the payload of an outcome. That of a read-only operation it removes
// completely. It reports whether the entry still exists.
func (x *Executor) dropPayloadLocked(e *entry) bool {
	if e.readOnly {
		x.removeLocked(e)
		return false
	}
	e.outcome.Objects = nil
	e.outcome.DropCacheObject()
	e.outcome.Result = nil
	e.outcome.Warnings = nil
	e.outcome.Changes = nil
	x.outcomeBytes -= e.size
	e.size = 0
	e.releaseMemoryLocked()
	return true
}

func (x *Executor) removeLocked(e *entry) {
	e.cancel(nil)
	delete(x.entries, e.id)
	e.removed = true
	if e.isFinished() {
		defer e.releaseMemoryLocked()
	}
	if e.isStream {
		e.control.stream.Release()
		return
	}
	for i, other := range x.finished {
		if other == e {
			x.finished = append(x.finished[:i], x.finished[i+1:]...)
			x.outcomeBytes -= e.size
			return
		}
	}
}

// errCanceled is why a read-only operation was canceled: nobody waits for its outcome any more.
var errCanceled = errors.New("the caller has left")

// Cancel stops an operation whose outcome is no longer needed, if it is read-only. Others continue,
// because stopping halfway would leave unknown what took effect, but end their waiting.
func (x *Executor) Cancel(id vedette.OperationID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.entries[id]
	switch {
	case e == nil:
	case e.readOnly:
		e.cancel(errCanceled)
		x.removeLocked(e)
	default:
		e.control.abandon()
	}
}

// Forget removes an operation whose outcome is acknowledged, or whose stream is closed.
func (x *Executor) Forget(id vedette.OperationID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.entries[id]; e != nil && e.isFinished() {
		x.removeLocked(e)
	}
}

// Unacknowledged returns the outcomes to send on a new connection, oldest first.
func (x *Executor) Unacknowledged() []vedette.Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	var outcomes []vedette.Outcome
	for _, e := range x.finished {
		outcomes = append(outcomes, e.outcome)
	}
	return outcomes
}

// Running returns the number of operations that have not ended.
func (x *Executor) Running() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, e := range x.entries {
		if !e.isFinished() {
			n++
		}
	}
	return n
}

// expire removes outcomes that were not acknowledged for AckTimeout, because their server is gone.
func (x *Executor) expire(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.finished) > 0 && now.Sub(x.finished[0].finishedAt) > x.cfg.AckTimeout {
		x.removeLocked(x.finished[0])
	}
}
