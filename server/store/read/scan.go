package read

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// scannedRow is a row whose columns are still compressed.
type scannedRow struct {
	catalog.Key
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
	return position{account: r.account, kind: r.objectKind, namespace: r.Namespace, name: r.Name}
}

// selectSpec selects what to read of objects o, accounts a and kinds k.
type selectSpec struct {
	where  sqldb.Conditions
	order  string
	limit  int
	bodies bool
	tables string
	budget *sqldb.ByteBudget // for the compressed columns
}

// scan returns the selected rows, as far as the budget allows.
func (r *Reader) scan(ctx context.Context, spec selectSpec) ([]scannedRow, error) {
	body := "NULL"
	if spec.bodies {
		body = "o.body"
	}
	clause, args := spec.where.Where()
	var scanned []scannedRow
	sets := map[int64]map[string]string{} // objects of one workload share one
	err := r.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var f scannedRow
		if err := rows.Scan(&f.accountID, &f.account, &f.KindID, &f.objectKind.Name, &f.objectKind.Group, &f.Namespace, &f.Name,
			&f.labelset, &f.labels, &f.stored, &f.uid, &f.version, &f.owner, &f.head, &f.body); err != nil {
			return err
		}
		if !spec.budget.Take(len(f.head) + len(f.body)) {
			return sqldb.ErrBudgetExhausted
		}
		if err := f.readLabels(sets); err != nil {
			return err
		}
		scanned = append(scanned, f)
		return nil
	}, sqldb.Named("read rows of objects", fmt.Sprintf(`SELECT a.id, a.name, k.id, k.name, k.grp, o.namespace, o.name, o.labelset, l.labels, o.stored, o.uid, o.version, o.owner, o.head, %s
		FROM %s LEFT JOIN labelsets l ON l.id = o.labelset%s
		ORDER BY %s LIMIT %d`, body, spec.tables, clause, spec.order, spec.limit)), args...)
	if errors.Is(err, sqldb.ErrBudgetExhausted) {
		err = nil
	}
	return scanned, err
}

// tablesByIndex joins objects, which are found by one of their indexes, with accounts and kinds.
func (r *Reader) tablesByIndex() string {
	return joinAccountsAndKinds("objects o", r.dialect.orderedJoin)
}

// tablesByKey is tablesByIndex for objects of one account and kind, in the order of the primary
// key.
func (r *Reader) tablesByKey() string {
	return joinAccountsAndKinds("objects o"+r.db.Dialect.KeyHint, r.dialect.orderedJoin)
}

// tablesByScope is tablesByIndex for objects that are found by accounts and kinds.
func (r *Reader) tablesByScope() string {
	return joinAccountsAndKinds("objects o"+r.db.Dialect.KeyHint, "JOIN")
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
		return fmt.Errorf("label set %d of %s/%s is missing", r.labelset, r.Namespace, r.Name)
	}
	if err := json.Unmarshal(r.labels, &r.set); err != nil {
		return fmt.Errorf("read label set %d: %w", r.labelset, err)
	}
	sets[r.labelset] = r.set
	return nil
}

// decompressRows returns the objects of rows, as far as the budget allows. It releases the
// compressed columns of each row that it returns.
func (r *Reader) decompressRows(ctx context.Context, scanned []scannedRow, budget *sqldb.ByteBudget) ([]Row, error) {
	resources, err := r.resourcesOf(ctx, scanned)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(scanned))
	var buf []byte
	for i := range scanned {
		f, row := &scanned[i], Row{}
		size := 0
		buf, size, err = r.decompressRow(ctx, f, &row, buf)
		if err != nil {
			return nil, err
		}
		if !budget.Take(size) {
			break
		}
		row.Resource = resources.of(f)
		rows = append(rows, row)
		f.head, f.body = nil, nil
	}
	return rows, nil
}

// decompressRow sets the object of a row, and returns the size of its columns. It may overwrite
// buf, and returns a buffer for the next row.
func (r *Reader) decompressRow(ctx context.Context, f *scannedRow, row *Row, buf []byte) ([]byte, int, error) {
	row.Account, row.Key = vedette.AccountName(f.account), vedette.Key{Kind: f.objectKind, Namespace: f.Namespace, Name: f.Name}
	row.UID = codec.UnpackUID(f.uid)
	row.ResourceVersion = f.version
	row.Labels = f.set
	row.Stored = sqldb.FromMicros(f.stored)
	buf, err := r.dicts.Decompress(ctx, buf[:0], f.head)
	if err == nil {
		err = codec.DecodeHead(buf, &row.Object)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read %s of account %s: %w", row.Key, row.Account, err)
	}
	if len(f.owner) > 0 { // the heads of older versions have it themselves
		row.Owner.UID = codec.UnpackUID(f.owner)
	}
	size := len(buf)
	buf, err = r.dicts.Decompress(ctx, buf[:0], f.body)
	if err == nil {
		row.Body, err = codec.UnfoldBody(bytes.Clone(buf), &row.Object)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the body of %s of account %s: %w", row.Key, row.Account, err)
	}
	row.Moniker = vedette.MonikerOf(row.Key, row.Annotations)
	return buf, size + len(row.Body), nil
}

type resourceKey struct {
	accountID int64
	catalog.Feed
}

type resourceTable map[resourceKey]vedette.Resource

func (t resourceTable) of(f *scannedRow) vedette.Resource {
	if r, ok := t[resourceKey{f.accountID, catalog.Feed{KindID: f.KindID, Namespace: f.Namespace}}]; ok {
		return r
	}
	return t[resourceKey{f.accountID, catalog.Feed{KindID: f.KindID, Namespace: ""}}]
}

func (r *Reader) resourcesOf(ctx context.Context, scanned []scannedRow) (resourceTable, error) {
	table := resourceTable{}
	if len(scanned) == 0 {
		return table, nil
	}
	accounts, kinds := map[int64]bool{}, map[int64]bool{}
	for i := range scanned {
		accounts[scanned[i].accountID], kinds[scanned[i].KindID] = true, true
	}
	where, args := sqldb.Conditions{r.db.Dialect.In("f.account_id", idsOf(accounts)), r.db.Dialect.In("f.kind_id", idsOf(kinds))}.Where()
	err := r.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		var key resourceKey
		var short string
		var r vedette.Resource
		if err := rows.Scan(&key.accountID, &key.KindID, &key.Namespace, &r.Kind.Name, &r.Kind.Group, &r.Version, &r.Plural, &r.Singular, &short,
			&r.Namespaced); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(short), &r.ShortNames); err != nil {
			return err
		}
		table[key] = r
		return nil
	}, sqldb.Named("read resources", `SELECT f.account_id, f.kind_id, f.namespace, k.name, k.grp, f.version, f.plural, f.singular, f.short_names, f.namespaced
		FROM feeds f JOIN kinds k ON k.id = f.kind_id`+where), args...)
	if err != nil {
		return nil, err
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
