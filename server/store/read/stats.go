package read

import (
	"context"

	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Stats is the size of the database.
type Stats struct {
	Accounts int64
	Objects  int64 // as feeds count them
	Labels   int64 // label sets, including unused ones that are not collected yet
	Bytes    int64 // of all tables and indexes
}

// Stats returns the size of the database.
func (r *Reader) Stats(ctx context.Context) (Stats, error) {
	var st Stats
	err := r.db.QueryOneAnywhere(ctx, sqldb.ScanInto(&st.Accounts, &st.Objects, &st.Labels),
		sqldb.Named("count rows", `SELECT (SELECT COUNT(*) FROM accounts WHERE name IS NOT NULL), (SELECT COALESCE(SUM(objects), 0) FROM feeds), (SELECT COUNT(*) FROM labelsets)`))
	if err == nil {
		st.Bytes, err = r.db.Size(ctx)
	}
	return st, r.db.WrapError("measure the database", err)
}
