package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
)

// Declare replaces an account's feeds by those that its agent declares, and returns the objects
// that were removed with the others. New feeds are pending. Feeds in unknownGroups are kept,
// because the agent could not discover those API groups.
func (s *Store) Declare(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []DeclaredFeed,
	unknownGroups []string) ([]Change, error) {
	action := "declare the feeds of account " + string(account)
	unlock, err := s.locks.Lock(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", action, err)
	}
	defer unlock()
	defer s.versions.accountLog.note(account)
	if err := s.limits.check(account, feeds); err != nil {
		return nil, fmt.Errorf("%s: %w", action, err)
	}
	d, err := s.writeDeclaration(ctx, account, term, feeds, unknownGroups)
	if err != nil {
		return nil, s.wrapError(action, err)
	}
	declared := make([]vedette.Feed, len(feeds))
	for i, f := range feeds {
		declared[i] = f.Feed
	}
	s.overlay.Prune(account, declared, unknownGroups)
	changes, err := s.removeWithdrawnFeeds(ctx, d)
	return changes, s.wrapError(action, err)
}

// errKindGone means that a kind was deleted after its id was read.
var errKindGone = errors.New("a kind was deleted in the meantime")

// writeDeclaration writes the declared feeds. It is retried if a kind is deleted meanwhile.
func (s *Store) writeDeclaration(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []DeclaredFeed,
	unknownGroups []string) (*declaration, error) {
	for tries := 0; ; tries++ {
		d, err := s.newDeclaration(ctx, account, term, feeds, unknownGroups)
		if err == nil {
			err = s.write(ctx, func(ctx context.Context, tx *transaction) error { return d.begin(ctx, tx) })
		}
		if !errors.Is(err, errKindGone) || tries == 2 {
			return d, err
		}
	}
}

type declaration struct {
	account vedette.AccountName
	term    vedette.Term
	feeds   map[feedKey]vedette.Resource
	wanted  coverage
	unknown func(kind int64) bool

	// Set by begin.
	id   int64
	gone []feedKey
}

func (s *Store) newDeclaration(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []DeclaredFeed,
	unknownGroups []string) (*declaration, error) {
	d := &declaration{account: account, term: term, feeds: map[feedKey]vedette.Resource{}, wanted: coverage{}}
	// After this, the kinds of all stored feeds are known, because a kind is stored
	// before its feeds are.
	if err := s.kinds.load(ctx, s); err != nil {
		return nil, err
	}
	d.unknown = func(kind int64) bool {
		k, ok := s.kinds.cachedKind(kind)
		return !ok || slices.Contains(unknownGroups, k.Group)
	}
	if err := s.assignKindIDs(ctx, account, term, feeds); err != nil {
		return nil, err
	}
	for _, f := range feeds {
		kind, ok := s.kinds.cachedID(f.Feed.Kind)
		if !ok {
			return nil, errKindGone
		}
		key := feedKey{kind, f.Feed.Namespace}
		d.feeds[key], d.wanted[key] = f.Resource, true
	}
	return d, d.checkOverlap(feeds)
}

// checkOverlap rejects a kind that is declared both for all namespaces and for one, because each
// object must belong to one feed.
func (d *declaration) checkOverlap(feeds []DeclaredFeed) error {
	for key := range d.feeds {
		if key.namespace != "" && d.wanted[feedKey{key.kindID, ""}] {
			i := slices.IndexFunc(feeds, func(f DeclaredFeed) bool { return f.Feed.Namespace == key.namespace })
			return vedette.Errorf(vedette.Invalid, "the feed %s is declared in addition to the feed of all namespaces: declare one or the other",
				feeds[i].Feed)
		}
	}
	return nil
}

// begin writes the declared feeds, and clears the marks of those that are withdrawn: their objects
// are deleted in several transactions, and after a crash in between no feed may look complete.
func (d *declaration) begin(ctx context.Context, tx *transaction) error {
	id, err := lockAccountRow(ctx, tx, d.account, d.term)
	if err != nil {
		return err
	}
	stored, err := readCoverage(ctx, tx.Tx, tx.dialect, id)
	if err != nil {
		return err
	}
	d.id, d.gone = id, nil
	for key := range stored {
		if !d.wanted[key] && !d.unknown(key.kindID) {
			d.gone = append(d.gone, key)
		}
	}
	slices.SortFunc(d.gone, func(a, b feedKey) int {
		return rowKey{a.kindID, a.namespace, ""}.compare(rowKey{b.kindID, b.namespace, ""})
	})
	for _, key := range d.gone {
		if _, err := tx.exec(ctx, `UPDATE feeds SET mark = '', state = ? WHERE account_id = ? AND kind_id = ? AND namespace = ?`,
			string(vedette.FeedPending), id, key.kindID, key.namespace); err != nil {
			return fmt.Errorf("withdraw a feed: %w", err)
		}
	}
	if err := d.markKindsUsed(ctx, tx, stored); err != nil {
		return err
	}
	return d.storeFeeds(ctx, tx, stored)
}

// markKindsUsed keeps the kinds of new feeds from being deleted.
func (d *declaration) markKindsUsed(ctx context.Context, tx *transaction, existing coverage) error {
	var kinds []int64
	for key := range d.feeds {
		if !existing[key] {
			kinds = append(kinds, key.kindID)
		}
	}
	slices.Sort(kinds)
	used, err := markKindsUsed(ctx, tx, slices.Compact(kinds))
	if err == nil && !used {
		err = errKindGone
	}
	return err
}

func (d *declaration) storeFeeds(ctx context.Context, tx *transaction, existing coverage) error {
	var added [][]any
	for key, r := range d.feeds {
		r = sanitizeResource(r)
		short, err := json.Marshal(r.ShortNames)
		if err != nil {
			return fmt.Errorf("write short names: %w", err)
		}
		if !existing[key] {
			added = append(added, []any{d.id, key.kindID, key.namespace, "", string(vedette.FeedPending), "", 0, 0, 0, r.Version, r.Plural,
				r.Singular, string(short), boolToInt(r.Namespaced)})
			continue
		}
		if _, err := tx.exec(ctx, `UPDATE feeds SET version = ?, plural = ?, singular = ?, short_names = ?, namespaced = ? WHERE account_id = ? AND kind_id = ? AND namespace = ?`,
			r.Version, r.Plural, r.Singular, string(short), boolToInt(r.Namespaced), d.id, key.kindID, key.namespace); err != nil {
			return fmt.Errorf("update a feed: %w", err)
		}
	}
	return insertValues(ctx, tx, "feeds", feedColumns, added, "")
}

// Limits of what is stored of a resource: the bytes of a name, and the number of short names.
const (
	maxResource   = 253
	maxShortNames = 32
)

// sanitizeResource makes the names of a resource fit for their columns.
func sanitizeResource(r vedette.Resource) vedette.Resource {
	r.Version, r.Plural, r.Singular = sanitize(r.Version, maxResource), sanitize(r.Plural, maxResource), sanitize(r.Singular, maxResource)
	var short []string
	for _, name := range r.ShortNames[:min(len(r.ShortNames), maxShortNames)] {
		short = append(short, sanitize(name, maxWord))
	}
	r.ShortNames = short
	return r
}

var feedColumns = []columnSpec{{"account_id", "integer"}, {"kind_id", "integer"}, {"namespace", "text"}, {"mark", "text"},
	{"state", "text"}, {"message", "text"},
	{"objects", "bigint"}, {"synced", "bigint"}, {"seen", "bigint"}, {"version", "text"}, {"plural", "text"}, {"singular", "text"},
	{"short_names", "text"}, {"namespaced", "smallint"}}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

const removeChunkSize = 2000 // rows per transaction

// removeWithdrawnFeeds first deletes the objects that no other feed covers, in short transactions,
// and then the feeds. With them it corrects the counts of feeds that inherit objects.
func (s *Store) removeWithdrawnFeeds(ctx context.Context, d *declaration) ([]Change, error) {
	var changes []Change
	for _, key := range d.gone {
		removed, err := s.removeFeedObjects(ctx, d, key)
		changes = append(changes, removed...)
		if err != nil {
			return changes, err
		}
	}
	err := s.write(ctx, func(ctx context.Context, tx *transaction) error {
		if _, err := lockAccountRow(ctx, tx, d.account, d.term); err != nil {
			return err
		}
		if err := d.deleteFeeds(ctx, tx); err != nil {
			return err
		}
		return deleteUnusedLabelsets(ctx, tx, d.id)
	})
	return changes, err
}

func (s *Store) removeFeedObjects(ctx context.Context, d *declaration, feed feedKey) ([]Change, error) {
	var changes []Change
	kind, err := s.kinds.lookupKind(ctx, s, feed.kindID)
	if err != nil {
		return nil, err
	}
	err = s.scanFeedRows(ctx, d.id, feed, removeChunkSize, func(rows []indexRow) error {
		var keys []rowKey
		var gone []Change
		for _, r := range rows {
			key := rowKey{feed.kindID, r.namespace, r.name}
			if _, inherited := d.wanted.of(key); inherited {
				continue
			}
			keys = append(keys, key)
			gone = append(gone, Change{Account: d.account, Key: vedette.Key{Kind: kind, Namespace: r.namespace, Name: r.name}, Type: Deleted})
		}
		if len(keys) == 0 {
			return nil
		}
		if err := s.removeWithdrawnObjects(ctx, d, feed, keys); err != nil {
			return err
		}
		changes = append(changes, gone...)
		return nil
	})
	return changes, err
}

// removeWithdrawnObjects removes objects of a feed in one transaction. The caller holds the account's
// lock.
func (s *Store) removeWithdrawnObjects(ctx context.Context, d *declaration, feed feedKey, keys []rowKey) error {
	clusters, e := clusterDelta{}, &effect{account: d.account}
	if err := s.dialect.lookup(ctx, s, d.id, keys, func(r storedRow) {
		clusters.add(r.clusterKey, r.managed, -1)
		e.addObject(r.application, r.rowKey)
	}); err != nil {
		return err
	}
	e.clusters = len(clusters) > 0
	err := s.writeLowPriority(ctx, func(ctx context.Context, tx *transaction) error {
		return d.removeObjects(ctx, tx, feed, keys, clusters)
	})
	s.versions.publishOutcome(e, err)
	if err != nil {
		s.locks.MarkUncertain(d.account)
	}
	return err
}

func (d *declaration) removeObjects(ctx context.Context, tx *transaction, feed feedKey, keys []rowKey, clusters clusterDelta) error {
	if _, err := lockAccountRow(ctx, tx, d.account, d.term); err != nil {
		return err
	}
	if err := tx.dialect.remove(ctx, tx, d.id, keys); err != nil {
		return err
	}
	if err := clusters.apply(ctx, tx, d.id); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `UPDATE feeds SET objects = objects - ? WHERE account_id = ? AND kind_id = ? AND namespace = ?`, len(keys), d.id,
		feed.kindID, feed.namespace)
	return err
}

func (d *declaration) deleteFeeds(ctx context.Context, tx *transaction) error {
	for _, key := range d.gone {
		if _, err := tx.exec(ctx, `DELETE FROM feeds WHERE account_id = ? AND kind_id = ? AND namespace = ?`, d.id, key.kindID,
			key.namespace); err != nil {
			return fmt.Errorf("delete a feed: %w", err)
		}
		if err := d.recount(ctx, tx, key.kindID); err != nil {
			return fmt.Errorf("count the objects of a feed: %w", err)
		}
	}
	return nil
}

// recount sets the object counts of a kind's feeds, because they may have inherited objects of a
// withdrawn feed.
func (d *declaration) recount(ctx context.Context, tx *transaction, kindID int64) error {
	counts := map[feedKey]int64{}
	for key := range d.wanted {
		if key.kindID == kindID {
			counts[key] = 0
		}
	}
	if len(counts) == 0 {
		return nil
	}
	err := queryEach(ctx, tx.Tx, tx.dialect, func(rows *sql.Rows) error {
		key := rowKey{kindID: kindID}
		var n int64
		if err := rows.Scan(&key.namespace, &n); err != nil {
			return err
		}
		if feed, ok := d.wanted.of(key); ok {
			counts[feed] += n
		}
		return nil
	}, `SELECT namespace, COUNT(*) FROM objects WHERE account_id = ? AND kind_id = ? GROUP BY namespace`, d.id, kindID)
	if err != nil {
		return err
	}
	for key, n := range counts {
		if _, err := tx.exec(ctx, `UPDATE feeds SET objects = ? WHERE account_id = ? AND kind_id = ? AND namespace = ?`, n, d.id, key.kindID,
			key.namespace); err != nil {
			return err
		}
	}
	return nil
}
