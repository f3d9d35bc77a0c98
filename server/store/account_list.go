package store

import (
	"context"
	"database/sql"

	"github.com/vedette-io/vedette"
)

const selectAccountNames = `SELECT name FROM accounts WHERE name IS NOT NULL ORDER BY name`

// AccountNames returns the names of all accounts, in order. It reads much less than Accounts.
func (s *Store) AccountNames(ctx context.Context) ([]vedette.AccountName, error) {
	names := []vedette.AccountName{}
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, vedette.AccountName(name))
		return err
	}, selectAccountNames)
	return names, s.wrapError("read the names of the accounts", err)
}
