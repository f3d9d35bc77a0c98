package store

import (
	"context"
	"database/sql"
	"io/fs"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/vedette-io/vedette"
)

// dialect is what differs between the databases. All other SQL works on all of them.
type dialect struct {
	name            string
	migrations      fs.FS
	goose           goose.Dialect
	gooseLock       func() ([]goose.ProviderOption, error)
	migrationLocker lock.SessionLocker // held while goose migrates; nil if gooseLock is enough
	numberedParams  bool               // parameters are $1, $2 instead of ?
	arrayParams     bool               // a list of numbers is one parameter
	orderedJoin     string             // a join that reads tables in the order in which they are written
	keyHint         string             // after "objects", makes the planner use the primary key
	// keyRange is a condition on objects o that always holds; empty for none. With it the planner
	// compares what is in the primary key before it reads rows.
	keyRange string
	// seeksByAccount says that the objects of a kind are found by the primary key if all accounts are
	// named. Otherwise the planner reads all objects.
	seeksByAccount bool
	// planEach, before the arguments of a statement, makes the database plan it for these arguments;
	// nil if it always does.
	planEach any
	// clockExpr is the time of the database in microseconds since 1970; empty if no other process can
	// use the database.
	clockExpr      string
	forUpdate      string // appended to a SELECT to lock its rows
	purgeStatement string // deletes the first rows; a format with table, condition, order and limit
	emptyBytes     string // a literal
	// ownedTables are objects p and the objects o that they own. The index on owners finds them: "+ 0"
	// keeps planners from looking for all objects of the account.
	ownedTables       string
	concatBytes       func(columns ...string) string // the concatenation of columns of bytes
	hexExpr           string                         // bytes in hexadecimal; ? stands for the bytes
	glob              bool                           // LIKE ignores case, but there is GLOB
	isolation         sql.IsolationLevel
	singleWriter      bool // the database takes one writing transaction at a time
	priorityChunkSize int  // objects per commit while an operation is in progress; they take some milliseconds

	// lookup calls found once for each of those keys that are stored.
	lookup func(ctx context.Context, s *Store, accountID int64, keys []rowKey, found func(storedRow)) error
	// upsert writes rows, which are sorted by key.
	upsert func(ctx context.Context, tx *transaction, accountID int64, rows []objectRow) error
	// remove deletes the rows of keys, which are sorted.
	remove func(ctx context.Context, tx *transaction, accountID int64, keys []rowKey) error
	// insert inserts rows into a small table. conflictClause is appended to the
	// statement and may come from onConflictUpdate.
	insert func(ctx context.Context, tx *transaction, table string, columns []columnSpec, rows [][]any, conflictClause string) error
	// onConflictUpdate returns the clause with which an insert updates columns of an existing
	// row with the same id, if that row meets a condition.
	onConflictUpdate func(where string, columns []string) string
	// onConflictAdd returns the clause with which an insert adds to columns of an existing row
	// with the same key.
	onConflictAdd func(table string, key, columns []string) string
	// size returns the bytes of all tables and indexes.
	size func(ctx context.Context, db *sql.DB) (int64, error)

	// prepare prepares the store's statements after the schema is migrated; may be nil.
	prepare func(ctx context.Context, s *Store) error

	translateError    func(err error) error // turns a driver's error into a vedette.Error, or returns it unchanged
	isRetryable       func(err error) bool  // whether a retry of the same transaction may succeed immediately
	isUniqueViolation func(err error) bool  // whether another row has the same unique key
	// isReadOnly reports whether the connection leads to a server that takes no writes;
	// nil if any other connection would lead to the same server.
	isReadOnly func(err error) bool
}

// purgeByIDStatement is purgeStatement for databases whose DELETE has neither ORDER BY nor LIMIT.
const purgeByIDStatement = `DELETE FROM %[1]s WHERE id IN (SELECT id FROM %[1]s WHERE %[2]s ORDER BY %[3]s LIMIT %[4]d)`

// columnSpec names a column and its PostgreSQL type.
type columnSpec struct{ name, pgType string }

// maxWriters returns the number of transactions that may write at the same time. It leaves
// connections for readers.
func (d *dialect) maxWriters(conns int) int {
	if d.singleWriter {
		return 1
	}
	return max(1, conns/2)
}

type connectFunc func(ctx context.Context, s *Store, cfg Config) error

const urlForms = `"sqlite:PATH", "postgres://USER:PASSWORD@HOST:5432/DATABASE" or "mysql://USER:PASSWORD@HOST:3306/DATABASE"`

// connectFuncFor never includes the URL in its error, because it contains a password.
func connectFuncFor(url string) (connectFunc, error) {
	scheme, _, found := strings.Cut(url, ":")
	switch {
	case !found:
		return nil, vedette.Errorf(vedette.Invalid, "the database URL has no scheme: it must be %s", urlForms)
	case scheme == "sqlite":
		return connectSQLite, nil
	case scheme == "postgres" || scheme == "postgresql":
		return connectPostgres, nil
	case scheme == "mysql" || scheme == "mariadb":
		return connectMySQL, nil
	}
	return nil, vedette.Errorf(vedette.Invalid, "the database URL has the unknown scheme %q: it must be %s", scheme, urlForms)
}

// bind writes a query's parameters as the database expects them.
func (d *dialect) bind(query string) string {
	if !d.numberedParams {
		return query
	}
	var b strings.Builder
	b.Grow(len(query) + 32)
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		query = after
	}
}

// in returns the condition that a column has one of the ids. If the database has no arrays, the
// ids are part of the query: there may be more than it allows parameters, and numbers cannot
// inject SQL.
func (d *dialect) in(column string, ids []int64) condition {
	if d.arrayParams {
		return condition{column + " = ANY(?)", []any{ids}}
	}
	if len(ids) == 0 {
		return condition{"1 = 0", nil}
	}
	b := append([]byte(column), " IN ("...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return condition{string(append(b, ')')), nil}
}

// notIn returns the condition that a column has none of the ids.
func (d *dialect) notIn(column string, ids []int64) condition {
	if len(ids) == 0 {
		return condition{"1 = 1", nil}
	}
	in := d.in(column, ids)
	return condition{"NOT (" + in.sql + ")", in.args}
}

// inBytes is in for bytes.
func (d *dialect) inBytes(column string, values [][]byte) condition {
	if d.arrayParams {
		// Without the subquery the planner expects as many rows as the array is long, times a guess
		// if there are no statistics yet, and reads the whole table.
		return condition{column + " = ANY(ARRAY(SELECT unnest(?::bytea[])))", []any{values}}
	}
	if len(values) == 0 {
		return condition{"1 = 0", nil}
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return condition{column + " IN (" + placeholders(len(values)) + ")", args}
}

// placeholders returns "?,?,?" for 3.
func placeholders(n int) string {
	return strings.TrimSuffix(strings.Repeat("?,", n), ",")
}
