package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/codec"
)

// scannedRow is a row whose columns are still compressed.
type scannedRow struct {
	rowKey
	accountID  int64
	account    string
	objectKind vedette.Kind
	labelset   int64
	labels     sql.RawBytes
	set        map[string]string
	stored     int64
	uid        []byte
	version    string
	owner      []byte // packed uid
	head, body []byte
}

func (r *scannedRow) position() position {
	return position{account: r.account, kind: r.objectKind, namespace: r.namespace, name: r.name}
}

// selectSpec selects what to read of objects o, accounts a and kinds k.
type selectSpec struct {
	where  conditions
	order  string
	limit  int
	bodies bool
	tables string
	budget *byteBudget // for the compressed columns
}

// scan returns the selected rows, as far as the budget allows.
func (s *Store) scan(ctx context.Context, spec selectSpec) ([]scannedRow, error) {
	body := "NULL"
	if spec.bodies {
		body = "o.body"
	}
	clause, args := spec.where.where()
	var scanned []scannedRow
	sets := map[int64]map[string]string{} // objects of one workload share one
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var f scannedRow
		if err := rows.Scan(&f.accountID, &f.account, &f.kindID, &f.objectKind.Name, &f.objectKind.Group, &f.namespace, &f.name,
			&f.labelset, &f.labels, &f.stored, &f.uid, &f.version, &f.owner, &f.head, &f.body); err != nil {
			return err
		}
		if !spec.budget.take(len(f.head) + len(f.body)) {
			return errBudgetExhausted
		}
		if err := f.readLabels(sets); err != nil {
			return err
		}
		scanned = append(scanned, f)
		return nil
	}, fmt.Sprintf(`SELECT a.id, a.name, k.id, k.name, k.grp, o.namespace, o.name, o.labelset, l.labels, o.stored, o.uid, o.version, o.owner, o.head, %s
		FROM %s LEFT JOIN labelsets l ON l.id = o.labelset%s
		ORDER BY %s LIMIT %d`, body, spec.tables, clause, spec.order, spec.limit), args...)
	if errors.Is(err, errBudgetExhausted) {
		err = nil
	}
	return scanned, err
}

// tablesByIndex joins objects, which are found by one of their indexes, with accounts and kinds.
func (s *Store) tablesByIndex() string {
	return joinAccountsAndKinds("objects o", s.dialect.orderedJoin)
}

// tablesByKey is tablesByIndex for objects of one account and kind, in the order of the primary
// key.
func (s *Store) tablesByKey() string {
	return joinAccountsAndKinds("objects o"+s.dialect.keyHint, s.dialect.orderedJoin)
}

// tablesByScope is tablesByIndex for objects that are found by accounts and kinds.
func (s *Store) tablesByScope() string {
	return joinAccountsAndKinds("objects o"+s.dialect.keyHint, "JOIN")
}

func joinAccountsAndKinds(objects, join string) string {
	return objects + " " + join + " accounts a ON a.id = o.account_id " + join + " kinds k ON k.id = o.kind_id"
}

func (r *scannedRow) readLabels(sets map[int64]map[string]string) error {
	defer func() { r.labels = nil }() // the driver reuses its memory
	if set, ok := sets[r.labelset]; ok || r.labelset == 0 {
		r.set = set
		return nil
	}
	if r.labels == nil {
		return fmt.Errorf("label set %d of %s/%s is missing", r.labelset, r.namespace, r.name)
	}
	if err := json.Unmarshal(r.labels, &r.set); err != nil {
		return fmt.Errorf("read label set %d: %w", r.labelset, err)
	}
	sets[r.labelset] = r.set
	return nil
}

// decompressRows returns the objects of rows, as far as the budget allows. It releases the
// compressed columns of each row that it returns.
func (s *Store) decompressRows(ctx context.Context, scanned []scannedRow, budget *byteBudget) ([]Row, error) {
	resources, err := s.resourcesOf(ctx, scanned)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(scanned))
	var buf []byte
	for i := range scanned {
		f, r := &scanned[i], Row{}
		size := 0
		buf, size, err = s.decompressRow(ctx, f, &r, buf)
		if err != nil {
			return nil, err
		}
		if !budget.take(size) {
			break
		}
		r.Resource = resources.of(f)
		rows = append(rows, r)
		f.head, f.body = nil, nil
	}
	return rows, nil
}

// decompressRow sets the object of a row, and returns the size of its columns. It may overwrite
// buf, and returns a buffer for the next row.
func (s *Store) decompressRow(ctx context.Context, f *scannedRow, r *Row, buf []byte) ([]byte, int, error) {
	r.Account, r.Key = vedette.AccountName(f.account), vedette.Key{Kind: f.objectKind, Namespace: f.namespace, Name: f.name}
	r.UID, r.ResourceVersion, r.Labels, r.Stored = codec.UnpackUID(f.uid), f.version, f.set, fromMicros(f.stored)
	buf, err := s.dicts.decompress(ctx, s, buf[:0], f.head)
	if err == nil {
		err = codec.DecodeHead(buf, &r.Object)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read %s of account %s: %w", r.Key, r.Account, err)
	}
	if len(f.owner) > 0 { // the heads of older versions have it themselves
		r.Owner.UID = codec.UnpackUID(f.owner)
	}
	size := len(buf)
	buf, err = s.dicts.decompress(ctx, s, buf[:0], f.body)
	if err == nil {
		r.Body, err = codec.UnfoldBody(bytes.Clone(buf), &r.Object)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the body of %s of account %s: %w", r.Key, r.Account, err)
	}
	r.Moniker = vedette.MonikerOf(r.Key, r.Annotations)
	return buf, size + len(r.Body), nil
}

type resourceKey struct {
	accountID int64
	feedKey
}

type resourceTable map[resourceKey]vedette.Resource

func (t resourceTable) of(f *scannedRow) vedette.Resource {
	if r, ok := t[resourceKey{f.accountID, feedKey{f.kindID, f.namespace}}]; ok {
		return r
	}
	return t[resourceKey{f.accountID, feedKey{f.kindID, ""}}]
}

func (s *Store) resourcesOf(ctx context.Context, scanned []scannedRow) (resourceTable, error) {
	table := resourceTable{}
	if len(scanned) == 0 {
		return table, nil
	}
	accounts, kinds := map[int64]bool{}, map[int64]bool{}
	for i := range scanned {
		accounts[scanned[i].accountID], kinds[scanned[i].kindID] = true, true
	}
	where, args := conditions{s.dialect.in("f.account_id", idsOf(accounts)), s.dialect.in("f.kind_id", idsOf(kinds))}.where()
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var key resourceKey
		var short string
		var r vedette.Resource
		if err := rows.Scan(&key.accountID, &key.kindID, &key.namespace, &r.Kind.Name, &r.Kind.Group, &r.Version, &r.Plural, &r.Singular, &short,
			&r.Namespaced); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(short), &r.ShortNames); err != nil {
			return err
		}
		table[key] = r
		return nil
	}, `SELECT f.account_id, f.kind_id, f.namespace, k.name, k.grp, f.version, f.plural, f.singular, f.short_names, f.namespaced
		FROM feeds f JOIN kinds k ON k.id = f.kind_id`+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	return table, nil
}

func idsOf(set map[int64]bool) []int64 {
	ids := make([]int64, 0, len(set))
	for id := range set {
		ids = append(ids, id)
	}
	return ids
}
