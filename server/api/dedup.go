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

// operationDedup are the operations that their callers gave an id. Who sends one a
// second time, because the first answer did not arrive, gets the first one's
// outcome: here while this server has it, and from the history after that.
type operationDedup struct {
	mu    sync.Mutex
	byID  map[vedette.OperationID]*dedupEntry
	ended []vedette.OperationID // that are still in byID, the oldest first
}

// dedupEntry is an operation under way or ended.
type dedupEntry struct {
	digest uint64        // of what was asked for
	done   chan struct{} // closed when the rest is there
	view   outcomeView
	err    error // nothing was sent
}

// maxEnded bounds the ended flights that are kept, at some hundred bytes each, and
// what the cluster said or warned of. They bridge the time until their ends are in
// the history.
const maxEnded = 1000

func newOperationDedup() *operationDedup {
	return &operationDedup{byID: map[vedette.OperationID]*dedupEntry{}}
}

// execute has an operation carried out, or finds out what became of it.
func (a *api) execute(ctx context.Context, op vedette.Operation) (outcomeView, error) {
	if op.ID == "" {
		return newOutcomeView(op, a.Dispatch.Execute(ctx, op)), nil
	}
	entry, first, err := a.dedup.join(op)
	if err != nil {
		return outcomeView{}, err
	}
	if first {
		// It goes on though its caller leaves: another one may be waiting by then.
		// The dispatcher ends it soon after its deadline.
		go a.runOnce(context.WithoutCancel(ctx), op, entry)
	}
	select {
	case <-ctx.Done():
		return outcomeView{}, context.Cause(ctx)
	case <-entry.done:
	}
	if first || entry.err != nil {
		return entry.view, entry.err
	}
	return entry.view.asRepeated(), nil
}

func (a *api) runOnce(ctx context.Context, op vedette.Operation, entry *dedupEntry) {
	recorded, err := a.lookupHistory(ctx, op)
	switch {
	case err != nil:
		entry.err = err
	case recorded != nil:
		entry.view = *recorded
	default:
		entry.view, entry.err = a.send(ctx, op)
	}
	a.dedup.finish(op.ID, entry)
}

// send has an operation carried out that the history did not have. Another server
// may have taken the same one meanwhile, whose outcome counts.
func (a *api) send(ctx context.Context, op vedette.Operation) (outcomeView, error) {
	out := a.Dispatch.Execute(ctx, op)
	if out.Reason != vedette.ReasonAlreadyAccepted {
		return newOutcomeView(op, out), nil
	}
	recorded, err := a.lookupHistory(ctx, op)
	if err == nil && recorded == nil {
		err = vedette.Errorf(vedette.Conflict, "%s: GET /vedette/v1/operations/%s shows how it ends", out.Message, op.ID)
	}
	if err != nil {
		return outcomeView{}, err
	}
	return *recorded, nil
}

// lookupHistory looks in the history for an operation of the same id.
func (a *api) lookupHistory(ctx context.Context, op vedette.Operation) (*outcomeView, error) {
	row, err := a.Store.Operation(ctx, op.ID)
	if vedette.KindOf(err) == vedette.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if row.Account != op.Account || row.Verb != op.Args.Verb() || row.DryRun != op.DryRun {
		return nil, errIDReused(op.ID)
	}
	if row.State == store.Pending {
		return nil, vedette.Errorf(vedette.Conflict, "operation %s is under way since %s: GET /vedette/v1/operations/%s shows how it ends",
			op.ID, row.Accepted.UTC().Format("15:04:05Z"), op.ID)
	}
	view := outcomeView{ID: op.ID, Account: row.Account, Verb: row.Verb, DryRun: row.DryRun, State: row.State, Status: row.Status, Reason: row.Reason, Message: row.Message,
		Keys: []objectKey{}}
	view = view.asRepeated()
	return &view, nil
}

func errIDReused(id vedette.OperationID) error {
	return vedette.Errorf(vedette.Conflict, "the id %s was given to another operation: make a new one for each", id)
}

// join returns the flight of an operation, and whether it is the caller's to fly.
func (d *operationDedup) join(op vedette.Operation) (*dedupEntry, bool, error) {
	digest := digestOf(op)
	d.mu.Lock()
	defer d.mu.Unlock()
	if existing := d.byID[op.ID]; existing != nil {
		if existing.digest != digest {
			return nil, false, errIDReused(op.ID)
		}
		return existing, false, nil
	}
	entry := &dedupEntry{digest: digest, done: make(chan struct{})}
	d.byID[op.ID] = entry
	return entry, true, nil
}

// finish ends a flight. One that has no outcome is forgotten, so that it can be tried
// again under its id. One that failed has one: the history tells the same.
func (d *operationDedup) finish(id vedette.OperationID, entry *dedupEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(entry.done)
	cached := &dedupEntry{digest: entry.digest, done: entry.done, view: entry.view.asRepeated()}
	if entry.err != nil {
		delete(d.byID, id)
		return
	}
	d.byID[id] = cached
	d.ended = append(d.ended, id)
	if len(d.ended) > maxEnded {
		delete(d.byID, d.ended[0])
		d.ended = slices.Delete(d.ended, 0, 1)
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
