// Package executor executes an agent's operations, and keeps their outcomes until the server has
// acknowledged them.
//
// Guarantees:
//
//   - An operation that is received twice takes effect once. If it has ended, the second request is
//     answered from memory.
//   - An outcome that was not sent or not acknowledged is sent again on the next connection.
//   - Memory is limited. Above the limit the oldest outcomes lose their payload, and those of
//     read-only operations are forgotten, because these can be repeated.
//
// Nothing survives the process. The server recognizes a new process by its name; server/dispatch
// describes what it does then.
package executor

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/vedette-io/vedette"
)

// Config limits an Executor. Zero values mean the defaults.
type Config struct {
	MaxWorkers      int           // operations that are executed at once; default 64
	MaxStreams      int           // logs that are read at once; default 64
	MaxOutcomeBytes int           // bytes of all outcomes that are kept; default 8 MiB
	AckTimeout      time.Duration // how long an outcome is kept without an acknowledgement; default 15 min
}

func (c *Config) setDefaults() {
	if c.MaxWorkers == 0 {
		c.MaxWorkers = 64
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = 64
	}
	if c.MaxOutcomeBytes == 0 {
		c.MaxOutcomeBytes = 8 << 20
	}
	if c.AckTimeout == 0 {
		c.AckTimeout = 15 * time.Minute
	}
}

// Executor executes operations. It is safe for concurrent use.
type Executor struct {
	cfg         Config
	handler     func(context.Context, vedette.Operation) vedette.Outcome
	sendOutcome func(vedette.Outcome)
	workers     *semaphore.Weighted

	mu           sync.Mutex
	ctx          context.Context // of Run; nil before Run
	entries      map[vedette.OperationID]*entry
	finished     []*entry // in the order in which they ended
	outcomeBytes int      // of the outcomes of finished
	streams      int      // entries whose outcome is a stream
	wg           sync.WaitGroup
}

// entry is one operation: running, then finished, then removed.
type entry struct {
	id         vedette.OperationID
	running    RunningOperation
	readOnly   bool
	cancel     context.CancelFunc
	finishedAt time.Time // zero while it is running
	isStream   bool      // its outcome has a Stream, which can be read only once
	outcome    vedette.Outcome
	size       int
}

func (e *entry) isFinished() bool { return !e.finishedAt.IsZero() }

// New returns an Executor that executes operations by handler and passes each outcome to
// sendOutcome, which may fail to send it, but must not block for long. If the outcome has a Stream,
// sendOutcome closes it and calls Forget.
func New(cfg Config, handler func(context.Context, vedette.Operation) vedette.Outcome, sendOutcome func(vedette.Outcome)) *Executor {
	cfg.setDefaults()
	return &Executor{cfg: cfg, handler: handler, sendOutcome: sendOutcome, workers: semaphore.NewWeighted(int64(cfg.MaxWorkers)),
		entries: map[vedette.OperationID]*entry{}}
}

// Run executes operations until ctx ends. It returns when the running ones have ended.
func (x *Executor) Run(ctx context.Context) error {
	x.mu.Lock()
	x.ctx = ctx
	x.mu.Unlock()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			x.wg.Wait()
			return nil
		case now := <-tick.C:
			x.expire(now)
		}
	}
}

// Submit starts an operation and returns at once.
func (x *Executor) Submit(op vedette.Operation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.entries[op.ID]; e != nil {
		if e.isFinished() && !e.isStream {
			go x.sendOutcome(e.outcome)
		}
		return
	}
	if x.ctx == nil || x.ctx.Err() != nil {
		return // the agent stops; the server sees that by the connection
	}
	ctx, cancel := context.WithCancel(x.ctx)
	e := &entry{id: op.ID, running: newRunningOperation(op, time.Now()), readOnly: op.Args == nil || op.Reads(), cancel: cancel}
	x.entries[op.ID] = e
	x.wg.Go(func() { x.execute(ctx, e, op) })
}

func (x *Executor) execute(ctx context.Context, e *entry, op vedette.Operation) {
	out, executed := vedette.Outcome{}, false
	if x.acquireWorker(ctx, op) {
		out, executed = x.handler(ctx, op), true
		x.workers.Release(1)
	}
	if !executed {
		out = busyOutcome(op, x.cfg.MaxWorkers)
	}
	out.ID = op.ID
	x.mu.Lock()
	if out.Stream != nil && x.streams >= x.cfg.MaxStreams {
		_ = out.Stream.Close() // nothing was read from it
		out = tooManyStreamsOutcome(op, x.cfg.MaxStreams)
	}
	x.finishLocked(e, out)
	x.mu.Unlock()
	x.sendOutcome(out)
}

// acquireWorker waits for a worker until the operation's deadline, and reports whether it got one.
func (x *Executor) acquireWorker(ctx context.Context, op vedette.Operation) bool {
	if !op.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, op.Deadline)
		defer cancel()
	}
	return x.workers.Acquire(ctx, 1) == nil
}

func busyOutcome(op vedette.Operation, workers int) vedette.Outcome {
	return vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: http.StatusServiceUnavailable, Reason: "Busy",
		Message: "no worker of the agent was free before the deadline; nothing was done. The agent executes at most " + strconv.Itoa(workers) +
			" operations at once"}
}

func tooManyStreamsOutcome(op vedette.Operation, streams int) vedette.Outcome {
	return vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: http.StatusServiceUnavailable, Reason: "Busy",
		Message: "the agent already sends " + strconv.Itoa(streams) + " logs, which is the limit; stop following one of them"}
}

func (x *Executor) finishLocked(e *entry, out vedette.Outcome) {
	e.finishedAt = time.Now()
	if out.Stream != nil {
		e.isStream = true
		x.streams++
		return
	}
	e.cancel()
	if x.entries[e.id] != e {
		return // it was canceled
	}
	e.outcome, e.size = out, outcomeSize(out)
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
	e.outcome.Objects, e.outcome.CacheObject, e.outcome.Result, e.outcome.Warnings = nil, nil, nil, nil
	x.outcomeBytes -= e.size
	e.size = 0
	return true
}

func (x *Executor) removeLocked(e *entry) {
	e.cancel()
	delete(x.entries, e.id)
	if e.isStream {
		x.streams--
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

// Cancel stops an operation whose outcome is no longer needed, if it is read-only. Others continue,
// because stopping halfway would leave unknown what took effect.
func (x *Executor) Cancel(id vedette.OperationID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.entries[id]; e != nil && e.readOnly {
		x.removeLocked(e)
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
	return len(x.entries) - len(x.finished) - x.streams
}

// expire removes outcomes that were not acknowledged for AckTimeout, because their server is gone.
func (x *Executor) expire(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.finished) > 0 && now.Sub(x.finished[0].finishedAt) > x.cfg.AckTimeout {
		x.removeLocked(x.finished[0])
	}
}

func outcomeSize(out vedette.Outcome) int {
	n := 256 + len(out.Message) + len(out.Result)
	for _, o := range out.Objects {
		n += len(o)
	}
	for _, text := range out.Warnings {
		n += len(text)
	}
	return n
}
