// Package dispatch is the life of an operation at the server, from when it is
// accepted until it is answered or lost:
//
//	accepted ──an agent serves the account──> sent ──outcome──> answered
//	    │                                      │ ↑
//	    │                                  link│ │the same process is back, or it may be
//	    │no agent in time                  lost│ │done twice: sent again
//	    ↓                                      ↓ │
//	  failed: nothing was done               waiting ──another process, or the deadline──> lost
//
// Guarantees:
//
//   - An operation ends in exactly one outcome, shortly after its deadline at the
//     latest, and an ID has no other one ever after. One that can't have taken effect
//     fails; one of which that is unknown is lost, and says what was known.
//   - It takes effect once. It is sent again to the process that has it, which
//     knows what it did; to another only if doing it twice is the same as once.
//   - What it wrote can be read when its outcome is there.
//   - What changes something is in the history before it is sent, and goes on to its
//     end though the caller has left. Its end is in the history before the caller is
//     told, unless the database is away.
package dispatch

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store"
)

// Config is how operations live. Zero values mean the defaults.
type Config struct {
	Server vedette.ServerID
	// Timeout is how long an operation without a deadline may take; 30 s.
	Timeout time.Duration
	// AgentWait is how long an operation that was not sent waits for an agent; 10 s.
	AgentWait time.Duration
	// Grace is how long after its deadline an outcome may still be on its way; 3 s.
	Grace time.Duration
	// KeepHistory is how long the history of operations is kept; 14 days.
	KeepHistory time.Duration
}

func (c *Config) defaults() {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Timeout, 30 * time.Second}, {&c.AgentWait, 10 * time.Second}, {&c.Grace, 3 * time.Second}, {&c.KeepHistory, 14 * 24 * time.Hour}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
}

// assignments tell which agent serves an account.
type assignments interface {
	Cacher(vedette.AccountName) (*assignment.Member, vedette.Term)
	OnAssigned(func())
}

// operationStore is what of operations is kept.
type operationStore interface {
	historyStore
	Account(ctx context.Context, name vedette.AccountName) (store.AccountRow, error)
	Prioritize(account vedette.AccountName) (end func())
	WriteThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, o vedette.Object, end *store.OperationRow) (changes []store.Change, ended bool, err error)
	RemoveThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key, uid string, end *store.OperationRow) (changes []store.Change, ended bool, err error)
	Resources(ctx context.Context, accounts ...vedette.AccountName) ([]vedette.Resource, error)
	UID(ctx context.Context, account vedette.AccountName, key vedette.Key) (string, error)
}

// publisher hears of what was written.
type publisher interface{ Publish([]store.Change) }

// Dispatcher is safe for concurrent use.
type Dispatcher struct {
	cfg         Config
	assignments assignments
	store       operationStore
	publisher   publisher
	log         *slog.Logger
	recorder    *recorder

	forgedOutcomes, lateOutcomes logthrottle.Limiter // outcomes of operations that their sender does not hold, or that have ended

	changesCtx    context.Context // of what changes something; ends with Run
	cancelChanges context.CancelFunc
	running       sync.WaitGroup

	mu       sync.Mutex
	attached map[*assignment.Member]*AttachedAgent
	pending  map[vedette.OperationID]*pendingOutcome // the operations that are not answered
	changed  chan struct{}                           // closed and replaced when an agent comes or goes
}

// New returns a Dispatch without agents.
func New(cfg Config, s assignments, b operationStore, h publisher, log *slog.Logger) *Dispatcher {
	cfg.defaults()
	d := &Dispatcher{cfg: cfg, assignments: s, store: b, publisher: h, log: log, recorder: newRecorder(cfg, b, log),
		attached: map[*assignment.Member]*AttachedAgent{}, pending: map[vedette.OperationID]*pendingOutcome{}, changed: make(chan struct{})}
	d.forgedOutcomes.Interval, d.lateOutcomes.Interval = time.Minute, time.Second
	d.changesCtx, d.cancelChanges = context.WithCancel(context.Background())
	s.OnAssigned(d.notify)
	return d
}

// Recover ends the operations that were under way when the server's last process
// ended. It is called once, before the first operation is accepted.
func (d *Dispatcher) Recover(ctx context.Context) error { return d.recorder.markLost(ctx) }

// Run keeps the history until ctx ends. Operations that are under way then are
// lost.
func (d *Dispatcher) Run(ctx context.Context) error {
	recordCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var recorderRun sync.WaitGroup
	recorderRun.Go(func() { d.recorder.run(recordCtx) })
	<-ctx.Done()
	d.cancelChanges()
	d.running.Wait() // what ends by itself meanwhile is noted before it is answered
	stop()
	recorderRun.Wait()
	d.recorder.close()
	return nil
}

// Execute has an operation carried out, and returns when it has an outcome or ctx is
// over. Without an ID it gets one, and without a deadline the default. The caller
// closes the outcome's Stream.
func (d *Dispatcher) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	now := time.Now()
	if op.ID == "" {
		op.ID = vedette.OperationID(ulid.Make().String())
	}
	if op.Deadline.IsZero() {
		op.Deadline = now.Add(d.cfg.Timeout)
	}
	if err := checkNames(op); err != nil {
		out := failedOutcome(http.StatusBadRequest, "BadRequest", err.Error())
		out.ID = op.ID
		return out
	}
	op.User, op.Origin = vedette.CleanText(op.User, maxNote), vedette.CleanText(op.Origin, maxNote)
	f := &inflight{op: op, target: vedette.CleanText(targetOf(op.Args), maxNote), accepted: now}
	endPriority := d.prioritize(f)
	if op.Reads() {
		defer endPriority()
		return d.finish(f, d.deliver(ctx, f))
	}
	if err := d.begin(ctx, f); err != nil {
		defer endPriority()
		return d.refusedOutcome(f, err)
	}
	done := make(chan vedette.Outcome, 1)
	d.running.Go(func() {
		defer endPriority() // also when the caller has left
		done <- d.finish(f, d.deliver(d.changesCtx, f))
	})
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
		return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Canceled",
			Message: "the caller left before the operation ended; the operation continues, and GET /vedette/v1/operations/" + string(op.ID) + " shows how it ends"}
	}
}

// begin notes an operation in the history, unless the database takes longer than
// the operation itself may, or an agent.
func (d *Dispatcher) begin(ctx context.Context, f *inflight) error {
	ctx, cancel := context.WithTimeout(ctx, min(time.Until(f.op.Deadline), d.cfg.AgentWait))
	defer cancel()
	lookup := d.lookUpUID(ctx, f.op)
	if err := d.recorder.recordStart(ctx, f); err != nil {
		return err
	}
	f.applyUID(lookup)
	return nil
}

// refusedOutcome says why an operation was not accepted. That is its end, and goes into
// the history: it may be pending there, because it was stored and only the
// database's answer did not come.
func (d *Dispatcher) refusedOutcome(f *inflight, err error) vedette.Outcome {
	switch vedette.KindOf(err) {
	case vedette.Conflict:
		out := failedOutcome(http.StatusConflict, vedette.ReasonAlreadyAccepted, err.Error())
		out.ID = f.op.ID
		return out
	case vedette.Invalid:
		out := failedOutcome(http.StatusBadRequest, "BadRequest", err.Error())
		out.ID = f.op.ID
		return out
	}
	d.log.Error("operation rejected: cannot write the history", "operation", f.op.ID, "error", err)
	out := failedOutcome(http.StatusServiceUnavailable, "ServiceUnavailable",
		"the server could not record the operation in its database and did not send it: try again with another id")
	out.ID = f.op.ID
	d.recorder.recordEnd(d.recorder.finalRow(f, out))
	return out
}

// finish makes what an operation wrote readable, and notes its end. Whoever is told
// that it was done, or failed, must not read otherwise in the history after a server
// that was killed; that it was lost, a killed server's history says as well.
func (d *Dispatcher) finish(f *inflight, out vedette.Outcome) vedette.Outcome {
	out.ID = f.op.ID
	ctx, cancel := context.WithTimeout(context.Background(), maxWriteWait)
	defer cancel()
	row := d.recorder.finalRow(f, out)
	if d.writeThrough(ctx, f, &out, &row) {
		return out
	}
	recorded := d.recorder.recordEnd(row)
	if f.op.Reads() || out.State == vedette.Lost {
		return out
	}
	select {
	case <-recorded:
	case <-ctx.Done():
	}
	return out
}
