package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/overlay"
)

// A commit has six steps, which follow each other in this file: prepare the batch without
// the account's lock; then, for each chunk, take the lock, filter what is stale, plan the rows,
// write them in one transaction, and settle what the overlay knows.

// Commit writes a batch and returns what changed. An object that is stored
// with the same uid and resourceVersion is neither written again nor returned.
// Changes that are older than what an operation wrote through are left out, see WriteThrough.
// Commit takes one transaction, or several while an operation is in progress, see Prioritize;
// the marks are in the last one. The error is ErrTerm if another agent has taken
// the account, ErrNoAccount if the account is gone, and ErrRewound. Changes that are
// returned with an error are stored.
func (s *Store) Commit(ctx context.Context, b Batch) ([]Change, error) {
	action := "commit to account " + string(b.Account)
	if err := checkMarks(b.Feeds); err != nil {
		return nil, s.wrapError(action, err)
	}
	// An object that cannot be stored need not be deleted.
	b.Deletes = slices.DeleteFunc(slices.Clone(b.Deletes), func(d Deletion) bool { return checkKey(d.Key) != nil })
	prepared, err := s.prepareBatch(ctx, b)
	if err != nil {
		return nil, s.wrapError(action, err)
	}
	defer prepared.lock.Close()
	var changes []Change
	for more := true; more && err == nil; {
		var written []Change
		written, more, err = s.writeChunk(ctx, prepared)
		changes = append(changes, written...)
	}
	s.noteNamespaces(b.Account, changes, err)
	return changes, s.wrapError(action, err)
}

// prepareBatch reads what is stored under the batch's keys and compresses what differs, which is
// nearly all of a commit's work. It does not take the account's lock, so that operations
// need not wait. The caller must close the lock of the result.
func (s *Store) prepareBatch(ctx context.Context, b Batch) (*preparedBatch, error) {
	p := &preparedBatch{batch: b, lock: s.locks.Handle(b.Account), derived: make(map[objectVersion]derivedColumns, len(b.Upserts))}
	if err := s.readAndCompress(ctx, p); err != nil {
		p.lock.Close()
		return nil, err
	}
	return p, nil
}

func (s *Store) readAndCompress(ctx context.Context, p *preparedBatch) error {
	if err := s.refreshBaseline(ctx, p); err != nil {
		return err
	}
	b := &p.batch
	upserts, deletes, err := s.resolveKeys(ctx, b, p.baseline.covered)
	if err != nil {
		return err
	}
	if err := s.lookup(ctx, p.baseline, upserts, deletes); err != nil {
		return err
	}
	var changed []*vedette.Object
	var rows []objectRow
	for i, key := range upserts {
		o := &b.Upserts[i]
		if previous, exists := p.baseline.existing[key]; !exists || !previous.matches(o, codec.PackUID(o.UID)) {
			changed = append(changed, o)
			rows = append(rows, objectRow{rowKey: key, derivedColumns: deriveColumns(o)})
		}
	}
	if err := s.compressObjects(ctx, changed, rows); err != nil {
		return err
	}
	for i, o := range changed {
		p.derived[objectVersionOf(o)] = rows[i].derivedColumns
	}
	return nil
}

// writeChunk writes the next chunk of a batch, and reports whether more is left.
func (s *Store) writeChunk(ctx context.Context, prepared *preparedBatch) (changes []Change, more bool, err error) {
	if err := prepared.lock.Lock(ctx); err != nil {
		return nil, false, err
	}
	defer prepared.lock.Unlock()
	b, more := prepared.nextChunk(s.priority.ChunkLimit(prepared.batch.Account))
	if err := s.ensureFresh(ctx, prepared); err != nil {
		return nil, false, err
	}
	filtered := s.filterStale(ctx, &b, prepared.baseline.covered)
	rewound := s.detectRewind(&b)
	p := newPlan(&b, prepared.baseline)
	p.rewound = rewound
	if err := s.buildPlan(ctx, p, prepared.derived); err != nil {
		return nil, false, err
	}
	changes, err = s.writePlan(ctx, p, s.writeLowPriority)
	if err != nil {
		return nil, false, err
	}
	filtered.Settle()
	prepared.baseline.invalidate(p)
	prepared.generation++ // for the unlock that follows, which changes nothing more
	if len(rewound) > 0 {
		s.overlay.Forget(b.Account) // it is about the state before
		return changes, false, fmt.Errorf("a snapshot of %s ended: %w", rewound[0], ErrRewound)
	}
	return changes, more, nil
}

// ensureFresh reads the baseline again if anyone else has written the account since, or may have.
func (s *Store) ensureFresh(ctx context.Context, prepared *preparedBatch) error {
	b := &prepared.batch
	stale := prepared.lock.Generation() != prepared.generation || s.locks.IsUncertain(b.Account)
	if err := s.awaitOutcome(ctx, b.Account, b.Term); err != nil || !stale {
		return err
	}
	return s.refreshBaseline(ctx, prepared)
}

// awaitOutcome waits until the account's last transaction has ended, if its outcome is not
// known: the transaction holds the lock of the account's row. Whatever is planned after that
// is planned on what is really stored.
func (s *Store) awaitOutcome(ctx context.Context, account vedette.AccountName, term vedette.Term) error {
	return s.awaitOutcomeWith(ctx, account, func(ctx context.Context, tx *transaction) error {
		_, err := lockAccountRow(ctx, tx, account, term)
		return err
	})
}

func (s *Store) awaitOutcomeWith(ctx context.Context, account vedette.AccountName,
	lock func(ctx context.Context, tx *transaction) error) error {
	if !s.locks.IsUncertain(account) {
		return nil
	}
	err := s.write(ctx, lock)
	if err == nil {
		s.locks.ClearUncertain(account)
		s.versions.settle(account)
		s.versions.accountLog.note(account) // readers may have read it before that transaction ended
	}
	return err
}

// filterStale removes from a batch what is older than what operations wrote through.
func (s *Store) filterStale(ctx context.Context, b *Batch, covered coverage) *overlay.Filtered {
	in := overlay.Batch{Upserts: b.Upserts}
	for _, d := range b.Deletes {
		in.Deletes = append(in.Deletes, overlay.Deletion(d))
	}
	for _, d := range b.Drops {
		in.Drops = append(in.Drops, overlay.Drop(d))
	}
	for _, u := range b.Feeds {
		in.Feeds = append(in.Feeds, overlay.Progress{Feed: u.Feed, Mark: u.Mark, SnapshotMark: u.SnapshotMark})
	}
	// Another server may have declared other feeds meanwhile.
	out := s.overlay.Filter(b.Account, in, func(key vedette.Key) bool {
		_, err := s.resolveRowKey(ctx, key, covered)
		return !errors.Is(err, ErrNoFeed)
	})
	b.Upserts, b.Deletes, b.Drops = out.Upserts, nil, nil
	for _, d := range out.Deletes {
		b.Deletes = append(b.Deletes, Deletion(d))
	}
	for _, d := range out.Drops {
		b.Drops = append(b.Drops, Drop(d))
	}
	return out
}

// writePlan writes a plan and returns what changed. It writes nothing if nothing changes.
func (s *Store) writePlan(ctx context.Context, p *plan, write writeFunc) ([]Change, error) {
	if p.isEmpty() {
		return nil, nil
	}
	if p.changesState() {
		defer s.versions.accountLog.note(p.batch.Account)
	}
	effect := p.effect()
	s.nameFilters.add(p)
	err := write(ctx, p.apply)
	s.versions.publishOutcome(effect, err)
	if err != nil {
		s.locks.MarkUncertain(p.batch.Account)
		return nil, err
	}
	s.collectLabels(ctx, p)
	return p.changes, nil
}

// apply writes a plan in a transaction. It may run twice, because a transaction is retried
// after a conflict.
func (p *plan) apply(ctx context.Context, tx *transaction) error {
	if _, err := lockAccountRow(ctx, tx, p.batch.Account, p.batch.Term); err != nil {
		return err
	}
	if err := p.applyLabels(ctx, tx); err != nil {
		return err
	}
	if err := tx.dialect.upsert(ctx, tx, p.baseline.accountID, p.rows); err != nil {
		return err
	}
	if err := tx.dialect.remove(ctx, tx, p.baseline.accountID, p.removes); err != nil {
		return err
	}
	if err := p.clusters.apply(ctx, tx, p.baseline.accountID); err != nil {
		return err
	}
	if err := p.applyFeeds(ctx, tx); err != nil {
		return err
	}
	if p.operationEnd == nil {
		return nil
	}
	_, err := tx.exec(ctx, tx.store.endStatement(), p.operationEnd...)
	return err
}

// applyLabels sets the label sets of rows whose set was not known before the transaction.
func (p *plan) applyLabels(ctx context.Context, tx *transaction) error {
	if len(p.newLabelsets) == 0 {
		return nil
	}
	ids, added, err := ensureLabelsets(ctx, tx, p.baseline.accountID, p.newLabelsets)
	if err != nil {
		return err
	}
	p.addedLabelsets = added
	for i := range p.rows {
		if hash, ok := p.labelHashes[p.rows[i].rowKey]; ok {
			p.rows[i].labelset = ids[hash]
		}
	}
	return nil
}

// applyFeeds updates the rows of feeds, in one order, so that two transactions cannot deadlock.
func (p *plan) applyFeeds(ctx context.Context, tx *transaction) error {
	keys := slices.SortedFunc(maps.Keys(p.feeds), func(a, b feedKey) int {
		return rowKey{kindID: a.kindID, namespace: a.namespace}.compare(rowKey{kindID: b.kindID, namespace: b.namespace})
	})
	for _, key := range keys {
		if err := updateFeed(ctx, tx, p.baseline.accountID, key, p.feeds[key], p.countDelta[key]); err != nil {
			return fmt.Errorf("update a feed: %w", err)
		}
	}
	for _, feed := range p.rewound {
		kindID, _ := tx.store.kinds.cachedID(feed.Kind) // buildPlan has looked it up
		if err := invalidateFeedObjects(ctx, tx, p.baseline.accountID, feedKey{kindID, feed.Namespace}); err != nil {
			return err
		}
	}
	return nil
}
