package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// LastSeen means that an account's agent was connected at a time, and that its live feeds were
// complete then.
type LastSeen struct {
	Account vedette.AccountName
	Term    vedette.Term // in which the agent holds the account; ignored if the account has another term
	At      time.Time
}

// RecordLastSeen stores one LastSeen per account. Each account has one row of its own for it, so
// that little is written while nothing changes, and no account is locked; readers join the rows.
// When a term ends, flushFeedLastSeen copies the time to the account's feeds.
func (s *Store) RecordLastSeen(ctx context.Context, entries []LastSeen) error {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b LastSeen) int { return cmp.Compare(a.Account, b.Account) })
	for chunk := range slices.Chunk(sorted, 250) {
		rows := make([][]any, len(chunk))
		for i, entry := range chunk {
			rows[i] = []any{string(entry.Account), int64(entry.Term), toMicros(entry.At)}
		}
		err := s.writeLowPriority(ctx, func(ctx context.Context, tx *transaction) error {
			return tx.dialect.insert(ctx, tx, "freshness", []columnSpec{{"id", "text"}, {"term", "bigint"}, {"seen", "bigint"}}, rows,
				tx.dialect.onConflictUpdate("1 = 1", []string{"term", "seen"}))
		})
		if err != nil {
			return s.wrapError(fmt.Sprintf("record the freshness of %d accounts", len(chunk)), err)
		}
	}
	return nil
}

// joinFreshness is for queries that call the accounts "a".
const joinFreshness = ` LEFT JOIN freshness fr ON fr.id = a.name AND fr.term = a.term `

// flushFeedLastSeen copies LastSeen to the rows of live feeds, before they stop being live or the
// account's term ends. The condition is on feeds.
func flushFeedLastSeen(ctx context.Context, tx *transaction, where string, args ...any) error {
	const fromFreshness = `FROM accounts a JOIN freshness fr ON fr.id = a.name AND fr.term = a.term WHERE a.id = feeds.account_id`
	_, err := tx.exec(ctx, `UPDATE feeds SET seen = (SELECT fr.seen `+fromFreshness+`) WHERE state = 'live' AND `+where+
		` AND EXISTS (SELECT 1 `+fromFreshness+` AND fr.seen > feeds.seen)`, args...)
	if err != nil {
		return fmt.Errorf("update the freshness of feeds: %w", err)
	}
	return nil
}

// flushAccountLastSeen copies LastSeen to the rows of accounts, on which the condition is.
func flushAccountLastSeen(ctx context.Context, tx *transaction, where string, args ...any) error {
	const fromFreshness = `FROM freshness fr WHERE fr.id = accounts.name AND fr.term = accounts.term`
	_, err := tx.exec(ctx, `UPDATE accounts SET last_seen = (SELECT fr.seen `+fromFreshness+`) WHERE `+where+` AND EXISTS (SELECT 1 `+
		fromFreshness+` AND fr.seen > accounts.last_seen)`, args...)
	if err != nil {
		return fmt.Errorf("update the freshness of accounts: %w", err)
	}
	return nil
}

// flushAndDeleteLastSeen copies LastSeen to the rows of an account and its feeds, and deletes it,
// before the account loses its name.
func flushAndDeleteLastSeen(ctx context.Context, tx *transaction, id int64, account vedette.AccountName) error {
	if err := flushFeedLastSeen(ctx, tx, `account_id = ?`, id); err != nil {
		return err
	}
	if err := flushAccountLastSeen(ctx, tx, `id = ?`, id); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `DELETE FROM freshness WHERE id = ?`, string(account))
	return err
}
