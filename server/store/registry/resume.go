package registry

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// An agent that acquires an account goes on with its feeds in most cases, and reports them live a moment later. To write each of them
// as pending, and then as live again, would be most of what the database does when a server ends, and more with each kind. So the
// account's row says that its feeds are pending: in the term resumed_term. How fresh they are is in its row of table freshness
// (docs/decisions/0202).

// IsResumed is the condition that the stored state of a live feed does not count, for queries that call the accounts "a".
const IsResumed = `a.resumed_term = a.term`

// The state of a feed and its message as readers see them, for queries that call the feeds "f" and the accounts "a".
const (
	isShownPending = IsResumed + ` AND f.state IN ('live', 'syncing')`
	ShownState     = `CASE WHEN ` + isShownPending + ` THEN 'pending' ELSE f.state END`
	ShownMessage   = `CASE WHEN ` + isShownPending + ` THEN '' ELSE f.message END`
)

// EndResumptions makes the states of accounts' feeds count that are stored. The caller has locked the accounts, and knows that these
// states are right.
func EndResumptions(ctx context.Context, tx *sqldb.Tx, ids []int64) error {
	in := tx.Dialect.In("id", ids)
	_, err := tx.Exec(ctx, sqldb.Named("end resumptions", `UPDATE accounts SET resumed_term = -1 WHERE `+in.SQL), in.Args...)
	return err
}

// MakePending stores the states of an account's feeds as readers see them, if the account is resumed. The caller has locked it.
func MakePending(ctx context.Context, tx *sqldb.Tx, id int64) error {
	n, err := tx.Exec(ctx, sqldb.Named("end a resumption", `UPDATE accounts SET resumed_term = -1 WHERE id = ? AND resumed_term = term`), id)
	if err != nil || n == 0 {
		return err
	}
	return makePending(ctx, tx, []int64{id})
}

// MakeManyPending is MakePending for accounts all of which are resumed.
func MakeManyPending(ctx context.Context, tx *sqldb.Tx, ids []int64) error {
	if err := EndResumptions(ctx, tx, ids); err != nil {
		return err
	}
	return makePending(ctx, tx, ids)
}

// makePending makes live feeds pending. The state is assigned last, because MySQL uses it as it is by then.
func makePending(ctx context.Context, tx *sqldb.Tx, ids []int64) error {
	in := tx.Dialect.In("account_id", ids)
	_, err := tx.Exec(ctx, sqldb.Named("make live feeds pending", `UPDATE feeds SET seen = CASE WHEN state = 'live' AND seen < `+freshnessOfFeed+` THEN `+freshnessOfFeed+
		` ELSE seen END, message = '', state = ? WHERE `+in.SQL+` AND state IN (?, ?)`),
		slices.Concat([]any{string(vedette.FeedPending)}, in.Args, []any{string(vedette.FeedLive), string(vedette.FeedSyncing)})...)
	return err
}
