package store

import (
	"bytes"
	"context"
	"database/sql"
	"slices"

	"github.com/vedette-io/vedette"
)

// draft is a commit before its turns at the account's gate: what is stored under
// its batch's keys, and the compressed columns of what differs. To find that out
// takes nearly all of a commit's time, in which an operation need not wait. What
// was read counts as long as nobody else has been inside since; what was
// compressed depends on nothing but its object, and counts for ever.
type draft struct {
	batch  Batch // what is left to write
	gate   *gate
	turns  int64 // of the gate, when the holdings were read
	held   *holdings
	packed map[identity]columns
}

// identity names a state of an object.
type identity struct {
	key          vedette.Key
	uid, version string
}

func identityOf(o *vedette.Object) identity { return identity{o.Key, o.UID, o.ResourceVersion} }

// columns are those that are compressed.
type columns struct{ head, body []byte }

// holdings is what is known of an account's rows while nobody else writes them.
type holdings struct {
	account int64
	covered coverage
	marks   map[feedKey]string   // of the feeds that have one
	asked   map[rowKey]bool      // keys that were looked up
	there   map[rowKey]storedRow // those of them that are stored
}

// draft begins a commit. Whoever gets one calls s.gates.part for its gate.
func (s *Store) draft(ctx context.Context, b Batch) (*draft, error) {
	d := &draft{batch: b, gate: s.gates.join(b.Account), packed: make(map[identity]columns, len(b.Upserts))}
	if err := s.prepare(ctx, d); err != nil {
		s.gates.part(b.Account, d.gate)
		return nil, err
	}
	return d, nil
}

func (s *Store) prepare(ctx context.Context, d *draft) error {
	if err := s.hold(ctx, d); err != nil {
		return err
	}
	b := &d.batch
	upserts, deletes, err := s.keys(ctx, b, d.held.covered)
	if err != nil {
		return err
	}
	if err := s.lookup(ctx, d.held, upserts, deletes); err != nil {
		return err
	}
	var changed []*vedette.Object
	var rows []row
	for i, key := range upserts {
		o := &b.Upserts[i]
		if was, exists := d.held.there[key]; !exists || !was.is(o, packUID(o.UID)) {
			changed = append(changed, o)
			rows = append(rows, row{rowKey: key, application: applicationOf(o)})
		}
	}
	if err := s.pack(ctx, changed, rows); err != nil {
		return err
	}
	for i, o := range changed {
		d.packed[identityOf(o)] = columns{rows[i].head, rows[i].body}
	}
	return nil
}

// hold reads the account's holdings anew.
func (s *Store) hold(ctx context.Context, d *draft) (err error) {
	d.turns = d.gate.turns.Load()
	d.held, err = s.holdings(ctx, d.batch.Account, d.batch.Term)
	return err
}

// holdings begins to find out what is stored. It refuses a writer that was
// replaced.
func (s *Store) holdings(ctx context.Context, account vedette.AccountName, term vedette.Term) (*holdings, error) {
	h := &holdings{covered: coverage{}, marks: map[feedKey]string{}, asked: map[rowKey]bool{}, there: map[rowKey]storedRow{}}
	var stored int64
	err := s.each(ctx, func(rows *sql.Rows) error { return h.scan(rows, &stored) }, selectGround, string(account))
	switch {
	case err != nil:
		return nil, err
	case h.account == 0:
		return nil, ErrNoAccount
	case stored != int64(term):
		return nil, ErrTerm
	}
	return h, nil
}

// selectGround reads an account and its feeds at once: each query more is a way to the
// database and back.
const selectGround = `SELECT a.id, a.term, f.kind_id, f.namespace, f.mark FROM accounts a LEFT JOIN feeds f ON f.account_id = a.id WHERE a.name = ?`

// scan takes a row of selectGround.
func (h *holdings) scan(rows *sql.Rows, term *int64) error {
	var kind sql.NullInt64 // none, as the others, where the account has no feeds
	var namespace, mark sql.NullString
	if err := rows.Scan(&h.account, term, &kind, &namespace, &mark); err != nil || !kind.Valid {
		return err
	}
	key := feedKey{kind.Int64, namespace.String}
	h.covered[key] = true
	if mark.String != "" {
		h.marks[key] = mark.String
	}
	return nil
}

// lookup finds what is stored under keys, where that is not known.
func (s *Store) lookup(ctx context.Context, h *holdings, upserts, deletes []rowKey) error {
	keys := make([]rowKey, 0, len(upserts)+len(deletes))
	for _, key := range slices.Concat(upserts, deletes) {
		if !h.asked[key] {
			keys = append(keys, key)
		}
	}
	sortKeys(keys)
	if err := s.dialect.lookup(ctx, s, h.account, keys, func(r storedRow) { h.there[r.rowKey] = r }); err != nil {
		return err
	}
	for _, key := range keys {
		h.asked[key] = true
	}
	return nil
}

// forget makes what a plan wrote unknown.
func (h *holdings) forget(p *plan) {
	for i := range p.rows {
		delete(h.asked, p.rows[i].rowKey)
		delete(h.there, p.rows[i].rowKey)
	}
	for _, key := range p.removes {
		delete(h.asked, key)
		delete(h.there, key)
	}
}

// is reports whether an object is stored as it is.
func (r *storedRow) is(o *vedette.Object, uid []byte) bool {
	return r.version == o.ResourceVersion && bytes.Equal(r.uid, uid)
}

// next takes from the batch what the next turn writes: at most so many objects,
// or all of them where that is 0. Its marks come last, with the last of what they
// cover. What a snapshot drops is told apart from what the same batch writes, so
// that such a batch is not cut.
func (d *draft) next(most int) (b Batch, more bool) {
	b = d.batch
	if most == 0 || len(b.Upserts) <= most || len(b.Drops) > 0 {
		return b, false
	}
	d.batch.Upserts = b.Upserts[most:]
	return Batch{Account: b.Account, Term: b.Term, Source: b.Source, Upserts: b.Upserts[:most:most]}, true
}

// packChanged fills the compressed columns of a plan's rows, with those of the
// draft where it has them.
func (s *Store) packChanged(ctx context.Context, packed map[identity]columns, changed []*vedette.Object, rows []row) error {
	var objects []*vedette.Object
	var lacking []int
	for i, o := range changed {
		if c, ok := packed[identityOf(o)]; ok {
			rows[i].head, rows[i].body = c.head, c.body
			continue
		}
		objects, lacking = append(objects, o), append(lacking, i)
	}
	fresh := make([]row, len(lacking))
	for at, i := range lacking {
		fresh[at] = rows[i]
	}
	if err := s.pack(ctx, objects, fresh); err != nil {
		return err
	}
	for at, i := range lacking {
		rows[i] = fresh[at]
	}
	return nil
}
