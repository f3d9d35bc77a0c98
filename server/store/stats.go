package store

import (
	"context"
	"database/sql"

	"github.com/vedette-io/vedette"
)

// Stats is the size of the database.
type Stats struct {
	Accounts int64
	Objects  int64 // as feeds count them
	Labels   int64 // label sets, including unused ones that are not collected yet
	Bytes    int64 // of all tables and indexes
}

// Stats returns the size of the database.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	var st Stats
	err := s.queryOne(ctx, scanInto(&st.Accounts, &st.Objects, &st.Labels),
		`SELECT (SELECT COUNT(*) FROM accounts WHERE name IS NOT NULL), (SELECT COALESCE(SUM(objects), 0) FROM feeds), (SELECT COUNT(*) FROM labelsets)`)
	if err == nil {
		err = s.withTimeout(ctx, func(ctx context.Context) (err error) {
			st.Bytes, err = s.dialect.size(ctx, s.reader)
			return err
		})
	}
	return st, s.wrapError("measure the database", err)
}

// Application is an application in one account, by the monikers of its objects.
type Application struct {
	Name    string
	Account vedette.AccountName
	Objects int64
}

// Applications returns all applications, ordered by name and account.
func (s *Store) Applications(ctx context.Context) ([]Application, error) {
	var applications []Application
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var a Application
		var account string
		err := rows.Scan(&a.Name, &account, &a.Objects)
		a.Account = vedette.AccountName(account)
		applications = append(applications, a)
		return err
	}, `SELECT o.application, a.name, COUNT(*) FROM objects o JOIN accounts a ON a.id = o.account_id
		WHERE a.name IS NOT NULL GROUP BY o.application, a.name ORDER BY o.application, a.name`)
	return applications, s.wrapError("read the applications", err)
}
