package write

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/vedette-io/vedette/server/store/commit"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// limits restrict what agents may declare, so that none of them can fill the tables that all
// share. No known cluster comes near them.
//
// The ids of kinds have 32 bits and are never given to another kind, because servers remember what they have read: one that
// remembers an id for longer than it is free would store objects under another kind. So ids must not run out, however many
// kinds come and go, and what an agent declares is bounded. Ids of 16 bits would save about 6 bytes per object. Only the
// account's cacher numbers kinds, as its term proves. Kinds without a feed are deleted, see unusedKindTTL; declaring a feed
// checks in its transaction whether the row still exists.
type limits struct {
	feeds      int   // per account: the kinds, times the namespaces that the account is restricted to
	kinds      int   // per account
	namespaces int   // per account
	perAgent   int64 // kinds that the agent was the first to declare
	all        int64 // kinds of all agents
}

var defaultLimits = limits{feeds: 50_000, kinds: 5_000, namespaces: 10_000, perAgent: 10_000, all: 200_000}

// check rejects a declaration that is too large.
func (l limits) check(account vedette.AccountName, feeds []commit.DeclaredFeed) error {
	kinds, namespaces := map[vedette.Kind]bool{}, map[string]bool{}
	for _, f := range feeds {
		if !sqldb.IsValidText(f.Feed.Namespace, 63) || !sqldb.IsValidText(f.Feed.Kind.Name, 255) || !sqldb.IsValidText(f.Feed.Kind.Group, 255) {
			return vedette.Errorf(vedette.Invalid, "the feed %.300q cannot be stored: its kind or namespace is too long or not valid text",
				f.Feed.String())
		}
		kinds[f.Feed.Kind], namespaces[f.Feed.Namespace] = true, true
	}
	for _, c := range []struct {
		what         string
		count, limit int
	}{{"feeds", len(feeds), l.feeds}, {"kinds", len(kinds), l.kinds}, {"namespaces", len(namespaces), l.namespaces}} {
		if c.count > c.limit {
			return vedette.Errorf(vedette.Invalid,
				"account %s has %d %s, more than the limit of %d: restrict its kinds or namespaces in the agent's configuration", account, c.count,
				c.what, c.limit)
		}
	}
	return nil
}

// assignKindIDs inserts the kinds that have no id. It must not be called within a transaction,
// because SQLite has one writer.
func (w *Writer) assignKindIDs(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []commit.DeclaredFeed) error {
	var kinds []vedette.Kind
	for _, f := range feeds {
		kinds = append(kinds, f.Feed.Kind)
	}
	slices.SortFunc(kinds, func(a, b vedette.Kind) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name)) })
	kinds = slices.Compact(kinds)
	for tries := 0; ; tries++ {
		missing := w.kinds.WithoutID(kinds)
		if len(missing) == 0 {
			return nil
		}
		err := w.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
			return w.insertKinds(ctx, tx, account, term, missing)
		})
		if err != nil && (!w.db.Dialect.IsUniqueViolation(err) || tries == 3) { // another server may have inserted it
			return err
		}
		if err := w.kinds.Load(ctx); err != nil {
			return err
		}
	}
}

// insertKinds inserts kinds for an account's agent. They count as unused until a feed of them is
// declared.
func (w *Writer) insertKinds(ctx context.Context, tx *sqldb.Tx, account vedette.AccountName, term vedette.Term,
	kinds []vedette.Kind) error {
	id, err := registry.LockAccountRow(ctx, tx, account, term)
	if err != nil {
		return err
	}
	if err := deleteUnusedKinds(ctx, tx); err != nil {
		return err
	}
	var agent string
	if err := tx.QueryRow(ctx, sqldb.Named("read the cacher of an account", `SELECT holder FROM accounts WHERE id = ?`), id).Scan(&agent); err != nil {
		return err
	}
	agent = sqldb.Sanitize(agent, sqldb.MaxShort)
	if err := w.limits.checkKinds(ctx, tx, agent, int64(len(kinds))); err != nil {
		return err
	}
	rows := make([][]any, len(kinds))
	for i, k := range kinds {
		rows[i] = []any{k.Name, k.Group, agent, sqldb.ToMicros(tx.Now)}
	}
	return tx.Insert(ctx, "kinds", kindColumns, rows,
		"")
}

var kindColumns = sqldb.Columns("name text", "grp text", "agent text", "unused bigint")

// checkKinds rejects kinds of an agent that has introduced too many.
func (l limits) checkKinds(ctx context.Context, tx *sqldb.Tx, agent string, more int64) error {
	var all, own int64
	if err := tx.QueryRow(ctx, sqldb.Named("count kinds", `SELECT COUNT(*), COALESCE(SUM(CASE WHEN agent = ? THEN 1 ELSE 0 END), 0) FROM kinds`), agent).Scan(&all,
		&own); err != nil {
		return err
	}
	switch {
	case own+more > l.perAgent:
		return vedette.Errorf(vedette.Invalid,
			"agent %s declares %d kinds that no other agent has declared, in addition to %d, and the limit is %d: "+
				"restrict the kinds of its accounts in its configuration; kinds that no account uses are deleted after %v", agent, more, own,
			l.perAgent, unusedKindTTL)
	case all+more > l.all:
		return vedette.Errorf(vedette.Invalid, "the database has %d kinds, and the limit is %d: "+
			"restrict the kinds of accounts in their agents' configuration; kinds that no account uses are deleted after %v", all, l.all,
			unusedKindTTL)
	}
	return nil
}

// unusedKindTTL is how long a kind without feeds keeps its id: far longer than a server takes
// between reading the id and declaring a feed.
const unusedKindTTL = time.Hour

// deleteUnusedKinds deletes kinds that have been unused for long, and their dictionaries. It runs
// when kinds are inserted, because only that adds to the table.
func deleteUnusedKinds(ctx context.Context, tx *sqldb.Tx) error {
	cutoff := sqldb.ToMicros(tx.Now.Add(-unusedKindTTL))
	unused, used, expired, err := classifyKinds(ctx, tx, cutoff)
	if err != nil {
		return fmt.Errorf("find unused kinds: %w", err)
	}
	for _, update := range []struct {
		kinds []int64
		since int64
	}{{unused, sqldb.ToMicros(tx.Now)}, {used, 0}} {
		if err := execForKinds(ctx, tx, "id", update.kinds, `UPDATE kinds SET unused = ? WHERE `, update.since); err != nil {
			return fmt.Errorf("mark kinds as used or unused: %w", err)
		}
	}
	// A server that declares a feed at this moment has cleared unused.
	if err := execForKinds(ctx, tx, "id", expired, `DELETE FROM kinds WHERE unused > 0 AND unused < ? AND `, cutoff); err != nil {
		return fmt.Errorf("delete unused kinds: %w", err)
	}
	return deleteDictionaries(ctx, tx, expired)
}

// classifyKinds returns the kinds that have become unused, those that have become used, and those
// that have been unused since before cutoff. The kind with the highest id is never among the
// latter, because SQLite, and MySQL before version 8, would give its id to the next kind.
func classifyKinds(ctx context.Context, tx *sqldb.Tx, cutoff int64) (unused, used, expired []int64, err error) {
	feeds := map[int64]bool{}
	err = tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		feeds[id] = true
		return err
	}, sqldb.Named("find kinds in use", `SELECT DISTINCT kind_id FROM feeds`))
	if err != nil {
		return nil, nil, nil, err
	}
	var highest int64
	err = tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var id, since int64
		err := rows.Scan(&id, &since)
		highest = max(highest, id)
		switch {
		case feeds[id] && since > 0:
			used = append(used, id)
		case !feeds[id] && since == 0:
			unused = append(unused, id)
		case !feeds[id] && since < cutoff:
			expired = append(expired, id)
		}
		return err
	}, sqldb.Named("find unused kinds", `SELECT id, unused FROM kinds`))
	return unused, used, slices.DeleteFunc(expired, func(id int64) bool { return id == highest }), err
}

// deleteDictionaries deletes the dictionaries of those kinds that are deleted.
func deleteDictionaries(ctx context.Context, tx *sqldb.Tx, kinds []int64) error {
	if len(kinds) == 0 {
		return nil
	}
	where, args := sqldb.Conditions{tx.Dialect.In("id", kinds)}.Where()
	kept := map[int64]bool{}
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		kept[id] = true
		return err
	}, sqldb.Named("find kinds that are left", `SELECT id FROM kinds`+where), args...)
	if err == nil {
		deleted := slices.DeleteFunc(slices.Clone(kinds), func(id int64) bool { return kept[id] })
		err = execForKinds(ctx, tx, "kind_id", deleted, `DELETE FROM dictionaries WHERE part > ? AND `, 0)
	}
	if err != nil {
		return fmt.Errorf("delete the dictionaries of unused kinds: %w", err)
	}
	return nil
}

// execForKinds runs a statement for kinds in chunks. The condition on the column is appended to
// the statement, whose only argument precedes it.
func execForKinds(ctx context.Context, tx *sqldb.Tx, column string, kinds []int64, statement string, arg int64) error {
	for chunk := range slices.Chunk(kinds, 5000) {
		cond := tx.Dialect.In(column, chunk)
		if _, err := tx.Exec(ctx, sqldb.Named("change kinds", statement+cond.SQL), append([]any{arg}, cond.Args...)...); err != nil {
			return err
		}
	}
	return nil
}

// markKindsUsed marks kinds as used, which keeps them from being deleted until the transaction
// ends. It reports false if one of them is deleted already, so that its id is invalid.
func markKindsUsed(ctx context.Context, tx *sqldb.Tx, kinds []int64) (bool, error) {
	if len(kinds) == 0 {
		return true, nil
	}
	where, args := sqldb.Conditions{tx.Dialect.In("id", kinds), sqldb.Cond("unused <> 0")}.Where()
	if _, err := tx.Exec(ctx, sqldb.Named("mark kinds as used", `UPDATE kinds SET unused = 0`+where), args...); err != nil {
		return false, err
	}
	where, args = sqldb.Conditions{tx.Dialect.In("id", kinds)}.Where()
	var count int
	err := tx.QueryRow(ctx, sqldb.Named("count marked kinds", `SELECT COUNT(*) FROM kinds`+where), args...).Scan(&count)
	return count == len(kinds), err
}
