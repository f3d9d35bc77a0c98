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
package desk

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
	Workers int           // operations that are carried out at once; 64
	Streams int           // logs that are read at once; 64
	Bytes   int           // of outcomes that are remembered; 8 MiB
	Keep    time.Duration // how long an outcome waits for its acknowledgement; 15 min
}

func (c *Config) defaults() {
	if c.Workers == 0 {
		c.Workers = 64
	}
	if c.Streams == 0 {
		c.Streams = 64
	}
	if c.Bytes == 0 {
		c.Bytes = 8 << 20
	}
	if c.Keep == 0 {
		c.Keep = 15 * time.Minute
	}
}

// Desk is safe for concurrent use.
type Desk struct {
	cfg     Config
	do      func(context.Context, vedette.Operation) vedette.Outcome
	answer  func(vedette.Outcome)
	workers *semaphore.Weighted

	mu        sync.Mutex
	ctx       context.Context // of Run; nil before it
	entries   map[vedette.OperationID]*entry
	ended     []*entry // in the order in which they ended
	bytes     int      // of the outcomes of ended
	streaming int      // entries whose outcome is a stream
	working   sync.WaitGroup
}

// entry is one operation: under way, then ended, then forgotten.
type entry struct {
	id      vedette.OperationID
	reads   bool
	cancel  context.CancelFunc
	at      time.Time // when it ended; zero while it is under way
	streams bool      // its outcome is being read, and can be read only once
	outcome vedette.Outcome
	size    int
}

func (e *entry) ended() bool { return !e.at.IsZero() }

// New returns a desk that carries operations out with do, and gives each outcome
// to answer, which may fail to send it but must not wait long. Whoever takes an
// outcome with a Stream closes that, and calls Forget.
func New(cfg Config, do func(context.Context, vedette.Operation) vedette.Outcome, answer func(vedette.Outcome)) *Desk {
	cfg.defaults()
	return &Desk{cfg: cfg, do: do, answer: answer, workers: semaphore.NewWeighted(int64(cfg.Workers)), entries: map[vedette.OperationID]*entry{}}
}

// Run lets operations be carried out until ctx ends, and returns when those that
// were under way have.
func (d *Desk) Run(ctx context.Context) error {
	d.mu.Lock()
	d.ctx = ctx
	d.mu.Unlock()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.working.Wait()
			return nil
		case now := <-tick.C:
			d.clear(now)
		}
	}
}

// Put takes an operation. It does not wait.
func (d *Desk) Put(op vedette.Operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[op.ID]; e != nil {
		if e.ended() && !e.streams {
			go d.answer(e.outcome)
		}
		return
	}
	if d.ctx == nil || d.ctx.Err() != nil {
		return // the agent is ending; the server learns that from the connection
	}
	ctx, cancel := context.WithCancel(d.ctx)
	e := &entry{id: op.ID, reads: op.Args == nil || op.Reads(), cancel: cancel}
	d.entries[op.ID] = e
	d.working.Go(func() { d.work(ctx, e, op) })
}

func (d *Desk) work(ctx context.Context, e *entry, op vedette.Operation) {
	out, worked := vedette.Outcome{}, false
	if d.takeWorker(ctx, op) {
		out, worked = d.do(ctx, op), true
		d.workers.Release(1)
	}
	if !worked {
		out = tooBusy(op, d.cfg.Workers)
	}
	out.ID = op.ID
	d.mu.Lock()
	if out.Stream != nil && d.streaming >= d.cfg.Streams {
		_ = out.Stream.Close() // nothing of it was read
		out = tooManyLogs(op, d.cfg.Streams)
	}
	d.endLocked(e, out)
	d.mu.Unlock()
	d.answer(out)
}

// takeWorker waits for its turn, until the operation's deadline at most.
func (d *Desk) takeWorker(ctx context.Context, op vedette.Operation) bool {
	if !op.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, op.Deadline)
		defer cancel()
	}
	return d.workers.Acquire(ctx, 1) == nil
}

func tooBusy(op vedette.Operation, workers int) vedette.Outcome {
	return vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: http.StatusServiceUnavailable, Reason: "Busy",
		Message: "the agent had no worker free before the deadline; nothing was done. It carries out " + strconv.Itoa(workers) + " operations at once"}
}

func tooManyLogs(op vedette.Operation, streams int) vedette.Outcome {
	return vedette.Outcome{ID: op.ID, State: vedette.Failed, Status: http.StatusServiceUnavailable, Reason: "Busy",
		Message: "the agent sends " + strconv.Itoa(streams) + " logs already, and no more at once; end one of those that are followed"}
}

func (d *Desk) endLocked(e *entry, out vedette.Outcome) {
	e.at = time.Now()
	if out.Stream != nil {
		e.streams = true
		d.streaming++
		return
	}
	e.cancel()
	if d.entries[e.id] != e {
		return // nobody wants it any more
	}
	e.outcome, e.size = out, sizeOf(out)
	d.ended = append(d.ended, e)
	d.bytes += e.size
	for i := 0; d.bytes > d.cfg.Bytes && i < len(d.ended); {
		if d.lightenLocked(d.ended[i]) {
			i++
		}
	}
}

// lightenLocked takes an outcome's payload, and reports whether the entry is still
// there: what was only read is not.
func (d *Desk) lightenLocked(e *entry) bool {
	if e.reads {
		d.dropLocked(e)
		return false
	}
	e.outcome.Objects, e.outcome.Fresh, e.outcome.Result, e.outcome.Warnings = nil, nil, nil, nil
	d.bytes -= e.size
	e.size = 0
	return true
}

func (d *Desk) dropLocked(e *entry) {
	e.cancel()
	delete(d.entries, e.id)
	if e.streams {
		d.streaming--
		return
	}
	for i, other := range d.ended {
		if other == e {
			d.ended = append(d.ended[:i], d.ended[i+1:]...)
			d.bytes -= e.size
			return
		}
	}
}

// Cancel says that nobody waits for an operation. One that only reads is broken
// off; one that changes something goes on to its end.
func (d *Desk) Cancel(id vedette.OperationID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[id]; e != nil && e.reads {
		d.dropLocked(e)
	}
}

// Forget says that the outcome of an operation has arrived, or that its stream is
// read no more.
func (d *Desk) Forget(id vedette.OperationID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[id]; e != nil && e.ended() {
		d.dropLocked(e)
	}
}

// Unanswered returns the outcomes that were not acknowledged, oldest first, for a
// new connection to send.
func (d *Desk) Unanswered() []vedette.Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	var outs []vedette.Outcome
	for _, e := range d.ended {
		outs = append(outs, e.outcome)
	}
	return outs
}

// Running returns how many operations are under way.
func (d *Desk) Running() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.entries) - len(d.ended) - d.streaming
}

// clear forgets what nobody has acknowledged for long: its server is gone.
func (d *Desk) clear(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.ended) > 0 && now.Sub(d.ended[0].at) > d.cfg.Keep {
		d.dropLocked(d.ended[0])
	}
}

func sizeOf(out vedette.Outcome) int {
	n := 256 + len(out.Message) + len(out.Result)
	for _, o := range out.Objects {
		n += len(o)
	}
	for _, text := range out.Warnings {
		n += len(text)
	}
	return n
}
