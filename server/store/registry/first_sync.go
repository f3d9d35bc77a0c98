package registry

import (
	"context"
	"database/sql"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
)

// Sync is an account with its first synchronization.
type Sync struct {
	Account vedette.AccountName
	Term    vedette.Term
	FirstSync
}

// AccountSyncs returns the first synchronizations of those of the accounts that exist, or of all if none is given, ordered by name. It
// reads much less than Accounts.
func (r *Registry) AccountSyncs(ctx context.Context, names ...vedette.AccountName) ([]Sync, error) {
	syncs := []Sync{}
	where, args := AccountCondition(names)
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var name string
		var term, settled, complete int64
		err := rows.Scan(&name, &term, &settled, &complete)
		syncs = append(syncs, Sync{vedette.AccountName(name), vedette.Term(term), FirstSync{sqldb.FromMicros(settled),
			sqldb.FromMicros(complete)}})
		return err
	}, sqldb.Named("read first synchronizations", `SELECT a.name, a.term, a.settled, a.complete FROM accounts a WHERE a.name IS NOT NULL AND `+where+` ORDER BY a.name`), args...)
	return syncs, r.db.WrapError("read how far the accounts are synchronized", err)
}

// whereSettled is the condition that no feed of an account waits for its first snapshot. It repeats what the caller
// has found, because feeds may have been declared since then.
const whereSettled = ` AND EXISTS (SELECT 1 FROM feeds WHERE feeds.account_id = accounts.id)
	AND NOT EXISTS (SELECT 1 FROM feeds WHERE feeds.account_id = accounts.id AND (feeds.state IN (?, ?) OR feeds.state = 'live' AND accounts.resumed_term = accounts.term))`

// MarkSettled records that an account is settled, and complete if that is true too. It does nothing if another agent
// has taken the account, or if a feed waits. What is recorded stays until the account is removed.
func (r *Registry) MarkSettled(ctx context.Context, account vedette.AccountName, term vedette.Term, complete bool) error {
	now := sqldb.ToMicros(time.Now())
	columns, args := `settled = CASE WHEN settled > 0 THEN settled ELSE ? END`, []any{now}
	if complete {
		columns, args = columns+`, complete = CASE WHEN complete > 0 THEN complete ELSE ? END`, append(args, now)
	}
	args = append(args, string(account), int64(term), string(vedette.FeedPending), string(vedette.FeedSyncing))
	_, err := r.db.ExecWrite(ctx, sqldb.Named("record a first synchronization", `UPDATE accounts SET `+columns+` WHERE name = ? AND term = ?`+whereSettled), args...)
	r.versions.PublishOutcome(versions.AccountEffect(account, false), err)
	return r.db.WrapError("record that account "+string(account)+" is synchronized", err)
}

// unsettle is the first step of detach. It commits before the data disappears, so that requests go to the upstream Clouddriver first.
func (r *Registry) unsettle(ctx context.Context, account vedette.AccountName, where string, args ...any) error {
	n, err := r.db.ExecWrite(ctx, sqldb.Named("clear a first synchronization", `UPDATE accounts SET settled = 0, complete = 0 WHERE settled > 0 AND `+where), args...)
	if n > 0 || err != nil {
		r.versions.PublishOutcome(versions.AccountEffect(account, false), err)
	}
	return err
}
