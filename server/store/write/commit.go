package write

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/writethrough"
)

// A commit has six steps, each of which is one function, in the order of this file: prepareBatch, without the account's
// lock; then for each chunk takeChunk, which takes the lock, filterStale, planChunk, writePlan, in one transaction, and
// settle.

// Commit writes a batch and returns what changed. An object that is stored
// with the same uid and resourceVersion is neither written again nor returned.
// Changes that are older than what an operation wrote through are left out, see WriteThrough.
// Commit takes one transaction, or several while an operation is in progress, see Prioritize;
// the marks are in the last one. The error is ErrTerm if another agent has taken
// the account, ErrNoAccount if the account is gone, and commit.ErrRewound. Changes that are
// returned with an error are stored.
//
// Marks of bookmarks may be kept in memory, see StoreMarks.
func (w *Writer) Commit(ctx context.Context, b commit.Batch) ([]commit.Change, error) {
	action := "commit to account " + string(b.Account)
	if err := checkMarks(b.Feeds); err != nil {
		return nil, w.db.WrapError(action, err)
	}
	b, bookmarks := splitBookmarks(b)
	var changes []commit.Change
	var err error
	if !b.IsEmpty() || len(bookmarks.Feeds) == 0 {
		changes, err = w.commitNow(ctx, b)
	}
	if err == nil && len(bookmarks.Feeds) > 0 { // after the changes before them
		err = w.commitBookmarks(ctx, bookmarks)
	}
	return changes, w.db.WrapError(action, err)
}

// commitNow writes a batch, together with those of other accounts or alone.
func (w *Writer) commitNow(ctx context.Context, b commit.Batch) ([]commit.Change, error) {
	if done, err := w.makeLive(ctx, &b); done || err != nil {
		return nil, err
	}
	changes, err := w.commit(ctx, b)
	w.held.noteCommit(&b, err)
	return changes, err
}

// commit writes a batch in transactions of its own.
func (w *Writer) commit(ctx context.Context, b commit.Batch) ([]commit.Change, error) {
	// An object that cannot be stored need not be deleted.
	b.Deletes = slices.DeleteFunc(slices.Clone(b.Deletes), func(d commit.Deletion) bool { return checkKey(d.Key) != nil })
	prepared, err := w.prepareBatch(ctx, b)
	if err != nil {
		return nil, err
	}
	defer prepared.lock.Close()
	var changes []commit.Change
	for more := true; more && err == nil; {
		var written []commit.Change
		written, more, err = w.writeChunk(ctx, prepared)
		changes = append(changes, written...)
	}
	w.noteNamespaces(b.Account, changes, err)
	return changes, err
}

// prepareBatch reads what is stored under the batch's keys and compresses what differs, which is
// nearly all of a commit's work. It does not take the account's lock, so that operations
// need not wait. The caller must close the lock of the result.
func (w *Writer) prepareBatch(ctx context.Context, b commit.Batch) (*preparedBatch, error) {
	p := &preparedBatch{batch: b, lock: w.locks.Handle(b.Account), derived: make(map[objectVersion]derivedColumns, len(b.Upserts))}
	if err := w.readAndCompress(ctx, p); err != nil {
		p.lock.Close()
		return nil, err
	}
	return p, nil
}

// writeChunk writes the next chunk of a batch, and reports whether more is left.
func (w *Writer) writeChunk(ctx context.Context, prepared *preparedBatch) (changes []commit.Change, more bool, err error) {
	if err := prepared.lock.Lock(ctx); err != nil {
		return nil, false, err
	}
	defer prepared.lock.Unlock()
	b, more, err := w.takeChunk(ctx, prepared)
	if err != nil {
		return nil, false, err
	}
	if len(b.Upserts) > 0 { // nothing else can bring an object back
		if err := w.ensureTombstones(ctx, b.Account, b.Term, prepared.baseline.accountID); err != nil {
			return nil, false, err
		}
	}
	filtered := w.filterStale(ctx, &b, prepared.baseline)
	p, err := w.planChunk(ctx, &b, prepared)
	if err != nil {
		return nil, false, err
	}
	changes, err = w.writePlan(ctx, p, w.db.WriteLowPriority)
	if err != nil {
		return nil, false, err
	}
	err = w.settle(p, filtered, prepared)
	return changes, more && err == nil, err
}

// takeChunk removes the next chunk from the batch, and makes the baseline valid. The account is locked.
func (w *Writer) takeChunk(ctx context.Context, prepared *preparedBatch) (b commit.Batch, more bool, err error) {
	b, more = prepared.nextChunk(w.operations.ChunkLimit(prepared.batch.Account))
	return b, more, w.ensureFresh(ctx, prepared, &b)
}

// filterStale removes from a batch what is older than what operations wrote through.
func (w *Writer) filterStale(ctx context.Context, b *commit.Batch, base *baseline) *writethrough.Filtered {
	for _, u := range b.Feeds {
		if key, err := w.resolveFeedKey(ctx, u.Feed, base.covered); err == nil && u.Mark != nil {
			w.writeThrough.NoteMark(b.Account, u.Feed, base.marks[key], *u.Mark)
		}
	}
	out := w.writeThrough.Filter(b.Account, *b, writethrough.Database{
		IsDeclared: func(key vedette.Key) bool { // another server may have declared other feeds meanwhile
			_, err := w.resolveRowKey(ctx, key, base.covered)
			return !errors.Is(err, commit.ErrNoFeed)
		},
		Ahead: func(key vedette.Key) (uid, version string) {
			k, err := w.resolveRowKey(ctx, key, base.covered)
			row, exists := base.existing[k]
			feed, _ := base.covered.of(k)
			if err != nil || !exists || !writethrough.IsNewer(row.version, base.marks[feed]) ||
				!w.writeThrough.IsOrdered(b.Account, vedette.Feed{Kind: key.Kind, Namespace: feed.Namespace}) {
				return "", ""
			}
			return codec.UnpackUID(row.uid), row.version
		},
	})
	*b = out.Batch
	return out
}

// planChunk returns what a chunk changes in the database.
func (w *Writer) planChunk(ctx context.Context, b *commit.Batch, prepared *preparedBatch) (*plan, error) {
	rewound := w.detectRewind(b)
	p := newPlan(b, prepared.baseline)
	p.rewound = rewound
	return p, w.buildPlan(ctx, p, prepared.derived)
}

// writePlan writes a plan and returns what changed. It writes nothing if nothing changes.
func (w *Writer) writePlan(ctx context.Context, p *plan, write sqldb.WriteFunc) ([]commit.Change, error) {
	if p.isEmpty() {
		return nil, nil
	}
	if p.changesState() {
		defer w.versions.AccountLog.Note(p.batch.Account)
	}
	effect := p.effect()
	p.addNames(w.nameFilters.Of(p.baseline.accountID))
	err := write(ctx, func(ctx context.Context, tx *sqldb.Tx) error { return w.apply(ctx, tx, p) })
	w.versions.PublishOutcome(effect, err)
	if err != nil {
		w.markUncertain(p.batch.Account, p.changes, err)
		return nil, err
	}
	w.collectLabels(ctx, p)
	return p.changes, nil
}

// settle notes that a chunk is stored. The error is ErrRewound if a snapshot shows an earlier state of the cluster.
func (w *Writer) settle(p *plan, filtered *writethrough.Filtered, prepared *preparedBatch) error {
	filtered.Settle()
	prepared.baseline.invalidate(p)
	prepared.generation++ // for the unlock that follows, which changes nothing more
	if len(p.rewound) == 0 {
		return nil
	}
	w.writeThrough.Forget(p.batch.Account) // it is about the state before
	return fmt.Errorf("a snapshot of %s ended: %w", p.rewound[0], commit.ErrRewound)
}

// apply writes a plan in a transaction. It may run twice, because a transaction is retried
// after a conflict.
func (w *Writer) apply(ctx context.Context, tx *sqldb.Tx, p *plan) error {
	if _, err := registry.LockAccountRow(ctx, tx, p.batch.Account, p.batch.Term); err != nil {
		return err
	}
	if err := p.applyLabels(ctx, tx); err != nil {
		return err
	}
	if err := w.dialect.upsert(ctx, tx, p.baseline.accountID, p.rows); err != nil {
		return err
	}
	if err := w.dialect.remove(ctx, tx, p.baseline.accountID, p.removes); err != nil {
		return err
	}
	if err := w.applyClusters(ctx, tx, p.baseline.accountID, p.clusters); err != nil {
		return err
	}
	if err := w.applyFeeds(ctx, tx, p); err != nil {
		return err
	}
	if err := p.storeTombstones(ctx, tx); err != nil {
		return err
	}
	if p.operation == nil {
		return nil
	}
	return w.history.End(ctx, tx, p.operation)
}

// applyLabels sets the label sets of rows whose set was not known before the transaction.
func (p *plan) applyLabels(ctx context.Context, tx *sqldb.Tx) error {
	if len(p.newLabelsets) == 0 {
		return nil
	}
	ids, added, err := ensureLabelsets(ctx, tx, p.baseline.accountID, p.newLabelsets)
	if err != nil {
		return err
	}
	p.addedLabelsets = added
	for i := range p.rows {
		if hash, ok := p.labelHashes[p.rows[i].Key]; ok {
			p.rows[i].labelset = ids[hash]
		}
	}
	return nil
}

// applyFeeds updates the rows of feeds, in one order, so that two transactions cannot deadlock.
func (w *Writer) applyFeeds(ctx context.Context, tx *sqldb.Tx, p *plan) error {
	keys := slices.SortedFunc(maps.Keys(p.feeds), func(a, b catalog.Feed) int {
		return catalog.Key{KindID: a.KindID, Namespace: a.Namespace}.Compare(catalog.Key{KindID: b.KindID, Namespace: b.Namespace})
	})
	keys, err := p.resumeFeeds(ctx, tx, keys)
	if err == nil {
		keys, err = setLive(ctx, tx, p, keys)
	}
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := updateFeed(ctx, tx, p.baseline.accountID, key, p.feeds[key], p.countDelta[key]); err != nil {
			return fmt.Errorf("update a feed: %w", err)
		}
	}
	if len(p.rewound) > 0 {
		if err := forgetTombstones(ctx, tx, `account_id = ?`, p.baseline.accountID); err != nil {
			return err
		}
	}
	for _, feed := range p.rewound {
		kindID, _ := w.kinds.CachedID(feed.Kind) // buildPlan has looked it up
		if err := invalidateFeedObjects(ctx, tx, p.baseline.accountID, catalog.Feed{KindID: kindID, Namespace: feed.Namespace}); err != nil {
			return err
		}
	}
	return nil
}
