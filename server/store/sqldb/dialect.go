package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"io/fs"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/vedette-io/vedette"
)

// The names of databases.
const (
	SQLite     = "SQLite"
	PostgreSQL = "PostgreSQL"
	MySQL      = "MySQL"
)

// Dialect is what differs between the databases. All other SQL works on all of them.
type Dialect struct {
	Name           string
	migrations     fs.FS
	goose          goose.Dialect
	migrationLock  migrationLock // nil if no other process can migrate
	numberedParams bool          // parameters are $1, $2 instead of ?
	arrayParams    bool          // a list of numbers is one parameter
	KeyHint        string        // after "objects", makes the planner use the primary key
	// clockExpr is the time of the database in microseconds since 1970; empty if no other process can
	// use the database.
	clockExpr      string
	ForUpdate      string // appended to a SELECT to lock its rows
	SkipLocked     string // appended to a SELECT to lock those of its rows that nobody has locked; MariaDB before 10.6 does not know it
	purgeStatement string // deletes the first rows; a format with table, condition, order and limit
	isolation      sql.IsolationLevel
	SingleWriter   bool // the database takes one writing transaction at a time
	// insert inserts rows into a small table. conflictClause is appended to the
	// statement and may come from OnConflictUpdate.
	insert func(ctx context.Context, tx *Tx, table string, columns []Column, rows [][]any, conflictClause string) error
	// OnConflictUpdate returns the clause with which an insert updates columns of an existing
	// row with the same id, if that row meets a condition.
	OnConflictUpdate func(where string, columns []string) string
	// hasNoLaterTerm is such a condition: the row of freshness is not of a later term.
	hasNoLaterTerm string
	// size returns the bytes of all tables and indexes.
	size func(ctx context.Context, db *sql.DB) (int64, error)

	translateError    func(err error) error // turns a driver's error into a vedette.Error, or returns it unchanged
	isRetryable       func(err error) bool  // whether a retry of the same transaction may succeed immediately
	IsUniqueViolation func(err error) bool  // whether another row has the same unique key
	// isReadOnly reports whether the connection leads to a server that takes no writes;
	// nil if any other connection would lead to the same server.
	isReadOnly func(err error) bool
	// isOutdated reports whether a statement that a connection has prepared is not that of the tables any more: another server has
	// migrated them. It is nil if the database prepares such statements again by itself.
	isOutdated func(err error) bool
	// isTerminated reports whether the server has ended the connection, or refuses to work, before it executed the statement. A
	// transaction that was not committed may then be run again on another connection. It is nil for databases without connections.
	isTerminated func(err error) bool

	// openReplica prepares connections to a replica, and reports whether it must be told the position of the primary; nil if there can
	// be none.
	openReplica   func(ctx context.Context, d *DB, address string, maxConns int) (r *replica, needsFloor bool, err error)
	positionQuery string // reads the position of the primary
}

// purgeByIDStatement is purgeStatement for databases whose DELETE has neither ORDER BY nor LIMIT.
// Clock returns an expression for the time in microseconds since 1970, by a clock that all processes share that use the database.
func (d *Dialect) Clock() string {
	return cmp.Or(d.clockExpr, `CAST(unixepoch('subsec') * 1000000 AS INTEGER)`)
}

const purgeByIDStatement = `DELETE FROM %[1]s WHERE id IN (SELECT id FROM %[1]s WHERE %[2]s ORDER BY %[3]s LIMIT %[4]d)`

// Column names a column and its PostgreSQL type.
type Column struct{ name, pgType string }

// Columns returns the columns of "name type", in order.
func Columns(specs ...string) []Column {
	all := make([]Column, len(specs))
	for i, spec := range specs {
		all[i].name, all[i].pgType, _ = strings.Cut(spec, " ")
	}
	return all
}

// maxWriters returns the number of transactions that may write at the same time. It leaves
// connections for readers.
func (d *Dialect) maxWriters(conns int) int {
	if d.SingleWriter {
		return 1
	}
	return max(1, conns/2)
}

type connectFunc func(ctx context.Context, d *DB, cfg Config) error

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
func (d *Dialect) bind(query string) string {
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

// In returns the condition that a column has one of the ids. If the database has no arrays, the
// ids are part of the query: there may be more than it allows parameters, and numbers cannot
// inject SQL.
func (d *Dialect) In(column string, ids []int64) Condition {
	if d.arrayParams {
		return Cond(column+" = ANY(?)", ids)
	}
	if len(ids) == 0 {
		return Cond("1 = 0")
	}
	b := append([]byte(column), " IN ("...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return Cond(string(append(b, ')')))
}

// NotIn returns the condition that a column has none of the ids.
func (d *Dialect) NotIn(column string, ids []int64) Condition {
	if len(ids) == 0 {
		return Cond("1 = 1")
	}
	in := d.In(column, ids)
	return Cond("NOT ("+in.SQL+")", in.Args...)
}

// InTexts is In for texts that are valid.
func (d *Dialect) InTexts(column string, values []string) Condition {
	if d.arrayParams {
		return Cond(column+" = ANY(?)", values)
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	if len(args) == 0 {
		return Never
	}
	return Cond(column+" IN ("+Placeholders(len(args))+")", args...)
}

// InBytes is in for bytes.
func (d *Dialect) InBytes(column string, values [][]byte) Condition {
	if d.arrayParams {
		// Without the subquery the planner expects as many rows as the array is long, times a guess
		// if there are no statistics yet, and reads the whole table.
		return Cond(column+" = ANY(ARRAY(SELECT unnest(?::bytea[])))", values)
	}
	if len(values) == 0 {
		return Cond("1 = 0")
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return Cond(column+" IN ("+Placeholders(len(values))+")", args...)
}

// Placeholders returns "?,?,?" for 3.
func Placeholders(n int) string {
	return strings.TrimSuffix(strings.Repeat("?,", n), ",")
}

// Condition is a part of a WHERE clause, with its arguments.
type Condition struct {
	SQL  string
	Args []any
}

// Cond returns a condition.
func Cond(text string, args ...any) Condition { return Condition{text, args} }

// Never is a condition that no row meets.
var Never = Cond("1 = 0")

// Equals returns the condition that a column has a text of at most maxBytes. A text that no database
// stores unchanged selects nothing: shortened or repaired, it could be the name of another row.
func Equals(column, value string, maxBytes int) Condition {
	if !IsValidText(value, maxBytes) {
		return Never
	}
	return Cond(column+" = ?", value)
}

// IsOneOf is equals for any of several texts.
func IsOneOf[T ~string](column string, values []T, maxBytes int) Condition {
	args := make([]any, 0, len(values))
	for _, v := range values {
		if IsValidText(string(v), maxBytes) {
			args = append(args, string(v))
		}
	}
	if len(args) == 0 {
		return Never
	}
	return Cond(column+" IN ("+Placeholders(len(args))+")", args...)
}

// Conditions are joined by AND.
type Conditions []Condition

// Where returns the WHERE clause and its arguments; both are empty without conditions.
func (c Conditions) Where() (string, []any) {
	if len(c) == 0 {
		return "", nil
	}
	parts := make([]string, len(c))
	var args []any
	for i, cond := range c {
		parts[i] = cond.SQL
		args = append(args, cond.Args...)
	}
	return " WHERE " + strings.Join(parts, " AND "), args
}
