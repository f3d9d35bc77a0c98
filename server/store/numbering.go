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

// limits bound what agents may declare, so that none of them can fill the tables that
// all share. No cluster is known that comes near them.
type limits struct {
	feeds      int   // of an account: kinds, each in every namespace that it is restricted to
	kinds      int   // of an account
	namespaces int   // of an account that is restricted to some
	ofAgent    int64 // kinds that no other agent had declared before
	all        int64 // kinds

	// Bytes of memory, of all agents.
	dictionaries int // that were used
	samples      int // of which dictionaries are to be made
}

var defaultLimits = limits{feeds: 50_000, kinds: 5_000, namespaces: 10_000, ofAgent: 10_000, all: 200_000, dictionaries: 64 << 20, samples: 32 << 20}

// check refuses a declaration that is too big.
func (l limits) check(account vedette.AccountName, feeds []DeclaredFeed) error {
	kinds, namespaces := map[vedette.Kind]bool{}, map[string]bool{}
	for _, f := range feeds {
		if !validName(f.Feed.Namespace, 63) || !validName(f.Feed.Kind.Name, 255) || !validName(f.Feed.Kind.Group, 255) {
			return vedette.Errorf(vedette.Invalid, "the feed %.300q cannot be stored: its kind or namespace is too long or no text", f.Feed.String())
		}
		kinds[f.Feed.Kind], namespaces[f.Feed.Namespace] = true, true
	}
	for _, c := range []struct {
		what        string
		there, most int
	}{{"feeds", len(feeds), l.feeds}, {"kinds", len(kinds), l.kinds}, {"namespaces", len(namespaces), l.namespaces}} {
		if c.there > c.most {
			return vedette.Errorf(vedette.Invalid, "account %s has %d %s, and %d are the most that are stored: restrict its kinds or namespaces in the agent's configuration", account, c.there, c.what, c.most)
		}
	}
	return nil
}

// numberKinds gives numbers to those kinds that have none. It must not be called
// within a transaction: SQLite has one writer.
func (s *Store) numberKinds(ctx context.Context, account vedette.AccountName, term vedette.Term, feeds []DeclaredFeed) error {
	var kinds []vedette.Kind
	for _, f := range feeds {
		kinds = append(kinds, f.Feed.Kind)
	}
	slices.SortFunc(kinds, func(a, b vedette.Kind) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name)) })
	kinds = slices.Compact(kinds)
	for tries := 0; ; tries++ {
		missing := s.kinds.missing(kinds)
		if len(missing) == 0 {
			return nil
		}
		err := s.write(ctx, func(ctx context.Context, tx *tx) error { return insertKinds(ctx, tx, account, term, missing) })
		if err != nil && (!s.dialect.taken(err) || tries == 3) { // another server may be first
			return err
		}
		if err := s.kinds.load(ctx, s); err != nil {
			return err
		}
	}
}

// insertKinds numbers kinds for an account's agent. They are unused until a feed is of
// them.
func insertKinds(ctx context.Context, tx *tx, account vedette.AccountName, term vedette.Term, kinds []vedette.Kind) error {
	id, err := lockAccount(ctx, tx, account, term)
	if err != nil {
		return err
	}
	if err := freeKinds(ctx, tx); err != nil {
		return err
	}
	var agent string
	if err := tx.queryRow(ctx, `SELECT holder FROM accounts WHERE id = ?`, id).Scan(&agent); err != nil {
		return err
	}
	agent = clean(agent, maxShort)
	if err := mayNumber(ctx, tx, agent, int64(len(kinds))); err != nil {
		return err
	}
	rows := make([][]any, len(kinds))
	for i, k := range kinds {
		rows[i] = []any{k.Name, k.Group, agent, micros(tx.now)}
	}
	return tx.dialect.insert(ctx, tx, "kinds", []column{{"name", "text"}, {"grp", "text"}, {"agent", "text"}, {"unused", "bigint"}}, rows, "")
}

// mayNumber refuses an agent that has brought too many kinds.
func mayNumber(ctx context.Context, tx *tx, agent string, more int64) error {
	var all, own int64
	if err := tx.queryRow(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN agent = ? THEN 1 ELSE 0 END), 0) FROM kinds`, agent).Scan(&all, &own); err != nil {
		return err
	}
	most := tx.store.limits
	switch {
	case own+more > most.ofAgent:
		return vedette.Errorf(vedette.Invalid, "agent %s declares %d kinds that nobody else had declared before, besides %d, and %d are the most: "+
			"those that no account uses are forgotten after %v; restrict the kinds of its accounts in its configuration", agent, more, own, most.ofAgent, kindsUnused)
	case all+more > most.all:
		return vedette.Errorf(vedette.Invalid, "the database has %d kinds, and %d are the most: those that no account uses are forgotten after %v; "+
			"restrict the kinds of accounts in their agents' configuration", all, most.all, kindsUnused)
	}
	return nil
}

// kindsUnused is how long a kind of which there is no feed keeps its number: far
// longer than a server takes between reading it and declaring a feed.
const kindsUnused = time.Hour

// freeKinds forgets kinds that have been unused for long, with their dictionaries. It
// is done when others come, since nothing else makes them more.
func freeKinds(ctx context.Context, tx *tx) error {
	before := micros(tx.now.Add(-kindsUnused))
	unused, used, old, err := sortKinds(ctx, tx, before)
	if err != nil {
		return fmt.Errorf("find unused kinds: %w", err)
	}
	for _, note := range []struct {
		kinds []int64
		at    int64
	}{{unused, micros(tx.now)}, {used, 0}} {
		if err := forKinds(ctx, tx, "id", note.kinds, `UPDATE kinds SET unused = ? WHERE `, note.at); err != nil {
			return fmt.Errorf("note which kinds are used: %w", err)
		}
	}
	// Who uses one at this moment has said so in its row.
	if err := forKinds(ctx, tx, "id", old, `DELETE FROM kinds WHERE unused > 0 AND unused < ? AND `, before); err != nil {
		return fmt.Errorf("forget unused kinds: %w", err)
	}
	return freeDictionaries(ctx, tx, old)
}

// sortKinds finds the kinds whose rows don't say so yet that there is no feed of them,
// or that there is one, and those that have been unused since before a time. The kind
// with the highest number is never among those: SQLite, and MySQL before version 8,
// would give its number to the next one.
func sortKinds(ctx context.Context, tx *tx, before int64) (unused, used, old []int64, err error) {
	feeds := map[int64]bool{}
	err = each(ctx, tx.Tx, tx.dialect, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		feeds[id] = true
		return err
	}, `SELECT DISTINCT kind_id FROM feeds`)
	if err != nil {
		return nil, nil, nil, err
	}
	var highest int64
	err = each(ctx, tx.Tx, tx.dialect, func(rows *sql.Rows) error {
		var id, since int64
		err := rows.Scan(&id, &since)
		highest = max(highest, id)
		switch {
		case feeds[id] && since > 0:
			used = append(used, id)
		case !feeds[id] && since == 0:
			unused = append(unused, id)
		case !feeds[id] && since < before:
			old = append(old, id)
		}
		return err
	}, `SELECT id, unused FROM kinds`)
	return unused, used, slices.DeleteFunc(old, func(id int64) bool { return id == highest }), err
}

// freeDictionaries deletes the dictionaries of those of the kinds that are gone.
func freeDictionaries(ctx context.Context, tx *tx, kinds []int64) error {
	if len(kinds) == 0 {
		return nil
	}
	where, args := conditions{tx.dialect.in("id", kinds)}.where()
	kept := map[int64]bool{}
	err := each(ctx, tx.Tx, tx.dialect, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		kept[id] = true
		return err
	}, `SELECT id FROM kinds`+where, args...)
	if err == nil {
		gone := slices.DeleteFunc(slices.Clone(kinds), func(id int64) bool { return kept[id] })
		err = forKinds(ctx, tx, "kind_id", gone, `DELETE FROM dictionaries WHERE part > ? AND `, 0)
	}
	if err != nil {
		return fmt.Errorf("forget the dictionaries of unused kinds: %w", err)
	}
	return nil
}

// forKinds runs a statement, whose one argument comes before the condition on a column
// that is appended to it.
func forKinds(ctx context.Context, tx *tx, column string, kinds []int64, text string, arg int64) error {
	for some := range slices.Chunk(kinds, 5000) {
		of := tx.dialect.in(column, some)
		if _, err := tx.exec(ctx, text+of.sql, append([]any{arg}, of.args...)...); err != nil {
			return err
		}
	}
	return nil
}

// useKinds says that there are feeds of kinds, from when on nobody forgets them. It
// reports false where one is forgotten already, so that its number leads to nothing.
func useKinds(ctx context.Context, tx *tx, kinds []int64) (bool, error) {
	if len(kinds) == 0 {
		return true, nil
	}
	where, args := conditions{tx.dialect.in("id", kinds), {"unused <> 0", nil}}.where()
	if _, err := tx.exec(ctx, `UPDATE kinds SET unused = 0`+where, args...); err != nil {
		return false, fmt.Errorf("note that kinds are used: %w", err)
	}
	where, args = conditions{tx.dialect.in("id", kinds)}.where()
	var there int
	err := tx.queryRow(ctx, `SELECT COUNT(*) FROM kinds`+where, args...).Scan(&there)
	return there == len(kinds), err
}
