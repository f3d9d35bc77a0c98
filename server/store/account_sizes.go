package store

import (
	"context"
	"database/sql"

	"github.com/vedette-io/vedette"
)

// AccountSizes returns how many objects are stored of each account that has feeds. Accounts that are
// removed or retired have no name, and are left out.
func (s *Store) AccountSizes(ctx context.Context) (map[vedette.AccountName]int64, error) {
	sizes := map[vedette.AccountName]int64{}
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var name vedette.AccountName
		var objects int64
		err := rows.Scan(&name, &objects)
		sizes[name] = objects
		return err
	}, `SELECT a.name, SUM(f.objects) FROM feeds f JOIN accounts a ON a.id = f.account_id WHERE a.name IS NOT NULL GROUP BY a.name`)
	return sizes, s.wrapError("read the sizes of accounts", err)
}
