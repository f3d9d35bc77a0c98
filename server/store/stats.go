package store

import (
	"context"
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
