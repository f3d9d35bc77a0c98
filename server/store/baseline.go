package store

import (
	"bytes"
	"context"
	"database/sql"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/admission"
)

// preparedBatch is a commit that has not taken the account's lock yet: what is stored under
// its batch's keys, and the derived columns of what differs. The baseline is valid as long
// as nobody else has held the lock since. The derived columns depend only on their
// objects and stay valid.
type preparedBatch struct {
	batch      Batch // what is left to write
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
func (p *preparedBatch) nextChunk(maxObjects int) (b Batch, more bool) {
	b = p.batch
	if maxObjects == 0 || len(b.Upserts) <= maxObjects || len(b.Drops) > 0 {
		return b, false
	}
	p.batch.Upserts = b.Upserts[maxObjects:]
	return Batch{Account: b.Account, Term: b.Term, Upserts: b.Upserts[:maxObjects:maxObjects]}, true
}

// compressChanged sets the compressed columns of those of a plan's rows that have none. The rows
// belong to the objects of the same index.
func (s *Store) compressChanged(ctx context.Context, changed []*vedette.Object, rows []objectRow) error {
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
	if err := s.compressObjects(ctx, objects, missingRows); err != nil {
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
	marks     map[feedKey]vedette.Mark // of the feeds that have one
	live      map[feedKey]bool         // feeds that are live and have no message
	lookedUp  map[rowKey]bool          // whether the key is stored is known
	existing  map[rowKey]storedRow     // the keys in lookedUp that are stored
}

// refreshBaseline reads the baseline of a batch again.
func (s *Store) refreshBaseline(ctx context.Context, p *preparedBatch) (err error) {
	p.generation = p.lock.Generation()
	p.baseline, err = s.readBaseline(ctx, p.batch.Account, p.batch.Term)
	return err
}

// readBaseline reads an account and its feeds; rows are read by lookup. The error is ErrTerm if
// the writer has been replaced.
func (s *Store) readBaseline(ctx context.Context, account vedette.AccountName, term vedette.Term) (*baseline, error) {
	base := &baseline{covered: coverage{}, marks: map[feedKey]vedette.Mark{}, live: map[feedKey]bool{},
		lookedUp: map[rowKey]bool{}, existing: map[rowKey]storedRow{}}
	var stored int64
	err := s.queryEach(ctx, func(rows *sql.Rows) error { return base.scan(rows, &stored) }, selectBaseline, string(account))
	switch {
	case err != nil:
		return nil, err
	case base.accountID == 0:
		return nil, ErrNoAccount
	case stored != int64(term):
		return nil, ErrTerm
	}
	return base, nil
}

// selectBaseline reads an account and its feeds in one query, because each query costs a
// round trip.
const selectBaseline = `SELECT a.id, a.term, f.kind_id, f.namespace, f.mark, CASE WHEN f.state = 'live' AND f.message = '' THEN 1 ELSE 0 END
	FROM accounts a LEFT JOIN feeds f ON f.account_id = a.id WHERE a.name = ?`

// scan reads a row of selectBaseline.
func (b *baseline) scan(rows *sql.Rows, term *int64) error {
	var kind sql.NullInt64 // NULL, like the other columns of feeds, if the account has no feeds
	var namespace, mark sql.NullString
	var live bool
	if err := rows.Scan(&b.accountID, term, &kind, &namespace, &mark, &live); err != nil || !kind.Valid {
		return err
	}
	key := feedKey{kind.Int64, namespace.String}
	b.covered[key] = true
	if live {
		b.live[key] = true
	}
	if mark.String != "" {
		b.marks[key] = vedette.Mark(mark.String)
	}
	return nil
}

// lookup reads the rows of keys that have not been looked up yet.
func (s *Store) lookup(ctx context.Context, base *baseline, upserts, deletes []rowKey) error {
	keys := make([]rowKey, 0, len(upserts)+len(deletes))
	for _, key := range slices.Concat(upserts, deletes) {
		if !base.lookedUp[key] {
			keys = append(keys, key)
		}
	}
	sortKeys(keys)
	if err := s.dialect.lookup(ctx, s, base.accountID, keys, func(r storedRow) { base.existing[r.rowKey] = r }); err != nil {
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
		delete(b.lookedUp, p.rows[i].rowKey)
		delete(b.existing, p.rows[i].rowKey)
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
