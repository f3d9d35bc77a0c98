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

// dialect is what one database does in its own way. Everything else is SQL that
// all of them read alike.
type dialect struct {
	name              string
	migrations        fs.FS
	goose             goose.Dialect
	gooseLock         func() ([]goose.ProviderOption, error)
	migrationLocker   lock.SessionLocker // taken while goose is at work; nil where gooseLock is enough
	numberedParams    bool               // parameters are $1, $2 in place of ?
	arrayParams       bool               // a list of numbers is one parameter
	orderedJoin       string             // a join whose tables are read in the order of the text
	keyHint           string             // behind objects, has them found by their key and read in its order
	clockExpr         string             // its time in microseconds since 1970; empty where no other process can use the database
	forUpdate         string             // appended to a SELECT that locks its rows
	purgeStatement    string             // deletes the first rows, by table, condition, order and number
	isolation         sql.IsolationLevel
	singleWriter      bool // one transaction at a time writes
	priorityChunkSize int  // how many objects are written in one while somebody hurries: some milliseconds' worth

	// lookup finds those of the keys that are stored.
	lookup func(ctx context.Context, s *Store, accountID int64, keys []rowKey, found func(storedRow)) error
	// upsert writes rows that are sorted by key.
	upsert func(ctx context.Context, tx *transaction, accountID int64, rows []objectRow) error
	// remove deletes rows by their keys, which are sorted.
	remove func(ctx context.Context, tx *transaction, accountID int64, keys []rowKey) error
	// insert writes rows of a few columns into a small table. The text follows the
	// statement; onConflictUpdate makes one.
	insert func(ctx context.Context, tx *transaction, table string, columns []columnSpec, rows [][]any, conflictClause string) error
	// onConflictUpdate lets an insert set columns of the row that has the id already, while
	// that meets a condition.
	onConflictUpdate func(where string, columns []string) string
	// size returns the bytes that all tables and indexes take.
	size func(ctx context.Context, db *sql.DB) (int64, error)

	// prepare fills the store's statements when the schema is there; may be nil.
	prepare func(ctx context.Context, s *Store) error

	translateError    func(err error) error // a driver's error as one of ours, or as it is
	isRetryable       func(err error) bool  // whether the same transaction may succeed at once
	isUniqueViolation func(err error) bool  // whether another row has a key that must be unique
	// isReadOnly reports whether the connection leads to a server that takes no writes;
	// nil where another connection would lead to the same.
	isReadOnly func(err error) bool
}

// purgeByIDStatement is purge where a DELETE knows neither order nor limit.
const purgeByIDStatement = `DELETE FROM %[1]s WHERE id IN (SELECT id FROM %[1]s WHERE %[2]s ORDER BY %[3]s LIMIT %[4]d)`

// columnSpec names a column and its PostgreSQL type.
type columnSpec struct{ name, pgType string }

// maxWriters is how many transactions may be under way at once, so that reading finds
// a connection too.
func (d *dialect) maxWriters(conns int) int {
	if d.singleWriter {
		return 1
	}
	return max(1, conns/2)
}

type connectFunc func(ctx context.Context, s *Store, cfg Config) error

const urlForms = `"sqlite:PATH", "postgres://USER:PASSWORD@HOST:5432/DATABASE" or "mysql://USER:PASSWORD@HOST:3306/DATABASE"`

// connectFuncFor never repeats the URL in its error: it holds a password.
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
	return nil, vedette.Errorf(vedette.Invalid, "the database URL has the scheme %q: it must be %s", scheme, urlForms)
}

// bind writes a query's parameters as the database wants them.
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

// in is the condition that a column holds one of the numbers. Where a database
// has no arrays they stand in the text: there are more of them than it takes
// parameters, and numbers can do no harm there.
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

// placeholders writes "?,?,?".
func placeholders(n int) string {
	return strings.TrimSuffix(strings.Repeat("?,", n), ",")
}
