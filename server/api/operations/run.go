package operations

import (
	"context"
	"slices"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
)

type historyStore interface {
	Operation(ctx context.Context, id vedette.OperationID) (history.Operation, error)
}

// dispatcher executes operations. Execute returns when the operation has an outcome or ctx
// ends; an operation that changes something continues after ctx ended.
type dispatcher interface {
	Execute(ctx context.Context, op vedette.Operation) vedette.Outcome
}

// endAwaiter is a dispatcher that can wait for operations that other servers have accepted. AwaitEnd returns an error if it cannot be known
// when the operation ends.
type endAwaiter interface {
	AwaitEnd(ctx context.Context, server vedette.ServerID, id vedette.OperationID) error
}

// Runner executes the operations of callers, each once.
type Runner struct {
	dispatch dispatcher
	store    historyStore
	dedup    *dedup
}

// NewRunner returns a Runner. The key is that of the digests of manifests in the history; without one, another is made, which ends with
// the process.
func NewRunner(d dispatcher, s historyStore, key []byte) *Runner { return &Runner{d, s, newDedup(key)} }

// dedup holds operations with an id from the caller. A caller that sends an operation
// again, because the response was lost, gets the outcome of the first request: from here while
// it is in memory, and from the history later.
type dedup struct {
	digester Digester

	mu         sync.Mutex
	byID       map[vedette.OperationID]*dedupEntry
	ended      []vedette.OperationID // ended operations in byID, the oldest first
	endedBytes int                   // of their outcomes
}

// dedupEntry is an operation that is running or ended.
type dedupEntry struct {
	digest string        // of the request
	done   chan struct{} // closed after the other fields are set
	view   Outcome
	err    error // why the operation was not sent
	bytes  int   // of view, as endedBytes counts them; 0 while the operation is running
}

// maxEnded bounds the ended operations in memory. They are needed until the history has their outcomes. Each takes some hundred bytes
// plus the cluster's messages, warnings and names, which an agent may make as long as it likes: beyond maxEndedBytes in all, or
// maxOutcomeBytes in one, an outcome has only what the history has of it.
const (
	maxEnded        = 1000
	maxEndedBytes   = 32 << 20
	maxOutcomeBytes = 512 << 10
)

func newDedup(key []byte) *dedup {
	return &dedup{digester: NewDigester(key), byID: map[vedette.OperationID]*dedupEntry{}}
}

// Run executes an operation, or returns the outcome of an earlier request with the same
// id.
func (r *Runner) Run(ctx context.Context, op vedette.Operation) (Outcome, error) {
	if op.ID == "" {
		return newOutcome(op, r.dispatch.Execute(ctx, op)), nil
	}
	op.Digest = r.dedup.digester.Of(op)
	entry, first, err := r.dedup.join(op)
	if err != nil {
		return Outcome{}, err
	}
	if first {
		// The operation continues if its caller leaves, because another caller may be waiting
		// for it. The dispatcher ends it soon after its deadline.
		go r.runOnce(context.WithoutCancel(ctx), op, entry)
	}
	select {
	case <-ctx.Done():
		return Outcome{}, context.Cause(ctx)
	case <-entry.done:
	}
	if first || entry.err != nil {
		return entry.view, entry.err
	}
	return entry.view.asRepeated(), nil
}

func (r *Runner) runOnce(ctx context.Context, op vedette.Operation, entry *dedupEntry) {
	recorded, err := r.lookupHistory(ctx, op)
	switch {
	case err != nil:
		entry.err = err
	case recorded != nil:
		entry.view = *recorded
	default:
		entry.view, entry.err = r.send(ctx, op)
	}
	r.dedup.finish(op.ID, entry)
}

// send executes an operation that is not in the history. If another server accepted the same
// id in the meantime, its outcome counts.
func (r *Runner) send(ctx context.Context, op vedette.Operation) (Outcome, error) {
	out := r.dispatch.Execute(ctx, op)
	if out.Reason != vedette.ReasonAlreadyAccepted {
		return newOutcome(op, out), nil
	}
	recorded, err := r.lookupHistory(ctx, op)
	if err == nil && recorded == nil {
		err = errIDReused(op.ID) // nothing is known of it yet
	}
	if err != nil {
		return Outcome{}, err
	}
	return *recorded, nil
}

// lookupHistory returns the outcome of an operation with the same id from the history.
func (r *Runner) lookupHistory(ctx context.Context, op vedette.Operation) (*Outcome, error) {
	row, err := r.store.Operation(ctx, op.ID)
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
	if row.State == history.Pending {
		row, err = r.awaitEnd(ctx, row)
	}
	if err != nil {
		return nil, err
	}
	if row.State == history.Pending {
		return nil, vedette.Errorf(vedette.Conflict,
			"operation %s has been running since %s; GET /vedette/v1/operations/%s returns its outcome when it ends",
			op.ID, row.Accepted.UTC().Format("15:04:05Z"), op.ID)
	}
	view := Outcome{ID: op.ID, Account: row.Account, Verb: row.Verb, DryRun: row.DryRun, State: row.State, Status: row.Status,
		Reason: row.Reason, Message: row.Message,
		Keys: []objectKey{}}
	view = view.asRepeated()
	return &view, nil
}

// awaitEnd waits until the server that has accepted an operation has ended it, and returns its row. The row is still pending if that server
// cannot be asked. It ends soon after the deadline of the operation, which that server keeps.
func (r *Runner) awaitEnd(ctx context.Context, row history.Operation) (history.Operation, error) {
	d, ok := r.dispatch.(endAwaiter)
	if !ok {
		return row, nil
	}
	_ = d.AwaitEnd(ctx, row.Server, row.ID) // the row says whether it has ended
	return r.store.Operation(ctx, row.ID)
}

// errIDReused is the same whatever the other operation is, and whoever sent it.
func errIDReused(id vedette.OperationID) error {
	return vedette.Errorf(vedette.Conflict, "the id %s belongs to another operation, or to one with other arguments, of another user, or that was just "+
		"accepted: GET /vedette/v1/operations/%s returns its outcome when it ends, if you may read it; use a new id for each operation", id, id)
}

// join returns the entry of an operation, and whether the caller must execute it.
func (d *dedup) join(op vedette.Operation) (*dedupEntry, bool, error) {
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
func (d *dedup) finish(id vedette.OperationID, entry *dedupEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(entry.done)
	if entry.err != nil {
		delete(d.byID, id)
		return
	}
	cached := &dedupEntry{digest: entry.digest, done: entry.done, view: entry.view.asRepeated()}
	if n := cached.view.size(); n > maxOutcomeBytes || d.endedBytes+n > maxEndedBytes {
		cached.view = cached.view.asRecorded()
	}
	cached.bytes = cached.view.size()
	d.byID[id] = cached
	d.endedBytes += cached.bytes
	d.ended = append(d.ended, id)
	if len(d.ended) > maxEnded {
		d.endedBytes -= d.byID[d.ended[0]].bytes
		delete(d.byID, d.ended[0])
		d.ended = slices.Delete(d.ended, 0, 1)
	}
}
