package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// LastSeen means that an account's agent was connected at a time, and that its live feeds were
// complete then.
type LastSeen struct {
	Account vedette.AccountName
	Term    vedette.Term // in which the agent holds the account; ignored if the account has another term
	At      time.Time    // zero if no feed is live
	// Complete is up to when the feeds were complete that fail and have a mark. It is for their rows, because a term that
	// ends has no other place for it; zero to leave them.
	Complete time.Time
	// HasEnded means that the agent does not hold the account any more. Nothing follows, so readers are told of the change.
	HasEnded bool
}

// RecordLastSeen stores one LastSeen per account. Each account has one row of its own for it, so
// that little is written while nothing changes, and no account is locked, except for those whose feeds fail; readers join the rows.
// When a term ends, FlushFeedLastSeen copies the time to the account's feeds.
func (r *Registry) RecordLastSeen(ctx context.Context, entries []LastSeen) error {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b LastSeen) int { return cmp.Compare(a.Account, b.Account) })
	live := slices.DeleteFunc(slices.Clone(sorted), func(entry LastSeen) bool { return entry.At.IsZero() })
	for chunk := range slices.Chunk(live, 250) {
		rows := make([][]any, len(chunk))
		for i, entry := range chunk {
			rows[i] = []any{string(entry.Account), int64(entry.Term), sqldb.ToMicros(entry.At)}
		}
		err := r.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
			return sqldb.RecordSeen(ctx, tx, rows)
		})
		if err != nil {
			return r.db.WrapError(fmt.Sprintf("record the freshness of %d accounts", len(chunk)), err)
		}
	}
	var errs []error // an account that is locked must not keep the others from being recorded
	for _, entry := range sorted {
		if err := r.recordComplete(ctx, entry); err != nil {
			errs = append(errs, r.db.WrapError("record the freshness of account "+string(entry.Account), err))
		}
		if ctx.Err() != nil {
			break
		}
		if entry.HasEnded {
			r.versions.AccountLog.Note(entry.Account)
		}
	}
	return errors.Join(errs...)
}

// recordComplete stores up to when the failing feeds of an account were complete.
func (r *Registry) recordComplete(ctx context.Context, entry LastSeen) error {
	if entry.Complete.IsZero() {
		return nil
	}
	defer r.versions.AccountLog.Note(entry.Account)
	err := r.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		id, err := LockAccountRow(ctx, tx, entry.Account, entry.Term)
		if err != nil {
			return err
		}
		at := sqldb.ToMicros(entry.Complete)
		_, err = tx.Exec(ctx, sqldb.Named("record until when feeds were complete", `UPDATE feeds SET seen = ? WHERE account_id = ? AND state = ? AND mark <> '' AND seen < ?`), at, id,
			string(vedette.FeedFailing), at)
		return err
	})
	if errors.Is(err, ErrTerm) || errors.Is(err, ErrNoAccount) {
		return nil // its next cacher knows more
	}
	return err
}

// JoinFreshness is for queries that call the accounts "a".
const JoinFreshness = ` LEFT JOIN freshness fr ON fr.id = a.name AND fr.term = a.term `

// FlushFeedLastSeen copies LastSeen to the rows of live feeds, before they stop being live or the
// account's term ends. The condition is on feeds.
func FlushFeedLastSeen(ctx context.Context, tx *sqldb.Tx, where string, args ...any) error {
	const fromFreshness = `FROM accounts a JOIN freshness fr ON fr.id = a.name AND fr.term = a.term WHERE a.id = feeds.account_id`
	_, err := tx.Exec(ctx, sqldb.Named("update the freshness of feeds", `UPDATE feeds SET seen = (SELECT fr.seen `+fromFreshness+`) WHERE state = 'live' AND `+where+
		` AND EXISTS (SELECT 1 `+fromFreshness+` AND fr.seen > feeds.seen)`), args...)
	if err != nil {
		return err
	}
	return nil
}

// flushAccountLastSeen copies LastSeen to the rows of accounts, on which the condition is.
func flushAccountLastSeen(ctx context.Context, tx *sqldb.Tx, where string, args ...any) error {
	const fromFreshness = `FROM freshness fr WHERE fr.id = accounts.name AND fr.term = accounts.term`
	_, err := tx.Exec(ctx, sqldb.Named("update the freshness of accounts", `UPDATE accounts SET last_seen = (SELECT fr.seen `+fromFreshness+`) WHERE `+where+` AND EXISTS (SELECT 1 `+
		fromFreshness+` AND fr.seen > accounts.last_seen)`), args...)
	if err != nil {
		return err
	}
	return nil
}

// flushAndDeleteLastSeen copies LastSeen to the rows of an account and its feeds, and deletes it,
// before the account loses its name.
func flushAndDeleteLastSeen(ctx context.Context, tx *sqldb.Tx, id int64, account vedette.AccountName) error {
	if err := FlushFeedLastSeen(ctx, tx, `account_id = ?`, id); err != nil {
		return err
	}
	if err := flushAccountLastSeen(ctx, tx, `id = ?`, id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, sqldb.Named("delete the freshness of an account", `DELETE FROM freshness WHERE id = ?`), string(account))
	return err
}
