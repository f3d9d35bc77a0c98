package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// statements holds prepared statements by their queries: on SQLite and MySQL those that each
// commit uses, because parsing 50 rows of parameters takes longer than writing them, and on SQLite
// also those of each operation. pgx prepares statements itself. They are prepared when the store
// is opened: to prepare one within a transaction needs a second connection, and transactions that
// wait for each other's connections would deadlock.
type statements map[string]*sql.Stmt

// Prepare prepares statements on the connections of a pool.
func (d *DB) Prepare(ctx context.Context, pool Pool, all ...Statement) error {
	db, prepared := d.db, d.writeStatements
	switch pool {
	case ReadPool:
		db, prepared = d.Reads, d.readStatements
	case DurablePool:
		db = d.durable
	}
	for _, statement := range all {
		stmt, err := db.PrepareContext(ctx, statement.SQL) //nolint:sqlclosecheck // close closes all of them
		if err != nil {
			return fmt.Errorf("prepare: %w", statement.wrap(err))
		}
		prepared[statement.SQL] = stmt
	}
	return nil
}

// close closes the statements. It must be called before the database is closed.
func (s statements) close() error {
	var errs []error
	for _, prepared := range s {
		errs = append(errs, prepared.Close())
	}
	return errors.Join(errs...)
}

// Statement is a statement of SQL with a name, which is in its errors. Its parameters are written as "?".
type Statement struct {
	Name string
	SQL  string
}

// Named returns a statement. Names say what a statement does, as in "find label sets".
func Named(name, query string) Statement { return Statement{name, query} }

// String prints the statement with its name.
func (s Statement) String() string { return s.Name + ": " + s.SQL }

// wrap adds the name to an error. That there is no row is an answer, and no error of the statement.
func (s Statement) wrap(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return fmt.Errorf("%s: %w", s.Name, err)
}

// Row is the only row of a statement.
type Row struct {
	row       *sql.Row
	statement Statement
}

// Scan reads the columns. The error is sql.ErrNoRows if there is no row.
func (r Row) Scan(dest ...any) error { return r.statement.wrap(r.row.Scan(dest...)) }
