// Package dispatch sends operations to agents and waits for their outcomes. It owns an
// operation from its acceptance until it is answered or lost. Package lifecycle decides what happens to it
// meanwhile.
//
// Guarantees:
//
//   - An operation has exactly one outcome, shortly after its deadline at the latest, and
//     its ID never has another. An operation that cannot have taken effect fails. If it
//     is unknown whether it took effect, it is lost, and the message says what is known.
//   - It takes effect once. It is sent again to the same process, which knows what it
//     did. It is sent to another process only if it is idempotent.
//   - When the caller receives the outcome, it can read the objects that were written.
//   - An operation that changes something is in the history before it is sent, and
//     continues even if the caller leaves. Its end is in the history before the caller
//     receives the outcome, unless the database is unavailable.
package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/internal/requestid"
	"github.com/vedette-io/vedette/internal/tracing"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/registry"
)

// Config has the limits of operations and of their history. Zero values mean the defaults.
type Config struct {
	Server vedette.ServerID
	// Timeout is the time limit of an operation without a deadline; 30 s.
	Timeout time.Duration
	// AgentWait is how long an operation waits for an agent before it is first sent; 10
	// s.
	AgentWait time.Duration
	// Grace is how long the server waits for an outcome after the deadline; 3 s.
	Grace time.Duration
	// Time for which operations can be read, at least 1h. An operation that is sent again with its id within
	// this time is not executed again.
	KeepHistory time.Duration `config:"keep" default:"30d" minimum:"1h"`
	// What the history of all accounts together may take of the database, about, at least 16MiB. The oldest operations are deleted before,
	// of whatever account, but never those of the last hour.
	MaxHistory int64 `config:"maxBytes" format:"bytes" default:"1GiB"`
	// MaxBytes is the memory of all operations under way; 128 MiB.
	MaxBytes int64
}

func (c *Config) defaults() {
	*c = configfile.WithDefaults(*c)
	if c.MaxBytes == 0 {
		c.MaxBytes = 128 << 20
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Timeout, 30 * time.Second}, {&c.AgentWait, 10 * time.Second}, {&c.Grace, 3 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
}

// assignments returns which agent serves an account, and the cluster that the agent registered.
type assignments interface {
	Cacher(vedette.AccountName) (*assigner.Member, vedette.Term)
	Registered(*assigner.Member, vedette.AccountName) vedette.Cluster
	OnAssigned(func())
}

// operationStore stores the history and the objects that operations write.
type operationStore interface {
	historyStore
	Account(ctx context.Context, name vedette.AccountName) (registry.Account, error)
	Prioritize(account vedette.AccountName) (end func())
	WriteThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, o vedette.Object,
		end *history.Operation) (changes []commit.Change, ended bool, err error)
	RemoveThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key, uid string,
		end *history.Operation) (changes []commit.Change, ended bool, err error)
	RemoveAbsent(ctx context.Context, account vedette.AccountName, term vedette.Term, absent vedette.Absence, uid string,
		end *history.Operation) (changes []commit.Change, ended bool, err error)
	HasReached(ctx context.Context, account vedette.AccountName, o vedette.ObjectVersion) (bool, error)
	HasRemoved(ctx context.Context, account vedette.AccountName, absent vedette.Absence, uid string, wasStored bool) (bool, error)
	Resources(ctx context.Context, accounts ...vedette.AccountName) ([]vedette.Resource, error)
	UID(ctx context.Context, account vedette.AccountName, key vedette.Key) (uid, version string, err error)
}

// publisher sends stored changes to subscribers.
type publisher interface{ Publish([]commit.Change) }

// Dispatcher executes operations. It is safe for concurrent use.
type Dispatcher struct {
	cfg         Config
	assignments assignments
	store       operationStore
	publisher   publisher
	log         *slog.Logger
	recorder    *recorder
	budget      *fair.Line // memory of operations under way, by account

	remote    Remote                      // nil if no other servers exist
	known     func(context.Context) error // the same
	lease     func(context.Context) error // nil if this server needs none
	unclaimed chan unclaimedOutcome

	forgedOutcomes, lateOutcomes logthrottle.Limiter // outcomes from agents that were not sent the operation, or of operations that have ended

	changesCtx    context.Context // of operations that change something; ends with Run
	cancelChanges context.CancelFunc
	running       sync.WaitGroup

	mu       sync.Mutex
	attached map[*assigner.Member]*AttachedAgent
	pending  map[vedette.OperationID]*pendingOutcome // operations without an outcome
	accepted map[vedette.OperationID]chan struct{}   // operations in the history that have not ended; closed when they have
	changed  chan struct{}                           // closed and replaced by notifyLocked
}

// New returns a Dispatcher without agents.
func New(cfg Config, s assignments, b operationStore, h publisher, log *slog.Logger) *Dispatcher {
	cfg.defaults()
	d := &Dispatcher{cfg: cfg, assignments: s, store: b, publisher: h, log: log, recorder: newRecorder(cfg, b, log),
		budget:    newBudget(cfg.MaxBytes),
		unclaimed: make(chan unclaimedOutcome, maxUnclaimed), accepted: map[vedette.OperationID]chan struct{}{},
		attached: map[*assigner.Member]*AttachedAgent{}, pending: map[vedette.OperationID]*pendingOutcome{}, changed: make(chan struct{})}
	d.forgedOutcomes.Interval, d.lateOutcomes.Interval = time.Minute, time.Second
	d.changesCtx, d.cancelChanges = context.WithCancel(context.Background())
	s.OnAssigned(d.notify)
	return d
}

// Recover marks the operations of the previous process of this server as lost. It must
// be called once, before the first operation.
func (d *Dispatcher) Recover(ctx context.Context) error { return d.recorder.markLost(ctx) }

// Run writes the history until ctx ends. Operations that are running then are lost.
func (d *Dispatcher) Run(ctx context.Context) error {
	recordCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var recorderRun sync.WaitGroup
	recorderRun.Go(func() { d.recorder.run(recordCtx) })
	recorderRun.Go(func() { d.recorder.runPurge(ctx) })
	recorderRun.Go(func() { d.forgetEnded(ctx) })
	<-ctx.Done()
	d.cancelChanges()
	d.running.Wait() // operations that end meanwhile are recorded before they are answered
	stop()
	recorderRun.Wait()
	d.recorder.close() //nolint:contextcheck // the outcome is recorded even if the caller has left
	return nil
}

// Execute executes an operation. It returns when the operation has an outcome or ctx
// ends. An operation without an ID gets one, and an operation without a deadline gets
// the default. The caller must close the Stream of the outcome.
func (d *Dispatcher) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	return held(ctx, op, d.execute(ctx, op))
}

func (d *Dispatcher) execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
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
	if !now.Before(op.Deadline) {
		return tooLateOutcome(op)
	}
	grant, err := d.admit(ctx, op)
	if err != nil {
		return d.notAdmittedOutcome(op, err)
	}
	ctx, f := d.newInflight(ctx, op, now)
	endPriority := d.prioritize(f)
	if op.Reads() {
		defer grant.Release()
		defer endPriority()
		return d.finish(f, d.deliver(ctx, f)) //nolint:contextcheck // the outcome is recorded even if the caller has left
	}
	if err := d.begin(ctx, f); err != nil {
		defer grant.Release()
		defer endPriority()
		return d.refusedOutcome(ctx, f, err)
	}
	end := d.accept(op.ID)
	return d.runChange(ctx, f, func() { grant.Release(); end() }, endPriority)
}

// newInflight returns an operation that begins, and the context of its span.
func (d *Dispatcher) newInflight(ctx context.Context, op vedette.Operation, accepted time.Time) (context.Context, *inflight) {
	op.Requester, op.Origin = op.Requester.Clean(maxNote), vedette.CleanText(op.Origin, maxNote)
	op.RequestID = requestid.Of(ctx)
	ctx, span := startSpan(ctx, op)
	op.TraceParent = tracing.Parent(ctx)
	object := objectOf(op.Args)
	f := &inflight{op: op, span: span, target: vedette.CleanText(targetOf(op.Args, object), maxNote), object: object, accepted: accepted}
	if member, _ := d.assignments.Cacher(op.Account); member != nil {
		f.op.Cluster = cmp.Or(f.op.Cluster, d.assignments.Registered(member, op.Account))
	}
	return ctx, f
}

// runChange delivers an operation that is recorded and accepted, even if the caller leaves. It calls endPriority when the operation has
// ended, and end when that is recorded.
func (d *Dispatcher) runChange(ctx context.Context, f *inflight, end, endPriority func()) vedette.Outcome {
	op := f.op
	done := make(chan vedette.Outcome, 1)
	d.running.Go(func() {
		defer end()
		defer f.awaitRecord() // callers of other servers read the history then
		defer endPriority()
		//nolint:contextcheck // the outcome is recorded even if the caller has left
		done <- d.finish(f, d.deliver(requestid.Inherit(d.changesCtx, ctx), f))
	})
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
		d.endWaits(op.ID)
		return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Canceled",
			Message: "the caller left before the operation ended; the operation continues, and GET /vedette/v1/operations/" + string(op.ID) +
				" returns its outcome when it ends"}
	}
}

// tooLateOutcome is the outcome of an operation that reaches the dispatcher after its deadline, because its
// request waited for the database or the server stood still.
func tooLateOutcome(op vedette.Operation) vedette.Outcome {
	out := failedOutcome(http.StatusGatewayTimeout, "Timeout",
		"the deadline passed before the server accepted the operation, because its database was slow or it stood still. Nothing was done: try again")
	out.ID = op.ID
	return out
}

// begin records an operation in the history before it is sent. It fails if that takes
// longer than the operation may take, or than AgentWait.
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

// refusedOutcome returns the outcome of an operation that was not accepted. The outcome
// is recorded too, because the history may have the operation as pending: the database
// may have stored it although its response was lost.
func (d *Dispatcher) refusedOutcome(ctx context.Context, f *inflight, err error) vedette.Outcome {
	defer f.endSpan(vedette.Outcome{State: vedette.Failed, Reason: "not accepted"})
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
	d.log.ErrorContext(ctx, "operation rejected: cannot write the history", "operation", f.op.ID, "error", err)
	out := failedOutcome(http.StatusServiceUnavailable, "ServiceUnavailable", fmt.Sprintf(
		"the server could not record the operation in its database and did not send it, so nothing was done: %s. "+
			"Try again when that is solved; a request with an id of its own needs a new id", publicReason(err)))
	out.ID = f.op.ID
	d.recorder.recordEnd(d.recorder.finalRow(f, out))
	return out
}

// publicReason returns the part of an error of the store that callers may see, for example that the
// disk is full.
func publicReason(err error) string {
	if public, ok := errors.AsType[*vedette.Error](err); ok && public.Kind == vedette.Unavailable {
		return public.Message
	}
	return "internal error, see the server's log"
}
