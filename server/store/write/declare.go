package write

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
)

// Declare replaces an account's feeds by those that its agent declares, and returns the objects
// that were removed with the others. New feeds are pending. Feeds in unknownGroups are kept,
// because the agent could not discover those API groups.
func (w *Writer) Declare(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []commit.DeclaredFeed,
	unknownGroups []string) ([]commit.Change, error) {
	action := "declare the feeds of account " + string(account)
	unlock, err := w.locks.Lock(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", action, err)
	}
	defer unlock()
	defer w.versions.AccountLog.Note(account)
	if err := w.limits.check(account, feeds); err != nil {
		return nil, fmt.Errorf("%s: %w", action, err)
	}
	isStored, err := w.isDeclared(ctx, account, term, feeds)
	if err != nil {
		return nil, w.db.WrapError(action, err)
	}
	if isStored {
		w.writeThrough.Prune(account, feedsOf(feeds), unknownGroups)
		return nil, nil
	}
	if err := w.StoreMarks(ctx, account); err != nil { // those of feeds that stay
		return nil, fmt.Errorf("%s: %w", action, err)
	}
	w.held.forget(account)
	d, err := w.writeDeclaration(ctx, account, term, feeds, unknownGroups)
	if err != nil {
		return nil, w.db.WrapError(action, err)
	}
	w.writeThrough.Prune(account, feedsOf(feeds), unknownGroups)
	changes, err := w.removeWithdrawnFeeds(ctx, d)
	return changes, w.db.WrapError(action, err)
}

func feedsOf(declared []commit.DeclaredFeed) []vedette.Feed {
	feeds := make([]vedette.Feed, len(declared))
	for i, f := range declared {
		feeds[i] = f.Feed
	}
	return feeds
}

// errKindGone means that a kind was deleted after its id was read.
var errKindGone = errors.New("a kind was deleted in the meantime")

// writeDeclaration writes the declared feeds. It is retried if a kind is deleted meanwhile.
func (w *Writer) writeDeclaration(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []commit.DeclaredFeed,
	unknownGroups []string) (*declaration, error) {
	for tries := 0; ; tries++ {
		d, err := w.newDeclaration(ctx, account, term, feeds, unknownGroups)
		if err == nil {
			err = w.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error { return d.begin(ctx, tx) })
		}
		if !errors.Is(err, errKindGone) || tries == 2 {
			return d, err
		}
	}
}

type declaration struct {
	account vedette.AccountName
	term    vedette.Term
	feeds   map[catalog.Feed]vedette.Resource
	wanted  coverage
	unknown func(kind int64) bool

	// Set by begin.
	id   int64
	gone []catalog.Feed
}

func (w *Writer) newDeclaration(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []commit.DeclaredFeed,
	unknownGroups []string) (*declaration, error) {
	d := &declaration{account: account, term: term, feeds: map[catalog.Feed]vedette.Resource{}, wanted: coverage{}}
	// After this, the kinds of all stored feeds are known, because a kind is stored
	// before its feeds are.
	if err := w.kinds.Load(ctx); err != nil {
		return nil, err
	}
	d.unknown = func(kind int64) bool {
		k, ok := w.kinds.CachedKind(kind)
		return !ok || slices.Contains(unknownGroups, k.Group)
	}
	if err := w.assignKindIDs(ctx, account, term, feeds); err != nil {
		return nil, err
	}
	for _, f := range feeds {
		kind, ok := w.kinds.CachedID(f.Feed.Kind)
		if !ok {
			return nil, errKindGone
		}
		key := catalog.Feed{KindID: kind, Namespace: f.Feed.Namespace}
		d.feeds[key], d.wanted[key] = f.Resource, true
	}
	return d, d.checkOverlap(feeds)
}

// checkOverlap rejects a kind that is declared both for all namespaces and for one, because each
// object must belong to one feed.
func (d *declaration) checkOverlap(feeds []commit.DeclaredFeed) error {
	for key := range d.feeds {
		if key.Namespace != "" && d.wanted[catalog.Feed{KindID: key.KindID, Namespace: ""}] {
			i := slices.IndexFunc(feeds, func(f commit.DeclaredFeed) bool { return f.Feed.Namespace == key.Namespace })
			return vedette.Errorf(vedette.Invalid, "the feed %s is declared in addition to the feed of all namespaces: declare one or the other",
				feeds[i].Feed)
		}
	}
	return nil
}

// begin writes the declared feeds, and clears the marks of those that are withdrawn: their objects
// are deleted in several transactions, and after a crash in between no feed may look complete.
func (d *declaration) begin(ctx context.Context, tx *sqldb.Tx) error {
	id, err := registry.LockAccountRow(ctx, tx, d.account, d.term)
	if err != nil {
		return err
	}
	stored, err := readResources(ctx, tx, id)
	if err != nil {
		return err
	}
	d.id, d.gone = id, nil
	for key := range stored {
		if !d.wanted[key] && !d.unknown(key.KindID) {
			d.gone = append(d.gone, key)
		}
	}
	slices.SortFunc(d.gone, func(a, b catalog.Feed) int {
		return catalog.Key{KindID: a.KindID, Namespace: a.Namespace, Name: ""}.Compare(catalog.Key{KindID: b.KindID, Namespace: b.Namespace, Name: ""})
	})
	for _, key := range d.gone {
		if _, err := tx.Exec(ctx, sqldb.Named("withdraw a feed", `UPDATE feeds SET mark = '', previous_mark = '', state = ? WHERE account_id = ? AND kind_id = ? AND namespace = ?`),
			string(vedette.FeedPending), id, key.KindID, key.Namespace); err != nil {
			return err
		}
	}
	if err := d.markKindsUsed(ctx, tx, stored); err != nil {
		return err
	}
	return d.storeFeeds(ctx, tx, stored)
}

// markKindsUsed keeps the kinds of new feeds from being deleted.
func (d *declaration) markKindsUsed(ctx context.Context, tx *sqldb.Tx, existing map[catalog.Feed]storedResource) error {
	var kinds []int64
	for key := range d.feeds {
		if _, exists := existing[key]; !exists {
			kinds = append(kinds, key.KindID)
		}
	}
	slices.Sort(kinds)
	used, err := markKindsUsed(ctx, tx, slices.Compact(kinds))
	if err == nil && !used {
		err = errKindGone
	}
	return err
}

// storeFeeds inserts new feeds, and updates those whose resources have changed: usually none, when an agent connects again.
func (d *declaration) storeFeeds(ctx context.Context, tx *sqldb.Tx, existing map[catalog.Feed]storedResource) error {
	var added [][]any
	for key, resource := range d.feeds {
		r, err := newStoredResource(resource)
		if err != nil {
			return err
		}
		stored, exists := existing[key]
		if !exists {
			added = append(added, []any{d.id, key.KindID, key.Namespace, "", string(vedette.FeedPending), "", 0, 0, 0, r.version, r.plural,
				r.singular, r.shortNames, r.namespaced})
			continue
		}
		if stored == r {
			continue
		}
		if _, err := tx.Exec(ctx, sqldb.Named("update a feed", `UPDATE feeds SET version = ?, plural = ?, singular = ?, short_names = ?, namespaced = ? WHERE account_id = ? AND kind_id = ? AND namespace = ?`),
			r.version, r.plural, r.singular, r.shortNames, r.namespaced, d.id, key.KindID, key.Namespace); err != nil {
			return err
		}
	}
	return sqldb.InsertValues(ctx, tx, "feeds", feedColumns, added, "")
}

func newStoredResource(r vedette.Resource) (storedResource, error) {
	r = sanitizeResource(r)
	short, err := json.Marshal(r.ShortNames)
	if err != nil {
		return storedResource{}, fmt.Errorf("write short names: %w", err)
	}
	return storedResource{version: r.Version, plural: r.Plural, singular: r.Singular, shortNames: string(short),
		namespaced: sqldb.BoolToInt(r.Namespaced)}, nil
}

// Limits of what is stored of a resource: the bytes of a name, and the number of short names.
const (
	maxResource   = 253
	maxShortNames = 32
)

// sanitizeResource makes the names of a resource fit for their columns.
func sanitizeResource(r vedette.Resource) vedette.Resource {
	r.Version = sqldb.Sanitize(r.Version, maxResource)
	r.Plural = sqldb.Sanitize(r.Plural, maxResource)
	r.Singular = sqldb.Sanitize(r.Singular, maxResource)
	var short []string
	for _, name := range r.ShortNames[:min(len(r.ShortNames), maxShortNames)] {
		short = append(short, sqldb.Sanitize(name, sqldb.MaxWord))
	}
	r.ShortNames = short
	return r
}

var feedColumns = sqldb.Columns("account_id integer", "kind_id integer", "namespace text", "mark text", "state text",
	"message text", "objects bigint", "synced bigint", "seen bigint", "version text", "plural text", "singular text",
	"short_names text", "namespaced smallint")

const removeChunkSize = 2000 // rows per transaction

// removeWithdrawnFeeds first deletes the objects that no other feed covers, in short transactions,
// and then the feeds. With them it corrects the counts of feeds that inherit objects.
func (w *Writer) removeWithdrawnFeeds(ctx context.Context, d *declaration) ([]commit.Change, error) {
	if len(d.gone) == 0 {
		return nil, nil
	}
	var changes []commit.Change
	for _, key := range d.gone {
		removed, err := w.removeFeedObjects(ctx, d, key)
		changes = append(changes, removed...)
		if err != nil {
			return changes, err
		}
	}
	err := w.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		if _, err := registry.LockAccountRow(ctx, tx, d.account, d.term); err != nil {
			return err
		}
		if err := d.deleteFeeds(ctx, tx); err != nil {
			return err
		}
		return deleteUnusedLabelsets(ctx, tx, d.id)
	})
	return changes, err
}

func (w *Writer) removeFeedObjects(ctx context.Context, d *declaration, feed catalog.Feed) ([]commit.Change, error) {
	var changes []commit.Change
	kind, err := w.kinds.LookupKind(ctx, feed.KindID)
	if err != nil {
		return nil, err
	}
	err = w.scanFeedRows(ctx, d.id, feed, removeChunkSize, func(rows []indexRow) error {
		var keys []catalog.Key
		var gone []commit.Change
		for _, r := range rows {
			key := catalog.Key{KindID: feed.KindID, Namespace: r.namespace, Name: r.name}
			if _, inherited := d.wanted.of(key); inherited {
				continue
			}
			keys = append(keys, key)
			gone = append(gone, commit.Change{Account: d.account, Key: vedette.Key{Kind: kind, Namespace: r.namespace, Name: r.name},
				Type: commit.Deleted})
		}
		if len(keys) == 0 {
			return nil
		}
		if err := w.removeWithdrawnObjects(ctx, d, feed, keys, gone); err != nil {
			return err
		}
		changes = append(changes, gone...)
		return nil
	})
	return changes, err
}

// removeWithdrawnObjects removes objects of a feed in one transaction. The caller holds the account's
// lock.
func (w *Writer) removeWithdrawnObjects(ctx context.Context, d *declaration, feed catalog.Feed, keys []catalog.Key,
	gone []commit.Change) error {
	clusters, e := clusterDelta{}, &versions.Effect{Account: d.account}
	if err := w.dialect.lookup(ctx, w.db, d.id, keys, func(r storedRow) {
		clusters.add(r.ClusterKey, r.managed, -1)
		addObject(e, r.Application, r.Key)
	}); err != nil {
		return err
	}
	e.Clusters = len(clusters) > 0
	err := w.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		return w.removeObjects(ctx, tx, d, feed, keys, clusters)
	})
	w.versions.PublishOutcome(e, err)
	if err != nil {
		w.markUncertain(d.account, gone, err)
	}
	return err
}

func (w *Writer) removeObjects(ctx context.Context, tx *sqldb.Tx, d *declaration, feed catalog.Feed, keys []catalog.Key,
	clusters clusterDelta) error {
	if _, err := registry.LockAccountRow(ctx, tx, d.account, d.term); err != nil {
		return err
	}
	if err := w.dialect.remove(ctx, tx, d.id, keys); err != nil {
		return err
	}
	if err := w.applyClusters(ctx, tx, d.id, clusters); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, sqldb.Named("subtract removed objects", `UPDATE feeds SET objects = objects - ? WHERE account_id = ? AND kind_id = ? AND namespace = ?`), len(keys), d.id,
		feed.KindID, feed.Namespace)
	return err
}

func (d *declaration) deleteFeeds(ctx context.Context, tx *sqldb.Tx) error {
	for _, key := range d.gone {
		if _, err := tx.Exec(ctx, sqldb.Named("delete a feed", `DELETE FROM feeds WHERE account_id = ? AND kind_id = ? AND namespace = ?`), d.id, key.KindID,
			key.Namespace); err != nil {
			return err
		}
		if err := d.recount(ctx, tx, key.KindID); err != nil {
			return fmt.Errorf("count the objects of a feed: %w", err)
		}
	}
	return nil
}

// recount sets the object counts of a kind's feeds, because they may have inherited objects of a
// withdrawn feed.
func (d *declaration) recount(ctx context.Context, tx *sqldb.Tx, kindID int64) error {
	counts := map[catalog.Feed]int64{}
	for key := range d.wanted {
		if key.KindID == kindID {
			counts[key] = 0
		}
	}
	if len(counts) == 0 {
		return nil
	}
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		key := catalog.Key{KindID: kindID}
		var n int64
		if err := rows.Scan(&key.Namespace, &n); err != nil {
			return err
		}
		if feed, ok := d.wanted.of(key); ok {
			counts[feed] += n
		}
		return nil
	}, sqldb.Named("count the objects of a kind", `SELECT namespace, COUNT(*) FROM objects WHERE account_id = ? AND kind_id = ? GROUP BY namespace`), d.id, kindID)
	if err != nil {
		return err
	}
	for key, n := range counts {
		if _, err := tx.Exec(ctx, sqldb.Named("set the count of a feed", `UPDATE feeds SET objects = ? WHERE account_id = ? AND kind_id = ? AND namespace = ?`), n, d.id, key.KindID,
			key.Namespace); err != nil {
			return err
		}
	}
	return nil
}
