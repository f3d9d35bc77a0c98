// Package desk is where an agent's operations lie from when they come until the
// server has acknowledged their outcome.
//
// Guarantees:
//
//   - An operation that comes twice takes effect once: what was begun is not begun
//     again, and what has ended is answered from memory.
//   - An outcome that could not be sent, or was sent and not acknowledged, is there
//     to be sent on the next connection.
//   - Memory is bounded. What does not fit any more loses its payload, and what only
//     was read is forgotten, since it can be read again.
//
// A process that ends takes its desk with it; the server knows by the process's
// name, and what it does then stands in server/dispatch.
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

// Config bounds a desk. Zero values mean the defaults.
type Config struct {
	MaxWorkers      int           // operations that are carried out at once; 64
	MaxStreams      int           // logs that are read at once; 64
	MaxOutcomeBytes int           // of outcomes that are remembered; 8 MiB
	AckTimeout      time.Duration // how long an outcome waits for its acknowledgement; 15 min
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

// Executor is safe for concurrent use.
type Executor struct {
	cfg         Config
	handler     func(context.Context, vedette.Operation) vedette.Outcome
	sendOutcome func(vedette.Outcome)
	workers     *semaphore.Weighted

	mu           sync.Mutex
	ctx          context.Context // of Run; nil before it
	entries      map[vedette.OperationID]*entry
	finished     []*entry // in the order in which they ended
	outcomeBytes int      // of the outcomes of ended
	streams      int      // entries whose outcome is a stream
	wg           sync.WaitGroup
}

// entry is one operation: under way, then ended, then forgotten.
type entry struct {
	id         vedette.OperationID
	readOnly   bool
	cancel     context.CancelFunc
	finishedAt time.Time // when it ended; zero while it is under way
	isStream   bool      // its outcome is being read, and can be read only once
	outcome    vedette.Outcome
	size       int
}

func (e *entry) isFinished() bool { return !e.finishedAt.IsZero() }

// New returns a desk that carries operations out with do, and gives each outcome
// to answer, which may fail to send it but must not wait long. Whoever takes an
// outcome with a Stream closes that, and calls Forget.
func New(cfg Config, handler func(context.Context, vedette.Operation) vedette.Outcome, sendOutcome func(vedette.Outcome)) *Executor {
	cfg.setDefaults()
	return &Executor{cfg: cfg, handler: handler, sendOutcome: sendOutcome, workers: semaphore.NewWeighted(int64(cfg.MaxWorkers)), entries: map[vedette.OperationID]*entry{}}
}

// Run lets operations be carried out until ctx ends, and returns when those that
// were under way have.
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

// Submit takes an operation. It does not wait.
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
		return // the agent is ending; the server learns that from the connection
	}
	ctx, cancel := context.WithCancel(x.ctx)
	e := &entry{id: op.ID, readOnly: op.Args == nil || op.Reads(), cancel: cancel}
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
		_ = out.Stream.Close() // nothing of it was read
		out = tooManyStreamsOutcome(op, x.cfg.MaxStreams)
	}
	x.finishLocked(e, out)
	x.mu.Unlock()
	x.sendOutcome(out)
}

// acquireWorker waits for its turn, until the operation's deadline at most.
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
		Message: "the agent had no worker free before the deadline; nothing was done. It carries out " + strconv.Itoa(workers) + " operations at once"}
}

func tooManyStreamsOutcome(op vedette.Operation, streams int) vedette.Outcome {
	return vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: http.StatusServiceUnavailable, Reason: "Busy",
		Message: "the agent sends " + strconv.Itoa(streams) + " logs already, and no more at once; end one of those that are followed"}
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
		return // nobody wants it any more
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

// dropPayloadLocked takes an outcome's payload, and reports whether the entry is still
// there: what was only read is not.
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

// Cancel says that nobody waits for an operation. One that only reads is broken
// off; one that changes something goes on to its end.
func (x *Executor) Cancel(id vedette.OperationID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.entries[id]; e != nil && e.readOnly {
		x.removeLocked(e)
	}
}

// Forget says that the outcome of an operation has arrived, or that its stream is
// read no more.
func (x *Executor) Forget(id vedette.OperationID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.entries[id]; e != nil && e.isFinished() {
		x.removeLocked(e)
	}
}

// Unacknowledged returns the outcomes that were not acknowledged, oldest first, for a
// new connection to send.
func (x *Executor) Unacknowledged() []vedette.Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	var outcomes []vedette.Outcome
	for _, e := range x.finished {
		outcomes = append(outcomes, e.outcome)
	}
	return outcomes
}

// Running returns how many operations are under way.
func (x *Executor) Running() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.entries) - len(x.finished) - x.streams
}

// expire forgets what nobody has acknowledged for long: its server is gone.
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
