package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/overlay"
)

// feedKey is a vedette.Feed with the id of its kind.
type feedKey struct {
	kindID    int64
	namespace string
}

// coverage is the set of an account's feeds. An object belongs to the feed of its namespace or, if
// there is none, to that of all namespaces.
type coverage map[feedKey]bool

func (c coverage) of(key rowKey) (feedKey, bool) {
	own := feedKey{key.kindID, key.namespace}
	if c[own] {
		return own, true
	}
	all := feedKey{key.kindID, ""}
	return all, c[all]
}

const selectCoverage = `SELECT kind_id, namespace FROM feeds WHERE account_id = ?`

func readCoverage(ctx context.Context, q querier, d *dialect, accountID int64) (coverage, error) {
	covered := coverage{}
	err := queryEach(ctx, q, d, func(rows *sql.Rows) error {
		var k feedKey
		err := rows.Scan(&k.kindID, &k.namespace)
		covered[k] = true
		return err
	}, selectCoverage, accountID)
	return covered, err
}

// BeginSnapshot clears a feed's mark, because a snapshot of it begins. If the server crashes
// before the snapshot has ended, the feed must be listed again.
func (s *Store) BeginSnapshot(ctx context.Context, account vedette.AccountName, term vedette.Term, feed vedette.Feed) error {
	action := fmt.Sprintf("begin feed %s of account %s", feed, account)
	key, unlock, err := s.lockFeed(ctx, action, account, feed)
	if err != nil {
		return err
	}
	defer unlock()
	defer s.versions.accountLog.note(account)
	var mark string
	err = s.write(ctx, func(ctx context.Context, tx *transaction) (err error) {
		mark, err = beginFeed(ctx, tx, account, term, key)
		if errors.Is(err, sql.ErrNoRows) {
			err = noFeed(feed)
		}
		return err
	})
	if err != nil {
		return s.wrapError(action, err)
	}
	s.overlay.BeginSnapshot(account, feed, vedette.Mark(mark))
	return nil
}

// lockFeed locks the account of a feed for an action, which errors name, and returns the feed's key. If there
// is no error, the caller must call unlock.
func (s *Store) lockFeed(ctx context.Context, action string, account vedette.AccountName, feed vedette.Feed) (
	key feedKey, unlock func(), err error) {
	unlock, err = s.locks.Lock(ctx, account)
	if err != nil {
		return feedKey{}, nil, fmt.Errorf("%s: %w", action, err)
	}
	kindID, known, err := s.kinds.lookupID(ctx, s, feed.Kind)
	if err == nil && !known {
		err = noFeed(feed)
	}
	if err != nil {
		unlock()
		return feedKey{}, nil, s.wrapError(action, err)
	}
	return feedKey{kindID, feed.Namespace}, unlock, nil
}

// beginFeed returns the mark that it clears.
func beginFeed(ctx context.Context, tx *transaction, account vedette.AccountName, term vedette.Term, feed feedKey) (mark string,
	err error) {
	id, err := lockAccountRow(ctx, tx, account, term)
	if err != nil {
		return "", err
	}
	err = tx.queryRow(ctx, `SELECT mark FROM feeds WHERE account_id = ? AND kind_id = ? AND namespace = ?`, id, feed.kindID,
		feed.namespace).Scan(&mark)
	if err != nil {
		return "", err
	}
	if err := flushFeedLastSeen(ctx, tx, `account_id = ? AND kind_id = ? AND namespace = ?`, id, feed.kindID, feed.namespace); err != nil {
		return "", err
	}
	_, err = tx.exec(ctx, `UPDATE feeds SET mark = '', state = ?, message = '' WHERE account_id = ? AND kind_id = ? AND namespace = ?`,
		string(vedette.FeedSyncing), id, feed.kindID, feed.namespace)
	return mark, err
}

func noFeed(feed vedette.Feed) error {
	return vedette.Errorf(vedette.Invalid, "%w: the agent must declare %s first", ErrNoFeed, feed)
}

// Marks returns the feeds of an account, with the marks from which agents continue.
func (s *Store) Marks(ctx context.Context, account vedette.AccountName) ([]FeedStatus, error) {
	return s.Feeds(ctx, account)
}

// Feeds returns the feeds of the accounts, or of all accounts if none is given, ordered by
// account, kind and namespace.
func (s *Store) Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]FeedStatus, error) {
	var feeds []FeedStatus
	where, args := accountCondition(accounts)
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		f, err := scanFeed(rows)
		feeds = append(feeds, f)
		return err
	}, `SELECT a.name, k.name, k.grp, f.namespace, f.mark, f.state, f.message, f.objects, f.synced, f.seen, COALESCE(fr.seen, 0), f.version, f.plural, f.singular, f.short_names, f.namespaced, f.verified, f.drift
		FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id`+joinFreshness+`WHERE `+where+` ORDER BY a.name, k.name, k.grp, f.namespace`, args...)
	return feeds, s.wrapError("read the feeds", err)
}

// accountCondition is for queries that call the accounts "a".
func accountCondition(accounts []vedette.AccountName) (string, []any) {
	if len(accounts) == 0 {
		return "a.name IS NOT NULL", nil
	}
	c := isOneOf("a.name", accounts, maxAccountName)
	return c.sql, c.args
}

func scanFeed(row scanner) (FeedStatus, error) {
	var f FeedStatus
	var account, mark, state, short string
	var synced, seen, freshnessSeen, verified int64
	r := &f.Resource
	err := row.Scan(&account, &f.Feed.Kind.Name, &f.Feed.Kind.Group, &f.Feed.Namespace, &mark, &state, &f.Message, &f.Objects, &synced, &seen,
		&freshnessSeen,
		&r.Version, &r.Plural, &r.Singular, &short, &r.Namespaced, &verified, &f.Drift)
	if err != nil {
		return f, err
	}
	f.Account, f.Mark, f.State = vedette.AccountName(account), vedette.Mark(mark), vedette.FeedState(state)
	if f.State == vedette.FeedLive {
		seen = max(seen, freshnessSeen)
	}
	f.Verified = fromMicros(verified)
	f.Synced, f.LastSeen, r.Kind = fromMicros(synced), fromMicros(seen), f.Feed.Kind
	return f, json.Unmarshal([]byte(short), &r.ShortNames)
}

// Resources returns what the accounts' API servers serve, without duplicates, to resolve names
// that users type. A kind may occur in several versions.
func (s *Store) Resources(ctx context.Context, accounts ...vedette.AccountName) ([]vedette.Resource, error) {
	var resources []vedette.Resource
	where, args := accountCondition(accounts)
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var r vedette.Resource
		var short string
		if err := rows.Scan(&r.Kind.Name, &r.Kind.Group, &r.Version, &r.Plural, &r.Singular, &short, &r.Namespaced); err != nil {
			return err
		}
		resources = append(resources, r)
		return json.Unmarshal([]byte(short), &resources[len(resources)-1].ShortNames)
	}, `SELECT DISTINCT k.name, k.grp, f.version, f.plural, f.singular, f.short_names, f.namespaced
		FROM feeds f JOIN accounts a ON a.id = f.account_id JOIN kinds k ON k.id = f.kind_id
		WHERE `+where+` ORDER BY k.name, k.grp, f.version`, args...)
	return resources, s.wrapError("read the resources", err)
}

// indexChunkSize is how many rows are read while the account is locked: some twenty milliseconds,
// for which a write-through may have to wait.
const indexChunkSize = 4096

// Index calls yield with the digests of a feed's rows, in chunks, so that no feed is in memory as
// a whole. yield owns each chunk and may keep it. Nothing may be committed to the account
// meanwhile, except write-throughs. An error of yield ends Index and is returned.
func (s *Store) Index(ctx context.Context, account vedette.AccountName, feed vedette.Feed, yield func(digests []uint64) error) error {
	return s.index(ctx, account, feed, func(r indexRow) uint64 { return r.digest }, yield)
}

// IndexWithoutNames is Index for older agents, with digests of vedette.DigestWithoutName.
func (s *Store) IndexWithoutNames(ctx context.Context, account vedette.AccountName, feed vedette.Feed,
	yield func(digests []uint64) error) error {
	return s.index(ctx, account, feed, func(r indexRow) uint64 { return r.digestWithoutName }, yield)
}

func (s *Store) index(ctx context.Context, account vedette.AccountName, feed vedette.Feed, digestOf func(indexRow) uint64,
	yield func(digests []uint64) error) error {
	action := fmt.Sprintf("index feed %s of account %s", feed, account)
	id, err := s.accountID(ctx, account)
	if err != nil {
		return s.wrapError(action, err)
	}
	kindID, ok, err := s.kinds.lookupID(ctx, s, feed.Kind)
	if err != nil || !ok {
		return s.wrapError(action, err)
	}
	var last *indexRow
	for {
		rows, err := s.readIndexChunk(ctx, account, id, feed, kindID, last)
		if err != nil || len(rows) == 0 {
			return s.wrapError(action, err)
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
func (s *Store) readIndexChunk(ctx context.Context, account vedette.AccountName, id int64, feed vedette.Feed, kindID int64,
	last *indexRow) ([]indexRow, error) {
	unlock, err := s.locks.Lock(ctx, account)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.awaitOutcomeWith(ctx, account, func(ctx context.Context, tx *transaction) error {
		return lockAccountRowByID(ctx, tx, id)
	}); err != nil {
		return nil, err
	}
	rows, err := s.feedRows(ctx, id, feedKey{kindID, feed.Namespace}, last, indexChunkSize)
	if err != nil {
		return nil, err
	}
	chunk := overlay.IndexChunk{First: last == nil, Last: len(rows) < indexChunkSize}
	if !chunk.Last {
		through := rows[len(rows)-1]
		chunk.Through = vedette.Key{Kind: feed.Kind, Namespace: through.namespace, Name: through.name}
	}
	s.overlay.RecordIndex(account, feed, chunk)
	return rows, nil
}

// accountID returns an account's id for readers, which need no lock.
func (s *Store) accountID(ctx context.Context, account vedette.AccountName) (id int64, err error) {
	err = s.queryOne(ctx, scanInto(&id), `SELECT id FROM accounts WHERE name = ?`, string(account))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoAccount
	}
	return id, err
}

type indexRow struct {
	namespace, name           string
	digest, digestWithoutName uint64 // equal if the object has a uid
}

// scanFeedRows reads a feed in chunks. Each chunk is a query of its own, because yield may be slow
// and must not occupy a connection.
func (s *Store) scanFeedRows(ctx context.Context, accountID int64, feed feedKey, size int, yield func([]indexRow) error) error {
	var last *indexRow
	for {
		rows, err := s.feedRows(ctx, accountID, feed, last, size)
		if err != nil {
			return s.wrapError("read rows of a feed", err)
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
func (s *Store) feedRows(ctx context.Context, accountID int64, feed feedKey, after *indexRow, size int) ([]indexRow, error) {
	where, args := `account_id = ? AND kind_id = ?`, []any{accountID, feed.kindID}
	if feed.namespace != "" {
		where, args = where+` AND namespace = ?`, append(args, feed.namespace)
	}
	if after != nil {
		where, args = where+` AND (namespace > ? OR namespace = ? AND name > ?)`, append(args, after.namespace, after.namespace, after.name)
	}
	var rows []indexRow
	err := s.queryEach(ctx, func(r *sql.Rows) error {
		var row indexRow
		var uid []byte
		var version string
		err := r.Scan(&row.namespace, &row.name, &uid, &version)
		unpacked := codec.UnpackUID(uid)
		row.digest = vedette.Digest(row.namespace, row.name, unpacked, version)
		row.digestWithoutName = vedette.DigestWithoutName(unpacked, version)
		rows = append(rows, row)
		return err
	}, fmt.Sprintf(`SELECT namespace, name, uid, version FROM objects%s WHERE %s ORDER BY namespace, name LIMIT %d`, s.dialect.keyHint, where,
		size), args...)
	return rows, err
}

// updateFeed writes a feed update, and adds countDelta to the number of objects.
func updateFeed(ctx context.Context, tx *transaction, accountID int64, key feedKey, u FeedUpdate, countDelta int64) error {
	if u.State != "" && u.State != vedette.FeedLive {
		if err := flushFeedLastSeen(ctx, tx, `account_id = ? AND kind_id = ? AND namespace = ?`, accountID, key.kindID,
			key.namespace); err != nil {
			return err
		}
	}
	set, args := `objects = objects + ?`, []any{countDelta}
	if u.Mark != nil {
		set, args = set+`, mark = ?`, append(args, string(*u.Mark))
	}
	if u.State != "" {
		set, args = set+`, state = ?`, append(args, string(u.State))
	}
	if u.Note != nil {
		set, args = set+`, message = ?`, append(args, sanitize(*u.Note, maxMessage))
	} else if u.State != "" {
		set, args = set+`, message = ?`, append(args, sanitize(u.Message, maxMessage))
	}
	if u.State == vedette.FeedLive {
		set, args = set+`, seen = ?`, append(args, toMicros(tx.now))
	}
	if !u.Synced.IsZero() {
		set, args = set+`, synced = ?`, append(args, toMicros(u.Synced))
	}
	if !u.Verified.IsZero() {
		set, args = set+`, verified = ?, drift = drift + ?`, append(args, toMicros(u.Verified), u.Drift)
	}
	n, err := tx.exec(ctx, `UPDATE feeds SET `+set+` WHERE account_id = ? AND kind_id = ? AND namespace = ?`,
		append(args, accountID, key.kindID, key.namespace)...)
	if err == nil && n == 0 {
		return noFeed(u.Feed)
	}
	return err
}

// DeclaredFeed is a feed that an agent reports, and its kind as the API server serves it.
type DeclaredFeed struct {
	Feed     vedette.Feed
	Resource vedette.Resource
}
