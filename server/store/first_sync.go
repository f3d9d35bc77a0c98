package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/vedette-io/vedette"
)

// AccountSync is an account with its first synchronization.
type AccountSync struct {
	Account vedette.AccountName
	Term    vedette.Term
	FirstSync
}

// AccountSyncs returns the first synchronizations of all accounts, ordered by name. It reads much less than Accounts.
func (s *Store) AccountSyncs(ctx context.Context) ([]AccountSync, error) {
	syncs := []AccountSync{}
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var name string
		var term, settled, complete int64
		err := rows.Scan(&name, &term, &settled, &complete)
		syncs = append(syncs, AccountSync{vedette.AccountName(name), vedette.Term(term), FirstSync{fromMicros(settled), fromMicros(complete)}})
		return err
	}, `SELECT name, term, settled, complete FROM accounts WHERE name IS NOT NULL ORDER BY name`)
	return syncs, s.wrapError("read how far the accounts are synchronized", err)
}

// whereSettled is the condition that no feed of an account waits for its first snapshot. It repeats what the caller
// has found, because feeds may have been declared since then.
const whereSettled = ` AND EXISTS (SELECT 1 FROM feeds WHERE feeds.account_id = accounts.id)
	AND NOT EXISTS (SELECT 1 FROM feeds WHERE feeds.account_id = accounts.id AND feeds.state IN (?, ?))`

// MarkSettled records that an account is settled, and complete if that is true too. It does nothing if another agent
// has taken the account, or if a feed waits. What is recorded stays until the account is removed.
func (s *Store) MarkSettled(ctx context.Context, account vedette.AccountName, term vedette.Term, complete bool) error {
	now := toMicros(time.Now())
	columns, args := `settled = CASE WHEN settled > 0 THEN settled ELSE ? END`, []any{now}
	if complete {
		columns, args = columns+`, complete = CASE WHEN complete > 0 THEN complete ELSE ? END`, append(args, now)
	}
	args = append(args, string(account), int64(term), string(vedette.FeedPending), string(vedette.FeedSyncing))
	_, err := s.execWrite(ctx, `UPDATE accounts SET `+columns+` WHERE name = ? AND term = ?`+whereSettled, args...)
	s.versions.publishOutcome(accountEffect(account, false), err)
	return s.wrapError("record that account "+string(account)+" is synchronized", err)
}

// unsettle is the first step of detach. It commits before the data disappears, so that requests go to the upstream Clouddriver first.
func (s *Store) unsettle(ctx context.Context, account vedette.AccountName, where string, args ...any) error {
	n, err := s.execWrite(ctx, `UPDATE accounts SET settled = 0, complete = 0 WHERE settled > 0 AND `+where, args...)
	if n > 0 || err != nil {
		s.versions.publishOutcome(accountEffect(account, false), err)
	}
	return err
}
