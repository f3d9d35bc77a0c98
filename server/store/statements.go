package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// statements keeps prepared the few texts that each commit uses, on SQLite and
// MySQL: their parsers take longer over 50 rows of parameters than their
// B-trees over the rows. On SQLite so are those of each operation. pgx does this by itself. They are prepared when the
// store is opened: within a transaction that would need a second connection,
// for which all could come to wait.
type statements map[string]*sql.Stmt

func (s statements) prepare(ctx context.Context, db *sql.DB, queries ...string) error {
	for _, query := range queries {
		stmt, err := db.PrepareContext(ctx, query)
		if err != nil {
			return fmt.Errorf("prepare a statement: %w", err)
		}
		s[query] = stmt
	}
	return nil
}

// close lets go of what is prepared. The database closes after it.
func (s statements) close() error {
	var errs []error
	for _, prepared := range s {
		errs = append(errs, prepared.Close())
	}
	return errors.Join(errs...)
}

// Rows are written by statements of these numbers of rows, so that there are
// few different texts.
var statementSizes = []int{128, 32, 8, 2, 1}

// largestSizeWithin returns the biggest number of rows that does not exceed n, nor most.
func largestSizeWithin(n, limit int) int {
	for _, size := range statementSizes {
		if size <= n && size <= limit {
			return size
		}
	}
	return 1
}

// smallestSizeFor returns the smallest number of rows that n fit into, and the biggest
// of all where they don't.
func smallestSizeFor(n int) int {
	for i := len(statementSizes) - 1; i > 0; i-- {
		if statementSizes[i] >= n {
			return statementSizes[i]
		}
	}
	return statementSizes[0]
}
