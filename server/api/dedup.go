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

// operationDedup holds operations with an id from the caller. A caller that sends an operation
// again, because the response was lost, gets the outcome of the first request: from here while
// it is in memory, and from the history later.
type operationDedup struct {
	mu    sync.Mutex
	byID  map[vedette.OperationID]*dedupEntry
	ended []vedette.OperationID // ended operations in byID, the oldest first
}

// dedupEntry is an operation that is running or ended.
type dedupEntry struct {
	digest uint64        // of the request
	done   chan struct{} // closed after the other fields are set
	view   outcomeView
	err    error // why the operation was not sent
}

// maxEnded bounds the ended operations in memory. Each takes some hundred bytes plus the
// cluster's messages and warnings. They are needed until the history has their outcomes.
const maxEnded = 1000

func newOperationDedup() *operationDedup {
	return &operationDedup{byID: map[vedette.OperationID]*dedupEntry{}}
}

// execute executes an operation, or returns the outcome of an earlier request with the same
// id.
func (a *api) execute(ctx context.Context, op vedette.Operation) (outcomeView, error) {
	if op.ID == "" {
		return newOutcomeView(op, a.Dispatch.Execute(ctx, op)), nil
	}
	entry, first, err := a.dedup.join(op)
	if err != nil {
		return outcomeView{}, err
	}
	if first {
		// The operation continues if its caller leaves, because another caller may be waiting
		// for it. The dispatcher ends it soon after its deadline.
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

// send executes an operation that is not in the history. If another server accepted the same
// id in the meantime, its outcome counts.
func (a *api) send(ctx context.Context, op vedette.Operation) (outcomeView, error) {
	out := a.Dispatch.Execute(ctx, op)
	if out.Reason != vedette.ReasonAlreadyAccepted {
		return newOutcomeView(op, out), nil
	}
	recorded, err := a.lookupHistory(ctx, op)
	if err == nil && recorded == nil {
		err = vedette.Errorf(vedette.Conflict, "%s; GET /vedette/v1/operations/%s returns its outcome when it ends", out.Message, op.ID)
	}
	if err != nil {
		return outcomeView{}, err
	}
	return *recorded, nil
}

// lookupHistory returns the outcome of an operation with the same id from the history.
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
		return nil, vedette.Errorf(vedette.Conflict,
			"operation %s has been running since %s; GET /vedette/v1/operations/%s returns its outcome when it ends",
			op.ID, row.Accepted.UTC().Format("15:04:05Z"), op.ID)
	}
	view := outcomeView{ID: op.ID, Account: row.Account, Verb: row.Verb, DryRun: row.DryRun, State: row.State, Status: row.Status,
		Reason: row.Reason, Message: row.Message,
		Keys: []objectKey{}}
	view = view.asRepeated()
	return &view, nil
}

func errIDReused(id vedette.OperationID) error {
	return vedette.Errorf(vedette.Conflict, "the id %s belongs to another operation; use a new id for each operation", id)
}

// join returns the entry of an operation, and whether the caller must execute it.
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

// finish ends an entry. An operation without an outcome is removed, so that it can be sent
// again with its id. A failed operation has an outcome, and the history returns the same.
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
	if err != nil { // the arguments were decoded from JSON, so they can be encoded
		panic(err)
	}
	d := xxhash.New()
	for _, part := range []string{string(op.Account), string(op.Args.Verb()), strconv.FormatBool(op.DryRun), string(args)} {
		_, _ = d.WriteString(part) // hashing does not fail
		_, _ = d.Write([]byte{0})
	}
	return d.Sum64()
}
