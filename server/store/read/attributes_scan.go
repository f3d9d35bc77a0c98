package read

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// attributesQuery selects objects o.
type attributesQuery struct {
	tables      string
	args        []any // of tables
	where       sqldb.Conditions
	order       string // empty for none
	application string // of all rows, if it is known
	labels      bool   // read the label sets, too
}

// attributeColumns are few, because each value of each row costs as much as decoding a Pod's
// attributes: database/sql and the drivers allocate and lock for each. The dialect writes account
// and kind as one number, and attributes, uid and owner as one value.
func (r *Reader) attributeColumns(q attributesQuery) string {
	columns := `o.account_id * ` + accountFactor + ` + o.kind_id, o.namespace, o.name, ` + r.dialect.concatBytes("o.attributes", "o.uid", "o.owner")
	if q.application == "" {
		columns += `, o.application`
	}
	if q.labels {
		columns += `, o.labelset`
	}
	return columns
}

// accountFactor is 2 to the power of accountShift. It makes the product a 64-bit number on all
// databases.
const (
	accountFactor = "4294967296"
	accountShift  = 32
)

func (r *Reader) readAttributes(ctx context.Context, action string, q attributesQuery) ([]AttributesRow, error) {
	rows, err := r.scanAttributes(ctx, q)
	return rows, r.db.WrapError(action, err)
}

func (r *Reader) scanAttributes(ctx context.Context, q attributesQuery) ([]AttributesRow, error) {
	names, err := r.names.Read(ctx)
	if err != nil {
		return nil, err
	}
	scanner := attributeScanner{accounts: names.Visible, kinds: r.kinds.Cached(), application: q.application, limit: maxAttributeRows,
		budget: rowBudgetOf(ctx)}
	dest := []any{&scanner.id, &scanner.namespace, &scanner.name, &scanner.encoded}
	if q.application == "" {
		dest = append(dest, &scanner.application)
	}
	if q.labels {
		dest = append(dest, &scanner.labelset)
	}
	clause, args := q.where.Where()
	err = r.db.QueryEachAnywhere(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		return scanner.add()
	}, sqldb.Named("read attributes", `SELECT `+r.attributeColumns(q)+` FROM `+q.tables+clause+q.order), append(q.args, args...)...)
	if err != nil {
		return nil, err
	}
	rows, err := scanner.rows(ctx, r)
	if err != nil || !q.labels {
		return rows, err
	}
	return rows, r.addLabels(ctx, rows, scanner.labelsets)
}

// attributeScanner turns rows of attributeColumns into AttributesRows.
type attributeScanner struct {
	accounts map[int64]vedette.AccountName // that are visible
	kinds    map[int64]vedette.Kind

	// The columns of the row that is read.
	id              int64 // of account and kind
	namespace, name string
	encoded         sql.RawBytes // attributes, uid and owner
	application     string
	labelset        int64

	owner, ownerUID string // of the last row, packed and as text: many rows follow each other that have the same
	// Rows are large, so growing one slice would copy them several times.
	chunks    [][]AttributesRow
	limit     int // of rows
	budget    *RowBudget
	labelsets []int64 // of the rows
	unknown   []unknownKind
}

// unknownKind is a row whose kind was inserted by another process.
type unknownKind struct {
	row    int
	kindID int64
}

const attributeChunk = 1024 // rows

// maxAttributeRows limits the number of rows, however small they are.
const maxAttributeRows = 250_000

func tooManyRows(limit int) error {
	return vedette.Errorf(vedette.Unavailable, "more than %d objects would be shown together: this server does not hold so many in memory", limit)
}

// add adds the row that is read, unless its account is not visible.
func (c *attributeScanner) add() error {
	account, visible := c.accounts[c.id>>accountShift]
	if !visible {
		return nil
	}
	if n := len(c.chunks); n == 0 || len(c.chunks[n-1]) == cap(c.chunks[n-1]) {
		c.chunks = append(c.chunks, make([]AttributesRow, 0, min(attributeChunk, 16<<min(2*n, 6))))
	}
	if len(c.labelsets) >= c.limit {
		return tooManyRows(c.limit)
	}
	c.labelsets = append(c.labelsets, c.labelset)
	chunk := &c.chunks[len(c.chunks)-1]
	*chunk = append(*chunk, AttributesRow{Account: account, Key: vedette.Key{Namespace: c.namespace, Name: c.name},
		Moniker: vedette.Moniker{App: c.application}})
	r := &(*chunk)[len(*chunk)-1]
	uid, owner, err := attributes.Decode(c.encoded, c.name, &r.Attributes, &r.Moniker)
	if err != nil && !errors.Is(err, attributes.ErrUnknownVersion) {
		return fmt.Errorf("read %s/%s of account %s: %w", c.namespace, c.name, account, err)
	}
	r.UID = codec.UnpackUID([]byte(uid))
	if owner != c.owner {
		c.owner, c.ownerUID = owner, codec.UnpackUID([]byte(owner))
	}
	r.Owner.UID = c.ownerUID
	if err := c.budget.take(rowBytes(r)); err != nil {
		return err
	}
	kindID := c.id & (1<<accountShift - 1)
	kind, known := c.kinds[kindID]
	if !known {
		c.unknown = append(c.unknown, unknownKind{c.count() - 1, kindID})
	}
	r.Kind = kind
	return nil
}

func (c *attributeScanner) count() int {
	n := 0
	for _, chunk := range c.chunks {
		n += len(chunk)
	}
	return n
}

// rows returns all rows.
func (c *attributeScanner) rows(ctx context.Context, r *Reader) ([]AttributesRow, error) {
	var rows []AttributesRow
	if len(c.chunks) == 1 {
		rows = c.chunks[0]
	} else {
		rows = slices.Concat(c.chunks...)
	}
	for _, u := range c.unknown {
		kind, err := r.kinds.LookupKind(ctx, u.kindID)
		if err != nil {
			return nil, err
		}
		rows[u.row].Kind = kind
	}
	return rows, nil
}
