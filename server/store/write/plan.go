package write

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/namefilter"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
)

// plan is what a batch changes in the database. It is made before the transaction begins, so that
// no row is locked while objects are compared. That is sound because the account's lock and
// its term keep others from writing the account in between, and awaitOutcome our own
// transactions.
type plan struct {
	batch          *commit.Batch
	baseline       *baseline
	rows           []objectRow // in the order of the primary key
	newLabelsets   map[int64]map[string]string
	labelHashes    map[catalog.Key]int64 // of rows whose label set is in newLabelsets
	addedLabelsets int                   // label sets that apply inserted
	removes        []catalog.Key
	countDelta     map[catalog.Feed]int64
	clusters       clusterDelta
	feeds          map[catalog.Feed]commit.FeedUpdate
	rewound        []vedette.Feed     // their objects must all be reported again
	operation      *history.Operation // the end of the operation that wrote the batch; nil for none
	tombstones     []string           // uids of objects that the operation deleted
	tombstoneKey   catalog.Key        // of these objects
	changes        []commit.Change
}

func newPlan(b *commit.Batch, base *baseline) *plan {
	return &plan{batch: b, baseline: base, newLabelsets: map[int64]map[string]string{}, labelHashes: map[catalog.Key]int64{},
		countDelta: map[catalog.Feed]int64{}, clusters: clusterDelta{}, feeds: map[catalog.Feed]commit.FeedUpdate{}}
}

func (p *plan) isEmpty() bool {
	return len(p.rows) == 0 && len(p.removes) == 0 && len(p.feeds) == 0 && len(p.tombstones) == 0
}

// buildPlan fills a plan. Columns in derived are not computed again.
func (w *Writer) buildPlan(ctx context.Context, p *plan, derived map[objectVersion]derivedColumns) error {
	upserts, deletes, err := w.resolveKeys(ctx, p.batch, p.baseline.covered)
	if err != nil {
		return err
	}
	if err := w.lookup(ctx, p.baseline, upserts, deletes); err != nil {
		return err
	}
	if err := w.compressChanged(ctx, p.diffUpserts(upserts, derived), p.rows); err != nil {
		return err
	}
	sortRows(p.rows)
	for i, key := range deletes {
		if _, ok := p.baseline.existing[key]; ok {
			p.addRemoval(key, p.batch.Deletes[i].Key)
		}
	}
	if err := w.resolveDrops(ctx, p, upserts); err != nil {
		return err
	}
	sortKeys(p.removes)
	return w.collectFeedUpdates(ctx, p)
}

// resolveKeys returns the row keys of a batch, and rejects batches that cannot be stored.
func (w *Writer) resolveKeys(ctx context.Context, b *commit.Batch, covered coverage) (upserts, deletes []catalog.Key, err error) {
	upserts, deletes = make([]catalog.Key, len(b.Upserts)), make([]catalog.Key, len(b.Deletes))
	seen := make(map[catalog.Key]bool, len(upserts)+len(deletes))
	toRowKey := func(key vedette.Key) (catalog.Key, error) {
		k, err := w.resolveRowKey(ctx, key, covered)
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

// resolveRowKey returns a key's row key. The error is commit.ErrNoFeed if no feed covers it.
func (w *Writer) resolveRowKey(ctx context.Context, key vedette.Key, covered coverage) (catalog.Key, error) {
	kindID, ok, err := w.kinds.LookupID(ctx, key.Kind)
	if err != nil {
		return catalog.Key{}, err
	}
	k := catalog.Key{KindID: kindID, Namespace: key.Namespace, Name: key.Name}
	if _, declared := covered.of(k); !ok || !declared {
		return k, noFeed(vedette.Feed{Kind: key.Kind, Namespace: key.Namespace})
	}
	return k, nil
}

// diffUpserts adds rows for the objects that differ from what is stored, and returns these objects
// in the order of the rows. The rows have compressed columns only if they are in derived.
func (p *plan) diffUpserts(upserts []catalog.Key, derived map[objectVersion]derivedColumns) []*vedette.Object {
	var changed []*vedette.Object
	for i, key := range upserts {
		o := &p.batch.Upserts[i]
		r := objectRow{Key: key, uid: codec.PackUID(o.UID), version: o.ResourceVersion}
		previous, exists := p.baseline.existing[key]
		if exists && previous.matches(o, r.uid) {
			continue
		}
		known := false
		if r.derivedColumns, known = derived[objectVersionOf(o)]; !known {
			r.derivedColumns = deriveColumns(o)
		}
		p.clusters.add(r.ClusterKey, r.managed, 1)
		if exists {
			p.clusters.add(previous.ClusterKey, previous.managed, -1)
		}
		p.setLabelset(&r, o, previous)
		p.rows = append(p.rows, r)
		changed = append(changed, o)
		change := commit.Change{Account: p.batch.Account, Key: o.Key, Type: commit.Modified, Version: o.ResourceVersion}
		if !exists {
			change.Type = commit.Added
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
	p.labelHashes[r.Key] = hash
}

func (p *plan) addRemoval(key catalog.Key, name vedette.Key) {
	p.removes = append(p.removes, key)
	feed, _ := p.baseline.covered.of(key)
	p.countDelta[feed]--
	if previous, ok := p.baseline.existing[key]; ok {
		p.clusters.add(previous.ClusterKey, previous.managed, -1)
	}
	p.changes = append(p.changes, commit.Change{Account: p.batch.Account, Key: name, Type: commit.Deleted})
}

// resolveDrops removes the rows that a snapshot did not find in the cluster, except those that
// the same batch writes or deletes.
func (w *Writer) resolveDrops(ctx context.Context, p *plan, upserts []catalog.Key) error {
	if len(p.batch.Drops) == 0 {
		return nil
	}
	inBatch := make(map[catalog.Key]bool, len(upserts)+len(p.removes))
	for _, key := range slices.Concat(upserts, p.removes) {
		inBatch[key] = true
	}
	for _, d := range p.batch.Drops {
		feed, err := w.resolveFeedKey(ctx, d.Feed, p.baseline.covered)
		if err != nil {
			return err
		}
		digests := make(map[uint64]bool, len(d.Digests))
		for _, digest := range d.Digests {
			digests[digest] = true
		}
		var dropped []catalog.Key
		err = w.scanFeedRows(ctx, p.baseline.accountID, feed, 4096, func(rows []indexRow) error {
			for _, r := range rows {
				key := catalog.Key{KindID: feed.KindID, Namespace: r.namespace, Name: r.name}
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
		if err := w.lookup(ctx, p.baseline, nil, dropped); err != nil {
			return err
		}
		for _, key := range dropped {
			p.addRemoval(key, vedette.Key{Kind: d.Feed.Kind, Namespace: key.Namespace, Name: key.Name})
		}
	}
	return nil
}

func (w *Writer) resolveFeedKey(ctx context.Context, feed vedette.Feed, covered coverage) (catalog.Feed, error) {
	kindID, ok, err := w.kinds.LookupID(ctx, feed.Kind)
	key := catalog.Feed{KindID: kindID, Namespace: feed.Namespace}
	if err == nil && (!ok || !covered[key]) {
		err = noFeed(feed)
	}
	return key, err
}

// collectFeedUpdates adds the feeds whose rows change: those in the batch, and those that gain or
// lose objects.
func (w *Writer) collectFeedUpdates(ctx context.Context, p *plan) error {
	for key, n := range p.countDelta {
		if n != 0 {
			p.feeds[key] = commit.FeedUpdate{}
		}
	}
	for _, u := range p.batch.Feeds {
		key, err := w.resolveFeedKey(ctx, u.Feed, p.baseline.covered)
		if err != nil {
			return err
		}
		if u.Mark != nil && !sqldb.IsValidText(string(*u.Mark), sqldb.MaxVersion) {
			return vedette.Errorf(vedette.Invalid, "the mark of feed %s is not valid text of at most %d bytes", u.Feed, sqldb.MaxVersion)
		}
		if _, isNeeded := p.feeds[key]; isNeeded || !isStored(u, p.baseline.marks[key]) {
			p.feeds[key] = u
		}
	}
	return nil
}

// isStored reports whether an update changes nothing: the mark of a bookmark is often the stored one where nothing changes.
func isStored(u commit.FeedUpdate, mark vedette.Mark) bool {
	return u.Mark != nil && *u.Mark == mark && u == (commit.FeedUpdate{Feed: u.Feed, Mark: u.Mark})
}

// effect returns what a plan changes for readers.
func (p *plan) effect() *versions.Effect {
	e := &versions.Effect{Account: p.batch.Account, Clusters: len(p.clusters) > 0, Changed: make([]versions.ChangedObject, 0,
		len(p.rows)+len(p.removes))}
	for i := range p.rows {
		addObject(e, p.rows[i].Application, p.rows[i].Key)
		p.addPrevious(e, p.rows[i].Key)
	}
	for _, key := range p.removes {
		p.addPrevious(e, key)
	}
	return e
}

// addPrevious adds the application of the stored row, which a change may have left.
func (p *plan) addPrevious(e *versions.Effect, key catalog.Key) {
	if previous, exists := p.baseline.existing[key]; exists {
		addObject(e, previous.Application, key)
	}
}

func addObject(e *versions.Effect, application string, key catalog.Key) {
	e.AddObject(application, key.KindID, key.Namespace, key.Name)
}

// addNames adds the names of new objects to filters.
func (p *plan) addNames(filters []*namefilter.Filter) {
	for _, f := range filters {
		for i := range p.rows {
			key := &p.rows[i].Key
			if _, exists := p.baseline.existing[*key]; !exists {
				f.Add(key.KindID, key.Namespace, key.Name)
			}
		}
	}
}

// changesState reports whether a plan changes the state or the message of a feed. The account log
// has such changes.
func (p *plan) changesState() bool {
	for key, u := range p.feeds {
		if u.IsNotable(p.baseline.live[key]) {
			return true
		}
	}
	return false
}
