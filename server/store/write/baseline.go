package write

import (
	"bytes"
	"context"
	"database/sql"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// preparedBatch is a commit that has not taken the account's lock yet: what is stored under
// its batch's keys, and the derived columns of what differs. The baseline is valid as long
// as nobody else has held the lock since. The derived columns depend only on their
// objects and stay valid.
type preparedBatch struct {
	batch      commit.Batch // what is left to write
	lock       *admission.Handle
	generation int64 // of the lock, when the baseline was read
	baseline   *baseline
	derived    map[objectVersion]derivedColumns
}

// objectVersion names one state of an object.
type objectVersion struct {
	key          vedette.Key
	uid, version string
}

func objectVersionOf(o *vedette.Object) objectVersion {
	return objectVersion{o.Key, o.UID, o.ResourceVersion}
}

// nextChunk removes from the batch what the next transaction writes: at most maxObjects objects,
// or all if that is 0. Deletions and marks come last, because a mark must not be stored before the
// changes that it covers. A batch with drops is not split, because drops must not remove
// what the same batch writes.
func (p *preparedBatch) nextChunk(maxObjects int) (b commit.Batch, more bool) {
	b = p.batch
	if maxObjects == 0 || len(b.Upserts) <= maxObjects || len(b.Drops) > 0 {
		return b, false
	}
	p.batch.Upserts = b.Upserts[maxObjects:]
	return commit.Batch{Account: b.Account, Term: b.Term, Upserts: b.Upserts[:maxObjects:maxObjects]}, true
}

// readAndCompress reads the baseline of a batch, and computes the columns of the objects that differ from it.
func (w *Writer) readAndCompress(ctx context.Context, p *preparedBatch) error {
	if err := w.refreshBaseline(ctx, p); err != nil {
		return err
	}
	b := &p.batch
	upserts, deletes, err := w.resolveKeys(ctx, b, p.baseline.covered)
	if err != nil {
		return err
	}
	if err := w.lookup(ctx, p.baseline, upserts, deletes); err != nil {
		return err
	}
	var changed []*vedette.Object
	var rows []objectRow
	for i, key := range upserts {
		o := &b.Upserts[i]
		if previous, exists := p.baseline.existing[key]; !exists || !previous.matches(o, codec.PackUID(o.UID)) {
			changed = append(changed, o)
			rows = append(rows, objectRow{Key: key, derivedColumns: deriveColumns(o)})
		}
	}
	if err := w.compressObjects(ctx, changed, rows); err != nil {
		return err
	}
	for i, o := range changed {
		p.derived[objectVersionOf(o)] = rows[i].derivedColumns
	}
	return nil
}

// ensureFresh reads the baseline again, with what is stored of a chunk, if anyone else has written the account since, or may have.
func (w *Writer) ensureFresh(ctx context.Context, prepared *preparedBatch, b *commit.Batch) error {
	stale := prepared.lock.Generation() != prepared.generation || w.locks.IsUncertain(b.Account)
	if err := w.awaitOutcome(ctx, b.Account, b.Term); err != nil || !stale {
		return err
	}
	if err := w.refreshBaseline(ctx, prepared); err != nil {
		return err
	}
	upserts, deletes, err := w.resolveKeys(ctx, b, prepared.baseline.covered)
	if err != nil {
		return err
	}
	return w.lookup(ctx, prepared.baseline, upserts, deletes)
}

// awaitOutcome waits until the account's last transaction has ended, if its outcome is not
// known: the transaction holds the lock of the account's row. Whatever is planned after that
// is planned on what is really stored.
func (w *Writer) awaitOutcome(ctx context.Context, account vedette.AccountName, term vedette.Term) error {
	return w.awaitOutcomeWith(ctx, account, func(ctx context.Context, tx *sqldb.Tx) error {
		_, err := registry.LockAccountRow(ctx, tx, account, term)
		return err
	})
}

func (w *Writer) awaitOutcomeWith(ctx context.Context, account vedette.AccountName,
	lock func(ctx context.Context, tx *sqldb.Tx) error) error {
	if !w.locks.IsUncertain(account) {
		return nil
	}
	err := w.db.Write(ctx, lock)
	if err == nil {
		err = w.publishSettled(ctx, account)
	}
	if err == nil {
		w.locks.ClearUncertain(account)
		w.versions.Settle(account)
		w.versions.AccountLog.Note(account) // readers may have read it before that transaction ended
	}
	return err
}

// compressChanged sets the compressed columns of those of a plan's rows that have none. The rows
// belong to the objects of the same index.
func (w *Writer) compressChanged(ctx context.Context, changed []*vedette.Object, rows []objectRow) error {
	var objects []*vedette.Object
	var missing []int
	for i, o := range changed {
		if rows[i].head == nil {
			objects, missing = append(objects, o), append(missing, i)
		}
	}
	missingRows := make([]objectRow, len(missing))
	for at, i := range missing {
		missingRows[at] = rows[i]
	}
	if err := w.compressObjects(ctx, objects, missingRows); err != nil {
		return err
	}
	for at, i := range missing {
		rows[i] = missingRows[at]
	}
	return nil
}

// baseline is what is stored about an account. It is valid while nobody else writes the account.
type baseline struct {
	accountID int64
	covered   coverage
	marks     map[catalog.Feed]vedette.Mark // of the feeds that have one
	previous  map[catalog.Feed]vedette.Mark // of the others, those that they had before a snapshot
	live      map[catalog.Feed]bool         // feeds that are live and have no message
	isResumed bool                          // see package registry
	lookedUp  map[catalog.Key]bool          // whether the key is stored is known
	existing  map[catalog.Key]storedRow     // the keys in lookedUp that are stored
}

// refreshBaseline reads the baseline of a batch again.
func (w *Writer) refreshBaseline(ctx context.Context, p *preparedBatch) (err error) {
	p.generation = p.lock.Generation()
	p.baseline, err = w.readBaseline(ctx, p.batch.Account, p.batch.Term)
	return err
}

// readBaseline reads an account and its feeds; rows are read by lookup. The error is ErrTerm if
// the writer has been replaced.
func (w *Writer) readBaseline(ctx context.Context, account vedette.AccountName, term vedette.Term) (*baseline, error) {
	base, stored, err := w.readBaselineAndTerm(ctx, account)
	if err == nil && stored != term {
		return nil, registry.ErrTerm
	}
	return base, err
}

// readBaselineAndTerm reads an account, its feeds and its term. Unlike readBaseline, it also works for a server that does not write the
// account.
func (w *Writer) readBaselineAndTerm(ctx context.Context, account vedette.AccountName) (*baseline, vedette.Term, error) {
	base := &baseline{covered: coverage{}, marks: map[catalog.Feed]vedette.Mark{}, previous: map[catalog.Feed]vedette.Mark{},
		live: map[catalog.Feed]bool{}, lookedUp: map[catalog.Key]bool{}, existing: map[catalog.Key]storedRow{}}
	var stored int64
	err := w.db.QueryEach(ctx, func(rows *sql.Rows) error { return base.scan(rows, &stored) }, selectBaseline, string(account))
	switch {
	case err != nil:
		return nil, 0, err
	case base.accountID == 0:
		return nil, 0, registry.ErrNoAccount
	}
	return base, vedette.Term(stored), nil
}

// selectBaseline reads an account and its feeds in one query, because each query costs a
// round trip.
var selectBaseline = sqldb.Named("read the baseline", `SELECT a.id, a.term, f.kind_id, f.namespace, f.mark, f.previous_mark, CASE WHEN f.state = 'live' AND f.message = '' AND NOT `+registry.IsResumed+` THEN 1 ELSE 0 END, CASE WHEN `+registry.IsResumed+` THEN 1 ELSE 0 END
	FROM accounts a LEFT JOIN feeds f ON f.account_id = a.id WHERE a.name = ?`)

// scan reads a row of selectBaseline.
func (b *baseline) scan(rows *sql.Rows, term *int64) error {
	var kind sql.NullInt64 // NULL, like the other columns of feeds, if the account has no feeds
	var namespace, mark, previous sql.NullString
	var live bool
	if err := rows.Scan(&b.accountID, term, &kind, &namespace, &mark, &previous, &live, &b.isResumed); err != nil || !kind.Valid {
		return err
	}
	key := catalog.Feed{KindID: kind.Int64, Namespace: namespace.String}
	b.covered[key] = true
	if live {
		b.live[key] = true
	}
	if mark.String != "" {
		b.marks[key] = vedette.Mark(mark.String)
	} else if previous.String != "" {
		b.previous[key] = vedette.Mark(previous.String)
	}
	return nil
}

// lookup reads the rows of keys that have not been looked up yet.
func (w *Writer) lookup(ctx context.Context, base *baseline, upserts, deletes []catalog.Key) error {
	keys := make([]catalog.Key, 0, len(upserts)+len(deletes))
	for _, key := range slices.Concat(upserts, deletes) {
		if !base.lookedUp[key] {
			keys = append(keys, key)
		}
	}
	sortKeys(keys)
	if err := w.dialect.lookup(ctx, w.db, base.accountID, keys, func(r storedRow) { base.existing[r.Key] = r }); err != nil {
		return err
	}
	for _, key := range keys {
		base.lookedUp[key] = true
	}
	return nil
}

// invalidate forgets the rows that a plan has written.
func (b *baseline) invalidate(p *plan) {
	for i := range p.rows {
		delete(b.lookedUp, p.rows[i].Key)
		delete(b.existing, p.rows[i].Key)
	}
	for _, key := range p.removes {
		delete(b.lookedUp, key)
		delete(b.existing, key)
	}
}

// matches reports whether a row holds that version of an object.
func (r *storedRow) matches(o *vedette.Object, uid []byte) bool {
	return r.version == o.ResourceVersion && bytes.Equal(r.uid, uid)
}
