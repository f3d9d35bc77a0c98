package api

import (
	"context"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// operationDedup holds operations with an id from the caller. A caller that sends an operation
// again, because the response was lost, gets the outcome of the first request: from here while
// it is in memory, and from the history later.
type operationDedup struct {
	digester operationDigester

	mu    sync.Mutex
	byID  map[vedette.OperationID]*dedupEntry
	ended []vedette.OperationID // ended operations in byID, the oldest first
}

// dedupEntry is an operation that is running or ended.
type dedupEntry struct {
	digest string        // of the request
	done   chan struct{} // closed after the other fields are set
	view   outcomeView
	err    error // why the operation was not sent
}

// maxEnded bounds the ended operations in memory. Each takes some hundred bytes plus the
// cluster's messages and warnings. They are needed until the history has their outcomes.
const maxEnded = 1000

func newOperationDedup(key []byte) *operationDedup {
	return &operationDedup{digester: newOperationDigester(key), byID: map[vedette.OperationID]*dedupEntry{}}
}

// execute executes an operation, or returns the outcome of an earlier request with the same
// id.
func (a *api) execute(ctx context.Context, op vedette.Operation) (outcomeView, error) {
	if op.ID == "" {
		return newOutcomeView(op, a.Dispatch.Execute(ctx, op)), nil
	}
	op.Digest = a.dedup.digester.of(op)
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
		err = errIDReused(op.ID) // nothing is known of it yet
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
	switch compareDigests(row.Digest, op.Digest) {
	case isOther:
		return nil, errIDReused(op.ID)
	case isUnknown:
		return nil, vedette.Errorf(vedette.Conflict, "the id %s was used before, and this server cannot tell whether it was for the same manifest, "+
			"because the key in its dataDir has changed since, or was not kept: GET /vedette/v1/operations/%s returns the outcome of that operation; "+
			"use a new id for another one", op.ID, op.ID)
	case isSame:
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

// errIDReused is the same whatever the other operation is, and whoever sent it.
func errIDReused(id vedette.OperationID) error {
	return vedette.Errorf(vedette.Conflict, "the id %s belongs to another operation, or to one with other arguments, of another user, or that was just "+
		"accepted: GET /vedette/v1/operations/%s returns its outcome when it ends, if you may read it; use a new id for each operation", id, id)
}

// join returns the entry of an operation, and whether the caller must execute it.
func (d *operationDedup) join(op vedette.Operation) (*dedupEntry, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if existing := d.byID[op.ID]; existing != nil {
		if compareDigests(existing.digest, op.Digest) != isSame {
			return nil, false, errIDReused(op.ID)
		}
		return existing, false, nil
	}
	entry := &dedupEntry{digest: op.Digest, done: make(chan struct{})}
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
