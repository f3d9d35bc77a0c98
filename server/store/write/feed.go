package write

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/writethrough"
)

// coverage is the set of an account's feeds. An object belongs to the feed of its namespace or, if
// there is none, to that of all namespaces.
type coverage map[catalog.Feed]bool

func (c coverage) of(key catalog.Key) (catalog.Feed, bool) {
	own := catalog.Feed{KindID: key.KindID, Namespace: key.Namespace}
	if c[own] {
		return own, true
	}
	all := catalog.Feed{KindID: key.KindID, Namespace: ""}
	return all, c[all]
}

// storedResource is the resource of a feed as its row has it.
type storedResource struct {
	version, plural, singular, shortNames string
	namespaced                            int
}

var selectResources = sqldb.Named("read the feeds of an account", `SELECT kind_id, namespace, version, plural, singular, short_names, namespaced FROM feeds WHERE account_id = ?`)

// readResources returns the feeds of an account with their resources.
func readResources(ctx context.Context, tx *sqldb.Tx, accountID int64) (map[catalog.Feed]storedResource, error) {
	stored := map[catalog.Feed]storedResource{}
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var k catalog.Feed
		var r storedResource
		err := rows.Scan(&k.KindID, &k.Namespace, &r.version, &r.plural, &r.singular, &r.shortNames, &r.namespaced)
		stored[k] = r
		return err
	}, selectResources, accountID)
	return stored, err
}

// BeginSnapshot clears a feed's mark, because a snapshot of it begins. If the server crashes
// before the snapshot has ended, the feed must be listed again.
func (w *Writer) BeginSnapshot(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error {
	action := fmt.Sprintf("begin feed %s of account %s", feed, account)
	key, unlock, err := w.lockFeed(ctx, action, account, feed)
	if err != nil {
		return err
	}
	defer unlock()
	defer w.versions.AccountLog.Note(account)
	held := w.held.clear(account, feed) // newer than what is stored
	var mark string
	err = w.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) (err error) {
		mark, err = beginFeed(ctx, tx, account, term, key, held)
		if errors.Is(err, sql.ErrNoRows) {
			err = noFeed(feed)
		}
		return err
	})
	if err != nil {
		return w.db.WrapError(action, err)
	}
	w.writeThrough.BeginSnapshot(account, feed, vedette.Mark(mark))
	return nil
}

// lockFeed locks the account of a feed for an action, which errors name, and returns the feed's key. If there
// is no error, the caller must call unlock.
func (w *Writer) lockFeed(ctx context.Context, action string, account vedette.AccountName, feed vedette.Feed) (
	key catalog.Feed, unlock func(), err error) {
	unlock, err = w.locks.Lock(ctx, account)
	if err != nil {
		return catalog.Feed{}, nil, fmt.Errorf("%s: %w", action, err)
	}
	kindID, known, err := w.kinds.LookupID(ctx, feed.Kind)
	if err == nil && !known {
		err = noFeed(feed)
	}
	if err != nil {
		unlock()
		return catalog.Feed{}, nil, w.db.WrapError(action, err)
	}
	return catalog.Feed{KindID: kindID, Namespace: feed.Namespace}, unlock, nil
}

// beginFeed returns the mark that it clears, or that of before if the snapshot starts over. If a bookmark was held, that is the mark.
func beginFeed(ctx context.Context, tx *sqldb.Tx, account vedette.AccountName, term vedette.Term, feed catalog.Feed, held vedette.Mark) (
	mark string, err error) {
	id, err := registry.LockAccountRow(ctx, tx, account, term)
	if err != nil {
		return "", err
	}
	err = tx.QueryRow(ctx, sqldb.Named("read the mark of a feed", `SELECT CASE WHEN mark = '' THEN previous_mark ELSE mark END FROM feeds WHERE account_id = ? AND kind_id = ? AND namespace = ?`), id, feed.KindID,
		feed.Namespace).Scan(&mark)
	if err != nil {
		return "", err
	}
	mark = cmp.Or(string(held), mark)
	if err := registry.MakePending(ctx, tx, id); err != nil {
		return "", err
	}
	if err := registry.FlushFeedLastSeen(ctx, tx, `account_id = ? AND kind_id = ? AND namespace = ?`, id, feed.KindID,
		feed.Namespace); err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, sqldb.Named("begin a feed", `UPDATE feeds SET mark = '', previous_mark = ?, state = ?, message = '' WHERE account_id = ? AND kind_id = ? AND namespace = ?`),
		mark, string(vedette.FeedSyncing), id, feed.KindID, feed.Namespace)
	return mark, err
}

func noFeed(feed vedette.Feed) error {
	return vedette.Errorf(vedette.Invalid, "%w: the agent must declare %s first", commit.ErrNoFeed, feed)
}

// indexChunkSize is how many rows are read while the account is locked: some twenty milliseconds,
// for which a write-through may have to wait.
const indexChunkSize = 4096

// Index calls yield with the digests of a feed's rows, in chunks, so that no feed is in memory as
// a whole. yield owns each chunk and may keep it. Nothing may be committed to the account
// meanwhile, except write-throughs. An error of yield ends Index and is returned.
func (w *Writer) Index(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func(digests []uint64) error) error {
	return w.index(ctx, account, feed, func(r indexRow) uint64 { return r.digest }, yield)
}

// IndexWithoutNames is Index for older agents, with digests of vedette.DigestWithoutName.
func (w *Writer) IndexWithoutNames(ctx context.Context, account vedette.AccountName, feed vedette.Feed,
	yield func(digests []uint64) error) error {
	return w.index(ctx, account, feed, func(r indexRow) uint64 { return r.digestWithoutName }, yield)
}

func (w *Writer) index(ctx context.Context, account vedette.AccountName, feed vedette.Feed, digestOf func(indexRow) uint64,
	yield func(digests []uint64) error) error {
	action := fmt.Sprintf("index feed %s of account %s", feed, account)
	id, err := w.registry.AccountID(ctx, account)
	if err != nil {
		return w.db.WrapError(action, err)
	}
	kindID, ok, err := w.kinds.LookupID(ctx, feed.Kind)
	if err != nil || !ok {
		return w.db.WrapError(action, err)
	}
	var last *indexRow
	for {
		rows, err := w.readIndexChunk(ctx, account, id, feed, kindID, last)
		if err != nil || len(rows) == 0 {
			return w.db.WrapError(action, err)
		}
		if err := yield(digestsOf(rows, digestOf)); err != nil || len(rows) < indexChunkSize {
			return err
		}
		last = &rows[len(rows)-1]
	}
}

func digestsOf(rows []indexRow, digestOf func(indexRow) uint64) []uint64 {
	digests := make([]uint64, len(rows))
	for i, r := range rows {
		digests[i] = digestOf(r)
	}
	return digests
}

// readIndexChunk reads the rows after last, and records how far the index was read: objects that
// are written through before that place are not in the index. It locks the account while it reads
// but not while the chunk is sent, because an agent may be slow to receive it.
func (w *Writer) readIndexChunk(ctx context.Context, account vedette.AccountName, id int64, feed vedette.Feed, kindID int64,
	last *indexRow) ([]indexRow, error) {
	unlock, err := w.locks.Lock(ctx, account)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := w.awaitOutcomeWith(ctx, account, func(ctx context.Context, tx *sqldb.Tx) error {
		return registry.LockAccountRowByID(ctx, tx, id)
	}); err != nil {
		return nil, err
	}
	rows, err := w.feedRows(ctx, id, catalog.Feed{KindID: kindID, Namespace: feed.Namespace}, last, indexChunkSize)
	if err != nil {
		return nil, err
	}
	chunk := writethrough.IndexChunk{First: last == nil, Last: len(rows) < indexChunkSize}
	if !chunk.Last {
		through := rows[len(rows)-1]
		chunk.Through = vedette.Key{Kind: feed.Kind, Namespace: through.namespace, Name: through.name}
	}
	w.writeThrough.RecordIndex(account, feed, chunk)
	return rows, nil
}

type indexRow struct {
	namespace, name           string
	digest, digestWithoutName uint64 // equal if the object has a uid
}

// scanFeedRows reads a feed in chunks. Each chunk is a query of its own, because yield may be slow
// and must not occupy a connection.
func (w *Writer) scanFeedRows(ctx context.Context, accountID int64, feed catalog.Feed, size int, yield func([]indexRow) error) error {
	var last *indexRow
	for {
		rows, err := w.feedRows(ctx, accountID, feed, last, size)
		if err != nil {
			return w.db.WrapError("read rows of a feed", err)
		}
		if len(rows) == 0 {
			return nil
		}
		if err := yield(rows); err != nil || len(rows) < size {
			return err
		}
		last = &rows[len(rows)-1]
	}
}

// feedRows reads at most size of a feed's rows, starting behind a row, or with the first if after
// is nil.
func (w *Writer) feedRows(ctx context.Context, accountID int64, feed catalog.Feed, after *indexRow, size int) ([]indexRow, error) {
	where, args := `account_id = ? AND kind_id = ?`, []any{accountID, feed.KindID}
	if feed.Namespace != "" {
		where, args = where+` AND namespace = ?`, append(args, feed.Namespace)
	}
	if after != nil {
		where, args = where+` AND (namespace > ? OR namespace = ? AND name > ?)`, append(args, after.namespace, after.namespace, after.name)
	}
	var rows []indexRow
	err := w.db.QueryEach(ctx, func(r *sql.Rows) error {
		var row indexRow
		var uid []byte
		var version string
		err := r.Scan(&row.namespace, &row.name, &uid, &version)
		unpacked := codec.UnpackUID(uid)
		row.digest = vedette.Digest(row.namespace, row.name, unpacked, version)
		row.digestWithoutName = vedette.DigestWithoutName(unpacked, version)
		rows = append(rows, row)
		return err
	}, sqldb.Named("read rows of a feed", fmt.Sprintf(`SELECT namespace, name, uid, version FROM objects%s WHERE %s ORDER BY namespace, name LIMIT %d`, w.db.Dialect.KeyHint, where,
		size)), args...)
	return rows, err
}

// resumeFeeds ends the resumption of an account if the plan has states of feeds. It returns the feeds without those that go on as they
// are stored, and of which nothing else changes.
func (p *plan) resumeFeeds(ctx context.Context, tx *sqldb.Tx, keys []catalog.Feed) ([]catalog.Feed, error) {
	hasState := func(key catalog.Feed) bool { return p.feeds[key].State != "" || p.feeds[key].Note != nil }
	if !p.baseline.isResumed || !slices.ContainsFunc(keys, hasState) {
		return keys, nil
	}
	goOn, areAll := map[catalog.Feed]bool{}, true
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var key catalog.Feed
		var state vedette.FeedState
		var message string
		err := rows.Scan(&key.KindID, &key.Namespace, &state, &message)
		u := p.feeds[key]
		goOn[key] = u.State == vedette.FeedLive && u.Message == "" && u.Note == nil && state == vedette.FeedLive && message == ""
		areAll = areAll && goOn[key]
		return err
	}, sqldb.Named("read feeds that may go on", `SELECT kind_id, namespace, state, message FROM feeds WHERE account_id = ? AND state IN ('live', 'syncing')`), p.baseline.accountID)
	if err != nil {
		return nil, err
	}
	if !areAll {
		return keys, registry.MakePending(ctx, tx, p.baseline.accountID)
	}
	changes := func(key catalog.Feed) bool {
		u := p.feeds[key]
		u.Feed = vedette.Feed{}
		return !goOn[key] || p.countDelta[key] != 0 || u != commit.FeedUpdate{State: vedette.FeedLive}
	}
	var changed []catalog.Feed
	for _, key := range keys {
		if changes(key) {
			changed = append(changed, key)
		}
	}
	return changed, registry.EndResumptions(ctx, tx, []int64{p.baseline.accountID})
}

// setLive makes those feeds live of all namespaces of which a plan changes nothing else, with one statement, and returns the other feeds:
// when an agent connects again, all feeds of its accounts become live. Feeds without a row are returned too.
func setLive(ctx context.Context, tx *sqldb.Tx, p *plan, keys []catalog.Feed) (others []catalog.Feed, err error) {
	var kinds []int64
	for _, key := range keys {
		u := p.feeds[key]
		u.Feed = vedette.Feed{}
		if u == (commit.FeedUpdate{State: vedette.FeedLive}) && p.countDelta[key] == 0 && key.Namespace == "" {
			kinds = append(kinds, key.KindID)
		} else {
			others = append(others, key)
		}
	}
	if len(kinds) < 2 {
		return keys, nil
	}
	where, args := sqldb.Conditions{sqldb.Cond("account_id = ?", p.baseline.accountID), sqldb.Cond("namespace = ''"),
		tx.Dialect.In("kind_id", kinds)}.Where()
	n, err := tx.Exec(ctx, sqldb.Named("make feeds live", `UPDATE feeds SET state = ?, message = ''`+where), append([]any{string(vedette.FeedLive)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("make %d feeds live: %w", len(kinds), err)
	}
	if n != int64(len(kinds)) {
		return keys, nil
	}
	return others, nil
}

// updateFeed writes a feed update, and adds countDelta to the number of objects.
func updateFeed(ctx context.Context, tx *sqldb.Tx, accountID int64, key catalog.Feed, u commit.FeedUpdate, countDelta int64) error {
	if u.State != "" && u.State != vedette.FeedLive {
		if err := registry.FlushFeedLastSeen(ctx, tx, `account_id = ? AND kind_id = ? AND namespace = ?`, accountID, key.KindID,
			key.Namespace); err != nil {
			return err
		}
	}
	set, args := `objects = objects + ?`, []any{countDelta}
	if u.Mark != nil {
		set, args = set+`, mark = ?, previous_mark = ''`, append(args, string(*u.Mark))
	}
	if u.State != "" {
		set, args = set+`, state = ?`, append(args, string(u.State))
	}
	if u.Note != nil {
		set, args = set+`, message = ?`, append(args, sqldb.Sanitize(*u.Note, sqldb.MaxMessage))
	} else if u.State != "" {
		set, args = set+`, message = ?`, append(args, sqldb.Sanitize(u.Message, sqldb.MaxMessage))
	}
	if !u.Synced.IsZero() {
		set, args = set+`, synced = ?`, append(args, sqldb.ToMicros(u.Synced))
	}
	if !u.Verified.IsZero() {
		set, args = set+`, verified = ?, drift = drift + ?`, append(args, sqldb.ToMicros(u.Verified), u.Drift)
	}
	n, err := tx.Exec(ctx, sqldb.Named("update the row", `UPDATE feeds SET `+set+` WHERE account_id = ? AND kind_id = ? AND namespace = ?`),
		append(args, accountID, key.KindID, key.Namespace)...)
	if err == nil && n == 0 {
		return noFeed(u.Feed)
	}
	return err
}
