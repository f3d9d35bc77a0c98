package api

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// flights are the operations that their callers gave an id. Who sends one a
// second time, because the first answer did not arrive, gets the first one's
// outcome: here while this server has it, and from the history after that.
type flights struct {
	mu    sync.Mutex
	byID  map[vedette.OperationID]*flight
	ended []vedette.OperationID // that are still in byID, the oldest first
}

// flight is an operation under way or ended.
type flight struct {
	digest uint64        // of what was asked for
	done   chan struct{} // closed when the rest is there
	view   outcomeView
	err    error // nothing was sent
}

// mostEnded bounds the ended flights that are kept, at some hundred bytes each, and
// what the cluster said or warned of. They bridge the time until their ends are in
// the history.
const mostEnded = 1000

func newFlights() *flights { return &flights{byID: map[vedette.OperationID]*flight{}} }

// carryOut has an operation carried out, or finds out what became of it.
func (a *api) carryOut(ctx context.Context, op vedette.Operation) (outcomeView, error) {
	if op.ID == "" {
		return viewOfOutcome(op, a.Operations.Execute(ctx, op)), nil
	}
	f, first, err := a.flights.join(op)
	if err != nil {
		return outcomeView{}, err
	}
	if first {
		// It goes on though its caller leaves: another one may be waiting by then.
		// The dispatcher ends it soon after its deadline.
		go a.fly(context.WithoutCancel(ctx), op, f)
	}
	select {
	case <-ctx.Done():
		return outcomeView{}, context.Cause(ctx)
	case <-f.done:
	}
	if first || f.err != nil {
		return f.view, f.err
	}
	return f.view.again(), nil
}

func (a *api) fly(ctx context.Context, op vedette.Operation, f *flight) {
	known, err := a.recall(ctx, op)
	switch {
	case err != nil:
		f.err = err
	case known != nil:
		f.view = *known
	default:
		f.view, f.err = a.send(ctx, op)
	}
	a.flights.land(op.ID, f)
}

// send has an operation carried out that the history did not have. Another server
// may have taken the same one meanwhile, whose outcome counts.
func (a *api) send(ctx context.Context, op vedette.Operation) (outcomeView, error) {
	out := a.Operations.Execute(ctx, op)
	if out.Reason != vedette.ReasonAlreadyAccepted {
		return viewOfOutcome(op, out), nil
	}
	known, err := a.recall(ctx, op)
	if err == nil && known == nil {
		err = vedette.Errorf(vedette.Conflict, "%s: GET /vedette/v1/operations/%s tells how it ends", out.Message, op.ID)
	}
	if err != nil {
		return outcomeView{}, err
	}
	return *known, nil
}

// recall looks in the history for an operation of the same id.
func (a *api) recall(ctx context.Context, op vedette.Operation) (*outcomeView, error) {
	row, err := a.Store.Operation(ctx, op.ID)
	if vedette.KindOf(err) == vedette.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if row.Account != op.Account || row.Verb != op.Args.Verb() || row.DryRun != op.DryRun {
		return nil, errOtherOperation(op.ID)
	}
	if row.State == store.Pending {
		return nil, vedette.Errorf(vedette.Conflict, "operation %s is under way since %s: GET /vedette/v1/operations/%s tells how it ends",
			op.ID, row.Accepted.UTC().Format("15:04:05Z"), op.ID)
	}
	view := outcomeView{ID: op.ID, Account: row.Account, Verb: row.Verb, DryRun: row.DryRun, State: row.State, Status: row.Status, Reason: row.Reason, Message: row.Message,
		Keys: []objectKey{}}
	view = view.again()
	return &view, nil
}

func errOtherOperation(id vedette.OperationID) error {
	return vedette.Errorf(vedette.Conflict, "the id %s was given to another operation: make a new one for each", id)
}

// join returns the flight of an operation, and whether it is the caller's to fly.
func (f *flights) join(op vedette.Operation) (*flight, bool, error) {
	digest := digestOf(op)
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byID[op.ID]; known != nil {
		if known.digest != digest {
			return nil, false, errOtherOperation(op.ID)
		}
		return known, false, nil
	}
	begun := &flight{digest: digest, done: make(chan struct{})}
	f.byID[op.ID] = begun
	return begun, true, nil
}

// land ends a flight. One that has no outcome is forgotten, so that it can be tried
// again under its id. One that failed has one: the history tells the same.
func (f *flights) land(id vedette.OperationID, landed *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(landed.done)
	kept := &flight{digest: landed.digest, done: landed.done, view: landed.view.again()}
	if landed.err != nil {
		delete(f.byID, id)
		return
	}
	f.byID[id] = kept
	f.ended = append(f.ended, id)
	if len(f.ended) > mostEnded {
		delete(f.byID, f.ended[0])
		f.ended = slices.Delete(f.ended, 0, 1)
	}
}

func digestOf(op vedette.Operation) uint64 {
	args, err := json.Marshal(op.Args)
	if err != nil { // they were decoded from JSON, and texts and numbers can be encoded
		panic(err)
	}
	d := xxhash.New()
	for _, part := range []string{string(op.Account), string(op.Args.Verb()), strconv.FormatBool(op.DryRun), string(args)} {
		_, _ = d.WriteString(part) // hashing does not fail
		_, _ = d.Write([]byte{0})
	}
	return d.Sum64()
}
