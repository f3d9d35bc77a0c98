package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/vedette-io/vedette"
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

func sqliteDialect() Dialect {
	return Dialect{
		Name:              SQLite,
		migrations:        migrations("sqlite"),
		goose:             goose.DialectSQLite3,
		purgeStatement:    purgeByIDStatement,
		SingleWriter:      true,
		insert:            InsertValues,
		OnConflictUpdate:  onConflictClause,
		hasNoLaterTerm:    "excluded.term >= freshness.term",
		size:              sqliteSize,
		translateError:    translateSQLiteError,
		isRetryable:       func(error) bool { return false },
		IsUniqueViolation: isSQLiteUniqueViolation,
	}
}

func connectSQLite(ctx context.Context, d *DB, cfg Config) error {
	d.Dialect = sqliteDialect()
	path, _ := FilePath(cfg.URL)
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return vedette.Errorf(vedette.Invalid, "the database URL must name a file, as in sqlite:/var/lib/vedette/vedette.db")
	}
	unlock, err := createDatabaseFile(path)
	if err != nil {
		return err
	}
	d.directory = filepath.Dir(path)
	d.cleanup = append(d.cleanup, unlock)
	// A path may contain characters that are special in URLs, for example "?" and "%".
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + sqlitePragmas
	d.db, err = sql.Open("sqlite", dsn+sqliteWriter)
	if err != nil {
		return err
	}
	d.migrator = d.db
	d.db.SetMaxOpenConns(1)
	d.cleanup = append(d.cleanup, d.db.Close)
	d.durable, err = sql.Open("sqlite", dsn+sqliteDurable)
	if err != nil {
		return err
	}
	d.durable.SetMaxOpenConns(1)
	d.cleanup = append(d.cleanup, d.durable.Close)
	d.Reads, err = sql.Open("sqlite", dsn+sqliteReader)
	if err != nil {
		return err
	}
	d.Reads.SetMaxOpenConns(sqliteConns)
	d.Reads.SetMaxIdleConns(sqliteConns)
	d.cleanup = append(d.cleanup, d.Reads.Close)
	return nil
}

// createDatabaseFile creates the file with mode 0600, whatever the caller's umask is, and locks it
// against a second process: two servers with one file would both believe that they alone serve its
// accounts.
func createDatabaseFile(path string) (unlock func() error, err error) {
	unlock, err = LockFile(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(fileError("open", path, err), unlock())
	}
	return unlock, file.Close()
}

// LockFile locks the file of a SQLite database, which need not exist, against all servers. The error is vedette.Conflict if
// another process uses it.
func LockFile(path string) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fileError("create the directory of", path, err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fileError("lock", path, err)
	}
	if err := lockFile(lock); err != nil {
		return nil, errors.Join(vedette.Errorf(vedette.Conflict,
			"another process uses the database file %s: stop it, or give this server a file of its own: %w", path, err), lock.Close())
	}
	return lock.Close, nil
}

// FilePath returns the file of a SQLite database, and whether a URL names one.
func FilePath(databaseURL string) (path string, isSQLite bool) {
	path, isSQLite = strings.CutPrefix(databaseURL, "sqlite:")
	return strings.TrimPrefix(path, "//"), isSQLite
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

// preparedQuery is a querier that runs a prepared statement, whatever the query.
type preparedQuery struct{ *sql.Stmt }

func (p preparedQuery) QueryContext(ctx context.Context, _ string, args ...any) (*sql.Rows, error) {
	return p.Stmt.QueryContext(ctx, args...)
}

// ValueRows repeats a row of a VALUES list.
func ValueRows(row string, n int) string {
	return strings.TrimSuffix(strings.Repeat(row+",", n), ",")
}

// onConflictClause is OnConflictUpdate of PostgreSQL and SQLite.
func onConflictClause(where string, columns []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = excluded." + c
	}
	return " ON CONFLICT (id) DO UPDATE SET " + strings.Join(set, ", ") + " WHERE " + where
}

// InsertValues inserts rows by VALUES lists.
func InsertValues(ctx context.Context, tx *Tx, table string, columns []Column, rows [][]any, conflictClause string) error {
	for len(rows) > 0 {
		n := min(len(rows), 256)
		args := make([]any, 0, n*len(columns))
		for _, r := range rows[:n] {
			args = append(args, r...)
		}
		if _, err := tx.Exec(ctx, InsertStatement(table, columns, n, conflictClause), args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// InsertStatement returns the statement that inserts a number of rows.
func InsertStatement(table string, columns []Column, rows int, conflictClause string) Statement {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return Named("insert into "+table, `INSERT INTO `+table+` (`+strings.Join(names, ", ")+`) VALUES `+
		ValueRows("("+Placeholders(len(columns))+")", rows)+conflictClause)
}
