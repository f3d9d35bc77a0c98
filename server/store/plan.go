package store

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/codec"
)

// plan is what a batch changes in the database. It is made before the transaction begins, so that
// no row is locked while objects are compared. That is sound because the account's lock and
// its term keep others from writing the account in between, and awaitOutcome our own
// transactions.
type plan struct {
	batch          *Batch
	baseline       *baseline
	rows           []objectRow // in the order of the primary key
	newLabelsets   map[int64]map[string]string
	labelHashes    map[rowKey]int64 // of rows whose label set is in newLabelsets
	addedLabelsets int              // label sets that apply inserted
	removes        []rowKey
	countDelta     map[feedKey]int64
	clusters       clusterDelta
	feeds          map[feedKey]FeedUpdate
	rewound        []vedette.Feed // their objects must all be reported again
	operationEnd   []any          // of the operation that wrote the batch; nil for none
	changes        []Change
}

func newPlan(b *Batch, base *baseline) *plan {
	return &plan{batch: b, baseline: base, newLabelsets: map[int64]map[string]string{}, labelHashes: map[rowKey]int64{},
		countDelta: map[feedKey]int64{}, clusters: clusterDelta{}, feeds: map[feedKey]FeedUpdate{}}
}

func (p *plan) isEmpty() bool {
	return len(p.rows) == 0 && len(p.removes) == 0 && len(p.feeds) == 0
}

// buildPlan fills a plan. Columns in derived are not computed again.
func (s *Store) buildPlan(ctx context.Context, p *plan, derived map[objectVersion]derivedColumns) error {
	upserts, deletes, err := s.resolveKeys(ctx, p.batch, p.baseline.covered)
	if err != nil {
		return err
	}
	if err := s.lookup(ctx, p.baseline, upserts, deletes); err != nil {
		return err
	}
	if err := s.compressChanged(ctx, p.diffUpserts(upserts, derived), p.rows); err != nil {
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

// resolveKeys returns the row keys of a batch, and rejects batches that cannot be stored.
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
		upserts[i], err = toRowKey(b.Upserts[i].Key)
		if err == nil {
			err = checkObject(&b.Upserts[i])
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for i := range b.Deletes {
		deletes[i], err = toRowKey(b.Deletes[i].Key)
		if err != nil {
			return nil, nil, err
		}
	}
	return upserts, deletes, nil
}

// resolveRowKey returns a key's row key. The error is ErrNoFeed if no feed covers it.
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

// diffUpserts adds rows for the objects that differ from what is stored, and returns these objects
// in the order of the rows. The rows have compressed columns only if they are in derived.
func (p *plan) diffUpserts(upserts []rowKey, derived map[objectVersion]derivedColumns) []*vedette.Object {
	var changed []*vedette.Object
	for i, key := range upserts {
		o := &p.batch.Upserts[i]
		r := objectRow{rowKey: key, uid: codec.PackUID(o.UID), version: o.ResourceVersion}
		previous, exists := p.baseline.existing[key]
		if exists && previous.matches(o, r.uid) {
			continue
		}
		known := false
		if r.derivedColumns, known = derived[objectVersionOf(o)]; !known {
			r.derivedColumns = deriveColumns(o)
		}
		p.clusters.add(r.clusterKey, r.managed, 1)
		if exists {
			p.clusters.add(previous.clusterKey, previous.managed, -1)
		}
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

// setLabelset keeps the label set of the stored row if the labels are the same, as in most
// updates. Other sets are looked up in the transaction.
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
	if previous, ok := p.baseline.existing[key]; ok {
		p.clusters.add(previous.clusterKey, previous.managed, -1)
	}
	p.changes = append(p.changes, Change{Account: p.batch.Account, Key: name, Type: Deleted})
}

// resolveDrops removes the rows that a snapshot did not find in the cluster, except those that
// the same batch writes or deletes.
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
		var dropped []rowKey
		err = s.scanFeedRows(ctx, p.baseline.accountID, feed, 4096, func(rows []indexRow) error {
			for _, r := range rows {
				key := rowKey{feed.kindID, r.namespace, r.name}
				if (digests[r.digest] || digests[r.digestWithoutName]) && !inBatch[key] {
					inBatch[key] = true
					dropped = append(dropped, key)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		// What is stored of them is needed for the clusters.
		if err := s.lookup(ctx, p.baseline, nil, dropped); err != nil {
			return err
		}
		for _, key := range dropped {
			p.addRemoval(key, vedette.Key{Kind: d.Feed.Kind, Namespace: key.namespace, Name: key.name})
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

// collectFeedUpdates adds the feeds whose rows change: those in the batch, and those that gain or
// lose objects.
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
			return vedette.Errorf(vedette.Invalid, "the mark of feed %s is not valid text of at most %d bytes", u.Feed, maxVersion)
		}
		p.feeds[key] = u
	}
	return nil
}
