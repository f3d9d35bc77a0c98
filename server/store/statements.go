package store

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

func (s statements) prepare(ctx context.Context, db *sql.DB, queries ...string) error {
	for _, query := range queries {
		stmt, err := db.PrepareContext(ctx, query) //nolint:sqlclosecheck // close closes all of them
		if err != nil {
			return fmt.Errorf("prepare a statement: %w", err)
		}
		s[query] = stmt
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

// statementSizes are the numbers of rows that statements write, so that there are few different
// statements.
var statementSizes = []int{128, 32, 8, 2, 1}

// largestSizeWithin returns the largest statement size up to both n and limit.
func largestSizeWithin(n, limit int) int {
	for _, size := range statementSizes {
		if size <= n && size <= limit {
			return size
		}
	}
	return 1
}

// smallestSizeFor returns the smallest statement size for n rows, or the largest size of all if n
// is larger.
func smallestSizeFor(n int) int {
	for i := len(statementSizes) - 1; i > 0; i-- {
		if statementSizes[i] >= n {
			return statementSizes[i]
		}
	}
	return statementSizes[0]
}
