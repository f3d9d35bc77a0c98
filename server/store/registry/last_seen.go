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

// RecordLastSeen stores one LastSeen per account, in a row of its own, so that no account is locked, except for those whose feeds
// fail; readers join the rows. The accounts do not follow RecordSharedFreshness from then on.
// When a term ends, resumeFreshness takes the time over into the next one.
func (r *Registry) RecordLastSeen(ctx context.Context, entries []LastSeen) error {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b LastSeen) int { return cmp.Compare(a.Account, b.Account) })
	live := slices.DeleteFunc(slices.Clone(sorted), func(entry LastSeen) bool { return entry.At.IsZero() })
	for chunk := range slices.Chunk(live, seenChunkSize) {
		if err := r.recordSeen(ctx, chunk, ""); err != nil {
			return err
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

// seenChunkSize is the number of rows in one transaction.
const seenChunkSize = 250

// recordSeen stores the rows of accounts, which follow a process; empty for none.
func (r *Registry) recordSeen(ctx context.Context, entries []LastSeen, process string) error {
	rows := make([]sqldb.Seen, len(entries))
	for i, entry := range entries {
		rows[i] = sqldb.Seen{ID: string(entry.Account), Term: int64(entry.Term), At: sqldb.ToMicros(entry.At), Process: process}
	}
	err := r.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error { return sqldb.RecordSeen(ctx, tx, rows) })
	return r.db.WrapError(fmt.Sprintf("record the freshness of %d accounts", len(rows)), err)
}

// RecordSharedFreshness stores up to when all accounts are complete that follow this process, in one row, and lets others follow it too,
// which are as fresh. Those that become less fresh must be stored by RecordLastSeen before the next call. So nearly nothing is
// written while nothing changes. An account follows in one term.
func (r *Registry) RecordSharedFreshness(ctx context.Context, at time.Time, joining []LastSeen) error {
	err := r.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		return sqldb.RecordProcessSeen(ctx, tx, sqldb.Seen{ID: r.process, At: sqldb.ToMicros(at)})
	})
	if err != nil {
		return r.db.WrapError("record the freshness of the server's accounts", err)
	}
	sorted := slices.SortedFunc(slices.Values(joining), func(a, b LastSeen) int { return cmp.Compare(a.Account, b.Account) })
	for chunk := range slices.Chunk(sorted, seenChunkSize) {
		if err := r.recordSeen(ctx, chunk, r.process); err != nil {
			return err
		}
	}
	return nil
}

// deleteProcessFreshness deletes the rows of processes that no account follows any more. A process that runs writes its row again.
func deleteProcessFreshness(ctx context.Context, tx *sqldb.Tx) error {
	_, err := tx.Exec(ctx, sqldb.Named("delete the freshness of processes", `DELETE FROM process_freshness WHERE NOT EXISTS (SELECT 1 FROM freshness fr
		JOIN accounts a ON a.name = fr.id AND a.term = fr.term WHERE fr.process = process_freshness.id AND fr.followed = fr.term)`))
	return err
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

// JoinFreshness is for queries that call the accounts "a". Freshness is the time that they then read.
const (
	JoinFreshness = ` LEFT JOIN ` + freshnessOfAccount
	Freshness     = `COALESCE(` + laterFreshness + `, 0)`
)

const (
	// freshnessOfAccount joins the row of an account, and the row of the process that it follows.
	freshnessOfAccount = `freshness fr ON fr.id = a.name AND fr.term = a.term LEFT JOIN process_freshness pf ON pf.id = fr.process AND fr.followed = fr.term `
	// freshnessOfRow is for queries that lock the row of an account, because a lock must not concern what is joined.
	freshnessOfRow = `COALESCE((SELECT ` + laterFreshness + ` FROM freshness fr LEFT JOIN process_freshness pf ON pf.id = fr.process AND fr.followed = fr.term WHERE fr.id = a.name AND fr.term = a.term), 0)`
	// freshnessOfFeed is for statements that write feeds.
	freshnessOfFeed = `COALESCE((SELECT ` + laterFreshness + ` FROM accounts a JOIN ` + freshnessOfAccount + `WHERE a.id = feeds.account_id), 0)`
	laterFreshness  = `CASE WHEN pf.seen > fr.seen THEN pf.seen ELSE fr.seen END`
)

// FlushFeedLastSeen copies LastSeen to the rows of live feeds, before they stop being live. The condition is on feeds.
func FlushFeedLastSeen(ctx context.Context, tx *sqldb.Tx, where string, args ...any) error {
	const fromFreshness = `FROM accounts a JOIN ` + freshnessOfAccount + `WHERE a.id = feeds.account_id`
	_, err := tx.Exec(ctx, sqldb.Named("update the freshness of feeds", `UPDATE feeds SET seen = (SELECT `+laterFreshness+` `+fromFreshness+`) WHERE state = 'live' AND `+where+
		` AND EXISTS (SELECT 1 `+fromFreshness+` AND `+laterFreshness+` > feeds.seen)`), args...)
	return err
}

// flushAccountLastSeen copies LastSeen to the rows of accounts, on which the condition is.
func flushAccountLastSeen(ctx context.Context, tx *sqldb.Tx, where string, args ...any) error {
	const fromFreshness = `FROM freshness fr LEFT JOIN process_freshness pf ON pf.id = fr.process AND fr.followed = fr.term WHERE fr.id = accounts.name AND fr.term = accounts.term`
	_, err := tx.Exec(ctx, sqldb.Named("update the freshness of accounts", `UPDATE accounts SET last_seen = (SELECT `+laterFreshness+` `+fromFreshness+`) WHERE `+where+` AND EXISTS (SELECT 1 `+
		fromFreshness+` AND `+laterFreshness+` > accounts.last_seen)`), args...)
	return err
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
