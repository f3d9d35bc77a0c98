package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/codec"
)

// Commit writes a batch and returns what really changed. An object that is stored
// with the same uid and resourceVersion is not written again and not reported.
// What is older than what an operation wrote through is left out, as WriteThrough
// says. It takes one transaction, or several while somebody hurries, as Prioritize
// says; marks are in the last. The error is ErrTerm where another agent has taken
// the account, ErrNoAccount where it is gone, and ErrRewound; what is returned with an error
// has changed all the same.
func (s *Store) Commit(ctx context.Context, b Batch) ([]Change, error) {
	action := "commit to account " + string(b.Account)
	// What can't be stored is not there to be deleted.
	b.Deletes = slices.DeleteFunc(slices.Clone(b.Deletes), func(d Deletion) bool { return checkKey(d.Key) != nil })
	d, err := s.prepareBatch(ctx, b)
	if err != nil {
		return nil, s.wrapError(action, err)
	}
	defer d.lock.Close()
	var changes []Change
	for more := true; more && err == nil; {
		var written []Change
		written, more, err = s.writeChunk(ctx, d)
		changes = append(changes, written...)
	}
	return changes, s.wrapError(action, err)
}

// writeChunk writes the draft's next portion, and reports whether more is left.
func (s *Store) writeChunk(ctx context.Context, d *preparedBatch) (changes []Change, more bool, err error) {
	if err := d.lock.Lock(ctx); err != nil {
		return nil, false, err
	}
	defer d.lock.Unlock()
	b, more := d.nextChunk(s.priority.ChunkLimit(d.batch.Account))
	stale := d.lock.Generation() != d.generation || s.locks.IsUncertain(b.Account)
	if err := s.awaitOutcome(ctx, b.Account, b.Term); err != nil {
		return nil, false, err
	}
	if stale {
		if err := s.refreshBaseline(ctx, d); err != nil {
			return nil, false, err
		}
	}
	filter := s.filterStale(ctx, &b, d.baseline.covered)
	rewound := s.detectRewind(&b)
	p := newPlan(&b, d.baseline)
	p.rewound = rewound
	write := func(ctx context.Context, do func(ctx context.Context, tx *transaction) error) error {
		return s.writeBatch(ctx, d.batch.Source, do)
	}
	if changes, err = s.executePlan(ctx, p, d.compressed, write); err != nil {
		return nil, false, err
	}
	s.overlays.update(b.Account, filter)
	d.baseline.invalidate(p)
	d.generation++ // this one
	if len(rewound) > 0 {
		s.overlays.forget(b.Account) // of what was
		return changes, false, fmt.Errorf("a snapshot of %s ended: %w", rewound[0], ErrRewound)
	}
	return changes, more, nil
}

// executePlan writes what a plan's batch comes to, and returns what changed.
func (s *Store) executePlan(ctx context.Context, p *plan, compressed map[objectVersion]compressedColumns, write writeFunc) ([]Change, error) {
	if err := s.buildPlan(ctx, p, compressed); err != nil || p.isEmpty() {
		return nil, err
	}
	if err := write(ctx, p.apply); err != nil {
		s.locks.MarkUncertain(p.batch.Account)
		return nil, err
	}
	s.collectLabels(ctx, p)
	return p.changes, nil
}

// awaitOutcome waits, where the outcome of the account's last transaction is not
// known, until that has ended one way or the other: it holds the account's lock.
// What is planned after that is planned on what counts.
func (s *Store) awaitOutcome(ctx context.Context, account vedette.AccountName, term vedette.Term) error {
	return s.awaitOutcomeWith(ctx, account, func(ctx context.Context, tx *transaction) error {
		_, err := lockAccountRow(ctx, tx, account, term)
		return err
	})
}

func (s *Store) awaitOutcomeWith(ctx context.Context, account vedette.AccountName, lock func(ctx context.Context, tx *transaction) error) error {
	if !s.locks.IsUncertain(account) {
		return nil
	}
	err := s.write(ctx, lock)
	if err == nil {
		s.locks.ClearUncertain(account)
	}
	return err
}

// plan is what a batch comes to against what is stored. It is made before the
// transaction begins, so that comparing holds no lock. That is sound because the
// account's gate and its term keep all others from writing the account between
// the two, and settle our own.
type plan struct {
	batch          *Batch
	baseline       *baseline
	rows           []objectRow // in the order of the primary key
	newLabelsets   map[int64]map[string]string
	labelHashes    map[rowKey]int64 // of the labels of rows whose set is not known
	addedLabelsets int              // label sets that are new
	removes        []rowKey
	countDelta     map[feedKey]int64
	feeds          map[feedKey]FeedUpdate
	rewound        []vedette.Feed // of which nothing counts as known any more
	operationEnd   []any          // of the operation that wrote it; nil for none
	changes        []Change
}

func (p *plan) isEmpty() bool {
	return len(p.rows) == 0 && len(p.removes) == 0 && len(p.feeds) == 0
}

func newPlan(b *Batch, base *baseline) *plan {
	return &plan{batch: b, baseline: base, newLabelsets: map[int64]map[string]string{}, labelHashes: map[rowKey]int64{}, countDelta: map[feedKey]int64{}, feeds: map[feedKey]FeedUpdate{}}
}

// buildPlan makes a plan. What is compressed already need not be once more.
func (s *Store) buildPlan(ctx context.Context, p *plan, compressed map[objectVersion]compressedColumns) error {
	upserts, deletes, err := s.resolveKeys(ctx, p.batch, p.baseline.covered)
	if err != nil {
		return err
	}
	if err := s.lookup(ctx, p.baseline, upserts, deletes); err != nil {
		return err
	}
	if err := s.compressChanged(ctx, compressed, p.diffUpserts(upserts), p.rows); err != nil {
		return err
	}
	sortRows(p.rows)
	for i, key := range deletes {
		if _, ok := p.baseline.existing[key]; ok {
			p.addRemoval(key, p.batch.Deletes[i].Key)
		}
	}
	if err := s.resolveDrops(ctx, p, upserts); err != nil {
		return err
	}
	sortKeys(p.removes)
	return s.collectFeedUpdates(ctx, p)
}

// resolveKeys numbers the kinds of a batch and checks what it names.
func (s *Store) resolveKeys(ctx context.Context, b *Batch, covered coverage) (upserts, deletes []rowKey, err error) {
	upserts, deletes = make([]rowKey, len(b.Upserts)), make([]rowKey, len(b.Deletes))
	seen := make(map[rowKey]bool, len(upserts)+len(deletes))
	toRowKey := func(key vedette.Key) (rowKey, error) {
		k, err := s.resolveRowKey(ctx, key, covered)
		if err == nil && seen[k] {
			err = vedette.Errorf(vedette.Invalid, "a batch names %s twice", key)
		}
		seen[k] = true
		return k, err
	}
	for i := range b.Upserts {
		if upserts[i], err = toRowKey(b.Upserts[i].Key); err == nil {
			err = checkObject(&b.Upserts[i])
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for i := range b.Deletes {
		if deletes[i], err = toRowKey(b.Deletes[i].Key); err != nil {
			return nil, nil, err
		}
	}
	return upserts, deletes, nil
}

func (s *Store) resolveRowKey(ctx context.Context, key vedette.Key, covered coverage) (rowKey, error) {
	kindID, ok, err := s.kinds.lookupID(ctx, s, key.Kind)
	if err != nil {
		return rowKey{}, err
	}
	k := rowKey{kindID, key.Namespace, key.Name}
	if _, declared := covered.of(k); !ok || !declared {
		return k, noFeed(vedette.Feed{Kind: key.Kind, Namespace: key.Namespace})
	}
	return k, nil
}

// diffUpserts keeps what differs from what is stored, as rows that lack their
// compressed columns, and returns the objects in the order of these rows.
func (p *plan) diffUpserts(upserts []rowKey) []*vedette.Object {
	var changed []*vedette.Object
	for i, key := range upserts {
		o := &p.batch.Upserts[i]
		r := objectRow{rowKey: key, uid: codec.PackUID(o.UID), version: o.ResourceVersion}
		previous, exists := p.baseline.existing[key]
		if exists && previous.matches(o, r.uid) {
			continue
		}
		r.application = applicationOf(o)
		p.setLabelset(&r, o, previous)
		p.rows = append(p.rows, r)
		changed = append(changed, o)
		change := Change{Account: p.batch.Account, Key: o.Key, Type: Modified, Version: o.ResourceVersion}
		if !exists {
			change.Type = Added
			feed, _ := p.baseline.covered.of(key)
			p.countDelta[feed]++
		}
		p.changes = append(p.changes, change)
	}
	return changed
}

func applicationOf(o *vedette.Object) string {
	return sanitize(vedette.MonikerOf(o.Key, o.Annotations).App, maxApplication)
}

// setLabelset keeps the label set that the stored row has, which most updates do not
// change, and notes any other for the transaction to find.
func (p *plan) setLabelset(r *objectRow, o *vedette.Object, previous storedRow) {
	if len(o.Labels) == 0 {
		return
	}
	hash := codec.HashLabels(o.Labels)
	if hash == previous.hash {
		r.labelset = previous.labelset
		return
	}
	p.newLabelsets[hash] = o.Labels
	p.labelHashes[r.rowKey] = hash
}

func (p *plan) addRemoval(key rowKey, name vedette.Key) {
	p.removes = append(p.removes, key)
	feed, _ := p.baseline.covered.of(key)
	p.countDelta[feed]--
	p.changes = append(p.changes, Change{Account: p.batch.Account, Key: name, Type: Deleted})
}

// resolveDrops finds the rows that a snapshot did not meet in the cluster. What the
// same batch writes or deletes is left to that.
func (s *Store) resolveDrops(ctx context.Context, p *plan, upserts []rowKey) error {
	if len(p.batch.Drops) == 0 {
		return nil
	}
	inBatch := make(map[rowKey]bool, len(upserts)+len(p.removes))
	for _, key := range slices.Concat(upserts, p.removes) {
		inBatch[key] = true
	}
	for _, d := range p.batch.Drops {
		feed, err := s.resolveFeedKey(ctx, d.Feed, p.baseline.covered)
		if err != nil {
			return err
		}
		digests := make(map[uint64]bool, len(d.Digests))
		for _, digest := range d.Digests {
			digests[digest] = true
		}
		err = s.scanFeedRows(ctx, p.baseline.accountID, feed, 4096, func(rows []indexRow) error {
			for _, r := range rows {
				key := rowKey{feed.kindID, r.namespace, r.name}
				if digests[r.digest] && !inBatch[key] {
					inBatch[key] = true
					p.addRemoval(key, vedette.Key{Kind: d.Feed.Kind, Namespace: r.namespace, Name: r.name})
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) resolveFeedKey(ctx context.Context, feed vedette.Feed, covered coverage) (feedKey, error) {
	kindID, ok, err := s.kinds.lookupID(ctx, s, feed.Kind)
	key := feedKey{kindID, feed.Namespace}
	if err == nil && (!ok || !covered[key]) {
		err = noFeed(feed)
	}
	return key, err
}

// collectFeedUpdates gathers each feed's row: what the batch says of it and what it gained.
func (s *Store) collectFeedUpdates(ctx context.Context, p *plan) error {
	for key, n := range p.countDelta {
		if n != 0 {
			p.feeds[key] = FeedUpdate{}
		}
	}
	for _, u := range p.batch.Feeds {
		key, err := s.resolveFeedKey(ctx, u.Feed, p.baseline.covered)
		if err != nil {
			return err
		}
		if u.Mark != nil && !isValidText(string(*u.Mark), maxVersion) {
			return vedette.Errorf(vedette.Invalid, "the mark of feed %s is longer than %d bytes or no text", u.Feed, maxVersion)
		}
		p.feeds[key] = u
	}
	return nil
}

// apply writes a plan. It may run twice, and changes nothing in it that matters
// to the second time.
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
	keys := slices.SortedFunc(maps.Keys(p.feeds), func(a, b feedKey) int {
		return rowKey{kindID: a.kindID, namespace: a.namespace}.compare(rowKey{kindID: b.kindID, namespace: b.namespace})
	})
	for _, key := range keys {
		if err := updateFeed(ctx, tx, p.baseline.accountID, key, p.feeds[key], p.countDelta[key]); err != nil {
			return fmt.Errorf("update a feed: %w", err)
		}
	}
	for _, feed := range p.rewound {
		kindID, _ := tx.store.kinds.cachedID(feed.Kind) // the plan has found it
		if err := invalidateFeedObjects(ctx, tx, p.baseline.accountID, feedKey{kindID, feed.Namespace}); err != nil {
			return err
		}
	}
	if p.operationEnd == nil {
		return nil
	}
	_, err := tx.exec(ctx, tx.store.endStatement(), p.operationEnd...)
	return err
}

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
