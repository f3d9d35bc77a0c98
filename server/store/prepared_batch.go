package store

import (
	"bytes"
	"context"
	"database/sql"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/codec"
)

// preparedBatch is a commit before its turns at the account's gate: what is stored under
// its batch's keys, and the compressed columns of what differs. To find that out
// takes nearly all of a commit's time, in which an operation need not wait. What
// was read counts as long as nobody else has been inside since; what was
// compressed depends on nothing but its object, and counts for ever.
type preparedBatch struct {
	batch      Batch // what is left to write
	lock       *admission.Handle
	generation int64 // of the gate, when the holdings were read
	baseline   *baseline
	compressed map[objectVersion]compressedColumns
}

// objectVersion names a state of an object.
type objectVersion struct {
	key          vedette.Key
	uid, version string
}

func objectVersionOf(o *vedette.Object) objectVersion {
	return objectVersion{o.Key, o.UID, o.ResourceVersion}
}

// compressedColumns are those that are compressed.
type compressedColumns struct{ head, body []byte }

// baseline is what is known of an account's rows while nobody else writes them.
type baseline struct {
	accountID int64
	covered   coverage
	marks     map[feedKey]string   // of the feeds that have one
	lookedUp  map[rowKey]bool      // keys that were looked up
	existing  map[rowKey]storedRow // those of them that are stored
}

// prepareBatch begins a commit. Whoever gets one calls s.gates.part for its gate.
func (s *Store) prepareBatch(ctx context.Context, b Batch) (*preparedBatch, error) {
	d := &preparedBatch{batch: b, lock: s.locks.Handle(b.Account), compressed: make(map[objectVersion]compressedColumns, len(b.Upserts))}
	if err := s.readAndCompress(ctx, d); err != nil {
		d.lock.Close()
		return nil, err
	}
	return d, nil
}

func (s *Store) readAndCompress(ctx context.Context, d *preparedBatch) error {
	if err := s.refreshBaseline(ctx, d); err != nil {
		return err
	}
	b := &d.batch
	upserts, deletes, err := s.resolveKeys(ctx, b, d.baseline.covered)
	if err != nil {
		return err
	}
	if err := s.lookup(ctx, d.baseline, upserts, deletes); err != nil {
		return err
	}
	var changed []*vedette.Object
	var rows []objectRow
	for i, key := range upserts {
		o := &b.Upserts[i]
		if previous, exists := d.baseline.existing[key]; !exists || !previous.matches(o, codec.PackUID(o.UID)) {
			changed = append(changed, o)
			rows = append(rows, objectRow{rowKey: key, application: applicationOf(o)})
		}
	}
	if err := s.compressObjects(ctx, changed, rows); err != nil {
		return err
	}
	for i, o := range changed {
		d.compressed[objectVersionOf(o)] = compressedColumns{rows[i].head, rows[i].body}
	}
	return nil
}

// refreshBaseline reads the account's holdings anew.
func (s *Store) refreshBaseline(ctx context.Context, d *preparedBatch) (err error) {
	d.generation = d.lock.Generation()
	d.baseline, err = s.readBaseline(ctx, d.batch.Account, d.batch.Term)
	return err
}

// readBaseline begins to find out what is stored. It refuses a writer that was
// replaced.
func (s *Store) readBaseline(ctx context.Context, account vedette.AccountName, term vedette.Term) (*baseline, error) {
	base := &baseline{covered: coverage{}, marks: map[feedKey]string{}, lookedUp: map[rowKey]bool{}, existing: map[rowKey]storedRow{}}
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

// selectBaseline reads an account and its feeds at once: each query more is a way to the
// database and back.
const selectBaseline = `SELECT a.id, a.term, f.kind_id, f.namespace, f.mark FROM accounts a LEFT JOIN feeds f ON f.account_id = a.id WHERE a.name = ?`

// scan takes a row of selectBaseline.
func (b *baseline) scan(rows *sql.Rows, term *int64) error {
	var kind sql.NullInt64 // none, as the others, where the account has no feeds
	var namespace, mark sql.NullString
	if err := rows.Scan(&b.accountID, term, &kind, &namespace, &mark); err != nil || !kind.Valid {
		return err
	}
	key := feedKey{kind.Int64, namespace.String}
	b.covered[key] = true
	if mark.String != "" {
		b.marks[key] = mark.String
	}
	return nil
}

// lookup finds what is stored under keys, where that is not known.
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

// invalidate makes what a plan wrote unknown.
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

// matches reports whether an object is stored as it is.
func (r *storedRow) matches(o *vedette.Object, uid []byte) bool {
	return r.version == o.ResourceVersion && bytes.Equal(r.uid, uid)
}

// nextChunk takes from the batch what the next turn writes: at most so many objects,
// or all of them where that is 0. Its marks come last, with the last of what they
// cover. What a snapshot drops is told apart from what the same batch writes, so
// that such a batch is not cut.
func (d *preparedBatch) nextChunk(maxObjects int) (b Batch, more bool) {
	b = d.batch
	if maxObjects == 0 || len(b.Upserts) <= maxObjects || len(b.Drops) > 0 {
		return b, false
	}
	d.batch.Upserts = b.Upserts[maxObjects:]
	return Batch{Account: b.Account, Term: b.Term, Source: b.Source, Upserts: b.Upserts[:maxObjects:maxObjects]}, true
}

// compressChanged fills the compressed columns of a plan's rows, with those of the
// draft where it has them.
func (s *Store) compressChanged(ctx context.Context, compressed map[objectVersion]compressedColumns, changed []*vedette.Object, rows []objectRow) error {
	var objects []*vedette.Object
	var missing []int
	for i, o := range changed {
		if c, ok := compressed[objectVersionOf(o)]; ok {
			rows[i].head, rows[i].body = c.head, c.body
			continue
		}
		objects, missing = append(objects, o), append(missing, i)
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
