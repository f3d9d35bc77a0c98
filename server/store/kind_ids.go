package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// limits restrict what agents may declare, so that none of them can fill the tables that all
// share. No known cluster comes near them.
type limits struct {
	feeds      int   // per account: the kinds, times the namespaces that the account is restricted to
	kinds      int   // per account
	namespaces int   // per account
	perAgent   int64 // kinds that the agent was the first to declare
	all        int64 // kinds of all agents

	clusters int // of Spinnaker, per account, that the inventory lists

	// Bytes of memory, for all agents.
	dictionaries int
	samples      int
}

var defaultLimits = limits{feeds: 50_000, kinds: 5_000, namespaces: 10_000, perAgent: 10_000, all: 200_000, clusters: 50_000,
	dictionaries: 64 << 20, samples: 32 << 20}

// check rejects a declaration that is too large.
func (l limits) check(account vedette.AccountName, feeds []DeclaredFeed) error {
	kinds, namespaces := map[vedette.Kind]bool{}, map[string]bool{}
	for _, f := range feeds {
		if !isValidText(f.Feed.Namespace, 63) || !isValidText(f.Feed.Kind.Name, 255) || !isValidText(f.Feed.Kind.Group, 255) {
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
func (s *Store) assignKindIDs(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []DeclaredFeed) error {
	var kinds []vedette.Kind
	for _, f := range feeds {
		kinds = append(kinds, f.Feed.Kind)
	}
	slices.SortFunc(kinds, func(a, b vedette.Kind) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name)) })
	kinds = slices.Compact(kinds)
	for tries := 0; ; tries++ {
		missing := s.kinds.withoutID(kinds)
		if len(missing) == 0 {
			return nil
		}
		err := s.write(ctx, func(ctx context.Context, tx *transaction) error { return insertKinds(ctx, tx, account, term, missing) })
		if err != nil && (!s.dialect.isUniqueViolation(err) || tries == 3) { // another server may have inserted it
			return err
		}
		if err := s.kinds.load(ctx, s); err != nil {
			return err
		}
	}
}

// insertKinds inserts kinds for an account's agent. They count as unused until a feed of them is
// declared.
func insertKinds(ctx context.Context, tx *transaction, account vedette.AccountName, term vedette.Term, kinds []vedette.Kind) error {
	id, err := lockAccountRow(ctx, tx, account, term)
	if err != nil {
		return err
	}
	if err := deleteUnusedKinds(ctx, tx); err != nil {
		return err
	}
	var agent string
	if err := tx.queryRow(ctx, `SELECT holder FROM accounts WHERE id = ?`, id).Scan(&agent); err != nil {
		return err
	}
	agent = sanitize(agent, maxShort)
	if err := checkKindLimits(ctx, tx, agent, int64(len(kinds))); err != nil {
		return err
	}
	rows := make([][]any, len(kinds))
	for i, k := range kinds {
		rows[i] = []any{k.Name, k.Group, agent, toMicros(tx.now)}
	}
	return tx.dialect.insert(ctx, tx, "kinds", []columnSpec{{"name", "text"}, {"grp", "text"}, {"agent", "text"}, {"unused", "bigint"}}, rows,
		"")
}

// checkKindLimits rejects kinds of an agent that has introduced too many.
func checkKindLimits(ctx context.Context, tx *transaction, agent string, more int64) error {
	var all, own int64
	if err := tx.queryRow(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN agent = ? THEN 1 ELSE 0 END), 0) FROM kinds`, agent).Scan(&all,
		&own); err != nil {
		return err
	}
	allowed := tx.store.limits
	switch {
	case own+more > allowed.perAgent:
		return vedette.Errorf(vedette.Invalid,
			"agent %s declares %d kinds that no other agent has declared, in addition to %d, and the limit is %d: "+
				"restrict the kinds of its accounts in its configuration; kinds that no account uses are deleted after %v", agent, more, own,
			allowed.perAgent, unusedKindTTL)
	case all+more > allowed.all:
		return vedette.Errorf(vedette.Invalid, "the database has %d kinds, and the limit is %d: "+
			"restrict the kinds of accounts in their agents' configuration; kinds that no account uses are deleted after %v", all, allowed.all,
			unusedKindTTL)
	}
	return nil
}

// unusedKindTTL is how long a kind without feeds keeps its id: far longer than a server takes
// between reading the id and declaring a feed.
const unusedKindTTL = time.Hour

// deleteUnusedKinds deletes kinds that have been unused for long, and their dictionaries. It runs
// when kinds are inserted, because only that adds to the table.
func deleteUnusedKinds(ctx context.Context, tx *transaction) error {
	cutoff := toMicros(tx.now.Add(-unusedKindTTL))
	unused, used, expired, err := classifyKinds(ctx, tx, cutoff)
	if err != nil {
		return fmt.Errorf("find unused kinds: %w", err)
	}
	for _, update := range []struct {
		kinds []int64
		since int64
	}{{unused, toMicros(tx.now)}, {used, 0}} {
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
func classifyKinds(ctx context.Context, tx *transaction, cutoff int64) (unused, used, expired []int64, err error) {
	feeds := map[int64]bool{}
	err = queryEach(ctx, tx.Tx, tx.dialect, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		feeds[id] = true
		return err
	}, `SELECT DISTINCT kind_id FROM feeds`)
	if err != nil {
		return nil, nil, nil, err
	}
	var highest int64
	err = queryEach(ctx, tx.Tx, tx.dialect, func(rows *sql.Rows) error {
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
	}, `SELECT id, unused FROM kinds`)
	return unused, used, slices.DeleteFunc(expired, func(id int64) bool { return id == highest }), err
}

// deleteDictionaries deletes the dictionaries of those kinds that are deleted.
func deleteDictionaries(ctx context.Context, tx *transaction, kinds []int64) error {
	if len(kinds) == 0 {
		return nil
	}
	where, args := conditions{tx.dialect.in("id", kinds)}.where()
	kept := map[int64]bool{}
	err := queryEach(ctx, tx.Tx, tx.dialect, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		kept[id] = true
		return err
	}, `SELECT id FROM kinds`+where, args...)
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
func execForKinds(ctx context.Context, tx *transaction, column string, kinds []int64, statement string, arg int64) error {
	for chunk := range slices.Chunk(kinds, 5000) {
		cond := tx.dialect.in(column, chunk)
		if _, err := tx.exec(ctx, statement+cond.sql, append([]any{arg}, cond.args...)...); err != nil {
			return err
		}
	}
	return nil
}

// markKindsUsed marks kinds as used, which keeps them from being deleted until the transaction
// ends. It reports false if one of them is deleted already, so that its id is invalid.
func markKindsUsed(ctx context.Context, tx *transaction, kinds []int64) (bool, error) {
	if len(kinds) == 0 {
		return true, nil
	}
	where, args := conditions{tx.dialect.in("id", kinds), {"unused <> 0", nil}}.where()
	if _, err := tx.exec(ctx, `UPDATE kinds SET unused = 0`+where, args...); err != nil {
		return false, fmt.Errorf("mark kinds as used: %w", err)
	}
	where, args = conditions{tx.dialect.in("id", kinds)}.where()
	var count int
	err := tx.queryRow(ctx, `SELECT COUNT(*) FROM kinds`+where, args...).Scan(&count)
	return count == len(kinds), err
}
