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
	"github.com/vedette-io/vedette/internal/occasional"
	"github.com/vedette-io/vedette/server/roster"
	"github.com/vedette-io/vedette/server/store"
)

// Config is how operations live. Zero values mean the defaults.
type Config struct {
	Server vedette.ServerID
	// Timeout is how long an operation without a deadline may take; 30 s.
	Timeout time.Duration
	// Patience is how long an operation that was not sent waits for an agent; 10 s.
	Patience time.Duration
	// Grace is how long after its deadline an outcome may still be on its way; 3 s.
	Grace time.Duration
	// KeepHistory is how long the history of operations is kept; 14 days.
	KeepHistory time.Duration
}

func (c *Config) defaults() {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Timeout, 30 * time.Second}, {&c.Patience, 10 * time.Second}, {&c.Grace, 3 * time.Second}, {&c.KeepHistory, 14 * 24 * time.Hour}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
}

// seats tell which agent serves an account.
type seats interface {
	Holder(vedette.AccountName) (*roster.Member, vedette.Term)
	OnSeated(func())
}

// book is what of operations is kept.
type book interface {
	history
	Account(ctx context.Context, name vedette.AccountName) (store.AccountRow, error)
	Prioritize(account vedette.AccountName) (end func())
	WriteThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, o vedette.Object, end *store.OperationRow) (changes []store.Change, ended bool, err error)
	RemoveThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, key vedette.Key, uid string, end *store.OperationRow) (changes []store.Change, ended bool, err error)
	Resources(ctx context.Context, accounts ...vedette.AccountName) ([]vedette.Resource, error)
	UID(ctx context.Context, account vedette.AccountName, key vedette.Key) (string, error)
}

// hub hears of what was written.
type hub interface{ Publish([]store.Change) }

// Dispatch is safe for concurrent use.
type Dispatch struct {
	cfg   Config
	seats seats
	book  book
	hub   hub
	log   *slog.Logger
	diary *diary

	forged, late occasional.Limiter // outcomes of operations that their sender does not hold, or that have ended

	life   context.Context // of what changes something; ends with Run
	end    context.CancelFunc
	living sync.WaitGroup

	mu      sync.Mutex
	visits  map[*roster.Member]*Visit
	waiting map[vedette.OperationID]*pending // the operations that are not answered
	news    chan struct{}                    // closed and replaced when an agent comes or goes
}

// New returns a Dispatch without agents.
func New(cfg Config, s seats, b book, h hub, log *slog.Logger) *Dispatch {
	cfg.defaults()
	d := &Dispatch{cfg: cfg, seats: s, book: b, hub: h, log: log, diary: newDiary(cfg, b, log),
		visits: map[*roster.Member]*Visit{}, waiting: map[vedette.OperationID]*pending{}, news: make(chan struct{})}
	d.forged.Interval, d.late.Interval = time.Minute, time.Second
	d.life, d.end = context.WithCancel(context.Background())
	s.OnSeated(d.tell)
	return d
}

// Recover ends the operations that were under way when the server's last process
// ended. It is called once, before the first operation is accepted.
func (d *Dispatch) Recover(ctx context.Context) error { return d.diary.recover(ctx) }

// Run keeps the history until ctx ends. Operations that are under way then are
// lost.
func (d *Dispatch) Run(ctx context.Context) error {
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var diary sync.WaitGroup
	diary.Go(func() { d.diary.run(writing) })
	<-ctx.Done()
	d.end()
	d.living.Wait() // what ends by itself meanwhile is noted before it is answered
	stop()
	diary.Wait()
	d.diary.close()
	return nil
}

// Execute has an operation carried out, and returns when it has an outcome or ctx is
// over. Without an ID it gets one, and without a deadline the default. The caller
// closes the outcome's Stream.
func (d *Dispatch) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	now := time.Now()
	if op.ID == "" {
		op.ID = vedette.OperationID(ulid.Make().String())
	}
	if op.Deadline.IsZero() {
		op.Deadline = now.Add(d.cfg.Timeout)
	}
	if err := checkNames(op); err != nil {
		out := failure(http.StatusBadRequest, "BadRequest", err.Error())
		out.ID = op.ID
		return out
	}
	op.User, op.Origin = vedette.CleanText(op.User, maxNote), vedette.CleanText(op.Origin, maxNote)
	e := &errand{op: op, target: vedette.CleanText(targetOf(op.Args), maxNote), accepted: now}
	end := d.makeWay(e)
	if op.Reads() {
		defer end()
		return d.finish(e, d.carry(ctx, e))
	}
	if err := d.begin(ctx, e); err != nil {
		defer end()
		return d.refused(e, err)
	}
	done := make(chan vedette.Outcome, 1)
	d.living.Go(func() {
		defer end() // also when the caller has left
		done <- d.finish(e, d.carry(d.life, e))
	})
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
		return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: http.StatusGatewayTimeout, Reason: "Canceled",
			Message: "the caller left before the operation ended; it goes on, and GET /vedette/v1/operations/" + string(op.ID) + " tells how it ends"}
	}
}

// begin notes an operation in the history, unless the database takes longer than
// the operation itself may, or an agent.
func (d *Dispatch) begin(ctx context.Context, e *errand) error {
	ctx, cancel := context.WithTimeout(ctx, min(time.Until(e.op.Deadline), d.cfg.Patience))
	defer cancel()
	found := d.know(ctx, e.op)
	if err := d.diary.begin(ctx, e); err != nil {
		return err
	}
	e.learn(found)
	return nil
}

// refused says why an operation was not accepted. That is its end, and goes into
// the history: it may be pending there, because it was stored and only the
// database's answer did not come.
func (d *Dispatch) refused(e *errand, err error) vedette.Outcome {
	switch vedette.KindOf(err) {
	case vedette.Conflict:
		out := failure(http.StatusConflict, vedette.ReasonAlreadyAccepted, err.Error())
		out.ID = e.op.ID
		return out
	case vedette.Invalid:
		out := failure(http.StatusBadRequest, "BadRequest", err.Error())
		out.ID = e.op.ID
		return out
	}
	d.log.Error("operation refused: the history can't be written", "operation", e.op.ID, "error", err)
	out := failure(http.StatusServiceUnavailable, "ServiceUnavailable",
		"the server could not note the operation in its database, and did not send it; try again, under another id")
	out.ID = e.op.ID
	d.diary.ended(d.diary.last(e, out))
	return out
}

// finish makes what an operation wrote readable, and notes its end. Whoever is told
// that it was done, or failed, must not read otherwise in the history after a server
// that was killed; that it was lost, a killed server's history says as well.
func (d *Dispatch) finish(e *errand, out vedette.Outcome) vedette.Outcome {
	out.ID = e.op.ID
	ctx, cancel := context.WithTimeout(context.Background(), mostWriting)
	defer cancel()
	row := d.diary.last(e, out)
	if d.writeThrough(ctx, e, &out, &row) {
		return out
	}
	noted := d.diary.ended(row)
	if e.op.Reads() || out.State == vedette.Lost {
		return out
	}
	select {
	case <-noted:
	case <-ctx.Done():
	}
	return out
}
