package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
)

// The settings are in the URL, because there they apply to every connection of a
// pool. With WAL, synchronous=NORMAL may lose the last commits if the machine
// loses power, but never the consistency of the file; a mark is lost together with its data,
// so the agent reports that data again. What must not be lost, because it is followed by an effect
// in a cluster, is written with synchronous=FULL: that waits until this commit
// and all commits before it are on disk.
const (
	sqlitePragmas = "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)" +
		"&_pragma=temp_store(MEMORY)&_pragma=cache_size(-16384)&_pragma=journal_size_limit(67108864)"
	sqliteWriter  = "&_txlock=immediate&_pragma=synchronous(NORMAL)"
	sqliteDurable = "&_txlock=immediate&_pragma=synchronous(FULL)"
	sqliteReader  = "&_pragma=query_only(1)"
	sqliteConns   = 4 // readers
)

func sqliteDialect() dialect {
	return dialect{
		name:              "SQLite",
		migrations:        migrations("sqlite"),
		goose:             goose.DialectSQLite3,
		gooseLock:         func() ([]goose.ProviderOption, error) { return nil, nil }, // the lock of the file is enough
		orderedJoin:       "JOIN",
		purgeStatement:    purgeByIDStatement,
		emptyBytes:        "x''",
		hexExpr:           "HEX(?)",
		glob:              true,
		seeksByAccount:    true,
		ownedTables:       "objects p JOIN objects o ON o.owner = p.uid AND o.account_id + 0 = p.account_id",
		concatBytes:       func(columns ...string) string { return "CAST(" + strings.Join(columns, " || ") + " AS BLOB)" },
		singleWriter:      true,
		priorityChunkSize: 64,
		lookup:            sqliteLookup,
		upsert:            sqliteUpsert,
		remove:            sqliteRemove,
		insert:            insertValues,
		onConflictUpdate:  onConflictClause,
		onConflictAdd:     onConflictAddClause,
		size:              sqliteSize,
		translateError:    translateSQLiteError,
		isRetryable:       func(error) bool { return false },
		isUniqueViolation: isSQLiteUniqueViolation,
		prepare:           sqlitePrepare,
	}
}

func connectSQLite(ctx context.Context, s *Store, cfg Config) error {
	s.dialect = sqliteDialect()
	path := strings.TrimPrefix(strings.TrimPrefix(cfg.URL, "sqlite:"), "//")
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return vedette.Errorf(vedette.Invalid, "the database URL must name a file, as in sqlite:/var/lib/vedette/vedette.db")
	}
	unlock, err := lockDatabaseFile(path)
	if err != nil {
		return err
	}
	s.cleanup = append(s.cleanup, unlock)
	// A path may contain characters that are special in URLs, for example "?" and "%".
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + sqlitePragmas
	s.db, err = sql.Open("sqlite", dsn+sqliteWriter)
	if err != nil {
		return err
	}
	s.migrator = s.db
	s.db.SetMaxOpenConns(1)
	s.cleanup = append(s.cleanup, s.db.Close)
	s.durable, err = sql.Open("sqlite", dsn+sqliteDurable)
	if err != nil {
		return err
	}
	s.durable.SetMaxOpenConns(1)
	s.cleanup = append(s.cleanup, s.durable.Close)
	s.reader, err = sql.Open("sqlite", dsn+sqliteReader)
	if err != nil {
		return err
	}
	s.reader.SetMaxOpenConns(sqliteConns)
	s.reader.SetMaxIdleConns(sqliteConns)
	s.cleanup = append(s.cleanup, s.reader.Close)
	return nil
}

// lockDatabaseFile creates the file with mode 0600, whatever the caller's umask is, and locks it
// against a second process: two servers with one file would both believe that they alone serve its
// accounts.
func lockDatabaseFile(path string) (func() error, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fileError("create the directory of", path, err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fileError("lock", path, err)
	}
	if err := lockFile(lock); err != nil {
		return nil, errors.Join(vedette.Errorf(vedette.Conflict,
			"another process uses the database file %s: stop it, or give this server a file of its own (several servers can share PostgreSQL or MySQL, but not SQLite): %w", path, err), lock.Close())
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(fileError("open", path, err), lock.Close())
	}
	return lock.Close, file.Close()
}

func fileError(action, path string, err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return vedette.Errorf(vedette.Invalid, "cannot %s the database file %s: %w: set dataDir to a directory in which the server may write", action, path, err)
	}
	return vedette.Errorf(vedette.Unavailable, "cannot %s the database file %s: %w", action, path, err)
}

func sqliteSize(ctx context.Context, db *sql.DB) (int64, error) {
	var pages, free, size int64
	err := db.QueryRowContext(ctx,
		`SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size`).Scan(&pages, &free, &size)
	return (pages - free) * size, err
}

const (
	upsertHead = `INSERT INTO objects (account_id, kind_id, namespace, name, labelset, stored, uid, version, application, cluster, owner, attributes, head, body) VALUES `
	upsertRow  = `(?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	upsertTail = ` ON CONFLICT (account_id, kind_id, namespace, name) DO UPDATE SET labelset = excluded.labelset, stored = excluded.stored,
		uid = excluded.uid, version = excluded.version, application = excluded.application, cluster = excluded.cluster, owner = excluded.owner,
		attributes = excluded.attributes, head = excluded.head, body = excluded.body`
)

const sqliteRows = 32 // per upsert

func sqlitePrepare(ctx context.Context, s *Store) error {
	var upserts, lookups []string
	for _, n := range statementSizes {
		if n <= sqliteRows {
			upserts = append(upserts, sqliteUpsertStatement(n))
		}
		lookups = append(lookups, sqliteLookupStatement(n))
	}
	// These run in each operation, and parsing them takes as long as executing them.
	lookups = append(lookups, selectBaseline, selectAccount)
	d := sqliteDialect()
	upserts = append(upserts, selectTerm,
		insertStatement("operations", operationColumns, 1, d.onConflictUpdate(wherePending, operationEndColumns)))
	if err := s.writeStatements.prepare(ctx, s.db, upserts...); err != nil {
		return err
	}
	// These precede an effect in a cluster: after a power failure no id may be accepted again,
	// and no task may repeat a step.
	if err := s.writeStatements.prepare(ctx, s.durable, beginOperationStatement, insertTaskStatement, saveTaskStatement,
		acquireTaskStatement); err != nil {
		return err
	}
	return s.readStatements.prepare(ctx, s.reader, lookups...)
}

func sqliteUpsertStatement(n int) string { return upsertHead + valueRows(upsertRow, n) + upsertTail }

func sqliteLookupStatement(n int) string {
	return `WITH k (kind_id, namespace, name) AS (VALUES ` + valueRows("(?,?,?)", n) + `)
		SELECT ` + lookupColumns + ` FROM k CROSS JOIN objects o ON o.account_id = ? AND o.kind_id = k.kind_id AND o.namespace = k.namespace AND o.name = k.name
		LEFT JOIN labelsets l ON l.id = o.labelset`
}

// sqliteUpsert ignores cancellation, which the transaction checks: the driver would start a
// goroutine per statement to watch the context.
func sqliteUpsert(ctx context.Context, tx *transaction, accountID int64, rows []objectRow) error {
	ctx = context.WithoutCancel(ctx)
	for len(rows) > 0 {
		n := largestSizeWithin(len(rows), sqliteRows)
		if err := tx.execPrepared(ctx, sqliteUpsertStatement(n), upsertArgs(accountID, toMicros(tx.now), rows[:n])...); err != nil {
			return fmt.Errorf("upsert %d rows: %w", n, err)
		}
		rows = rows[n:]
	}
	return nil
}

func upsertArgs(account, now int64, rows []objectRow) []any {
	args := make([]any, 0, len(rows)*14)
	for i := range rows {
		r := &rows[i]
		args = append(args, account, r.kindID, r.namespace, r.name, r.labelset, now, r.uid, r.version, r.application, r.cluster, r.owner,
			r.attributes, r.head, r.body)
	}
	return args
}

// lookupColumns include the first attributes.PrefixBytes of the attributes.
const lookupColumns = `o.kind_id, o.namespace, o.name, o.uid, o.version, o.labelset, COALESCE(l.hash, 0), o.application, o.cluster, SUBSTR(o.attributes, 1, 2)`

// sqliteLookup joins a list of keys with the rows. If there are fewer keys than the statement has,
// the last one is repeated, and so is its row, which is skipped then.
func sqliteLookup(ctx context.Context, s *Store, accountID int64, keys []rowKey, found func(storedRow)) error {
	ctx = context.WithoutCancel(ctx)
	var last rowKey
	once := func(r storedRow) {
		if r.rowKey != last {
			found(r)
		}
		last = r.rowKey
	}
	for len(keys) > 0 {
		n := smallestSizeFor(len(keys))
		args := make([]any, 0, n*3+1)
		for i := range n {
			k := keys[min(i, len(keys)-1)]
			args = append(args, k.kindID, k.namespace, k.name)
		}
		if err := s.queryEach(ctx, scanStored(once), sqliteLookupStatement(n), append(args, accountID)...); err != nil {
			return fmt.Errorf("look up %d keys: %w", n, err)
		}
		keys = keys[min(n, len(keys)):]
	}
	return nil
}

// preparedQuery is a querier that runs a prepared statement, whatever the query.
type preparedQuery struct{ *sql.Stmt }

func (p preparedQuery) QueryContext(ctx context.Context, _ string, args ...any) (*sql.Rows, error) {
	return p.Stmt.QueryContext(ctx, args...)
}

func scanStored(found func(storedRow)) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var r storedRow
		var prefix sql.RawBytes // of the attributes
		if err := rows.Scan(&r.kindID, &r.namespace, &r.name, &r.uid, &r.version, &r.labelset, &r.hash, &r.application, &r.cluster,
			&prefix); err != nil {
			return err
		}
		r.managed = attributes.IsManaged(prefix)
		found(r)
		return nil
	}
}

func valueRows(row string, n int) string {
	return strings.TrimSuffix(strings.Repeat(row+",", n), ",")
}

func sqliteRemove(ctx context.Context, tx *transaction, accountID int64, keys []rowKey) error {
	return removeByNamespace(ctx, tx, `DELETE FROM objects`, accountID, keys)
}

// removeByNamespace deletes rows by name, with one statement for each run of keys that share kind
// and namespace. The conditions are appended to the statement.
func removeByNamespace(ctx context.Context, tx *transaction, statement string, accountID int64, keys []rowKey) error {
	for _, run := range groupByNamespace(keys) {
		for len(run) > 0 {
			n := min(len(run), 256)
			args := []any{accountID, run[0].kindID, run[0].namespace}
			for _, k := range run[:n] {
				args = append(args, k.name)
			}
			if _, err := tx.exec(ctx, statement+` WHERE account_id = ? AND kind_id = ? AND namespace = ? AND name IN (`+placeholders(n)+`)`,
				args...); err != nil {
				return fmt.Errorf("delete %d rows: %w", n, err)
			}
			run = run[n:]
		}
	}
	return nil
}

// onConflictClause is onConflictUpdate of PostgreSQL and SQLite.
func onConflictClause(where string, columns []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = excluded." + c
	}
	return " ON CONFLICT (id) DO UPDATE SET " + strings.Join(set, ", ") + " WHERE " + where
}

// onConflictAddClause is onConflictAdd of PostgreSQL and SQLite.
func onConflictAddClause(table string, key, columns []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = " + table + "." + c + " + excluded." + c
	}
	return " ON CONFLICT (" + strings.Join(key, ", ") + ") DO UPDATE SET " + strings.Join(set, ", ")
}

// insertValues inserts rows by VALUES lists.
func insertValues(ctx context.Context, tx *transaction, table string, columns []columnSpec, rows [][]any, conflictClause string) error {
	for len(rows) > 0 {
		n := min(len(rows), 256)
		args := make([]any, 0, n*len(columns))
		for _, r := range rows[:n] {
			args = append(args, r...)
		}
		if _, err := tx.exec(ctx, insertStatement(table, columns, n, conflictClause), args...); err != nil {
			return fmt.Errorf("insert %d rows into %s: %w", n, table, err)
		}
		rows = rows[n:]
	}
	return nil
}

func insertStatement(table string, columns []columnSpec, rows int, conflictClause string) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return `INSERT INTO ` + table + ` (` + strings.Join(names, ", ") + `) VALUES ` + valueRows("("+placeholders(len(columns))+")",
		rows) + conflictClause
}
