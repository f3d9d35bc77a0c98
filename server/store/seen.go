package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// Sighting says that an account's agent was there at a time, and that its live feeds
// were complete then.
type Sighting struct {
	Account vedette.AccountName
	Term    vedette.Term // in which the agent holds the account; in another one it says nothing
	At      time.Time
}

// Seen stores sightings, one of each account. They stand in rows of their own, one
// for each account, so that what is stored while nothing happens is little and locks
// no account; readers join the rows. What a term has left behind is moved to the
// account's feeds when that ends, by keepSeen.
func (s *Store) Seen(ctx context.Context, sightings []Sighting) error {
	sorted := slices.SortedFunc(slices.Values(sightings), func(a, b Sighting) int { return cmp.Compare(a.Account, b.Account) })
	for some := range slices.Chunk(sorted, 250) {
		rows := make([][]any, len(some))
		for i, seen := range some {
			rows[i] = []any{string(seen.Account), int64(seen.Term), micros(seen.At)}
		}
		err := s.writeBehind(ctx, func(ctx context.Context, tx *tx) error {
			return tx.dialect.insert(ctx, tx, "freshness", []column{{"id", "text"}, {"term", "bigint"}, {"seen", "bigint"}}, rows,
				tx.dialect.orUpdate("1 = 1", []string{"term", "seen"}))
		})
		if err != nil {
			return s.explain(fmt.Sprintf("note that %d accounts were seen", len(some)), err)
		}
	}
	return nil
}

// joinFreshness is for a query of accounts named "a".
const joinFreshness = ` LEFT JOIN freshness fr ON fr.id = a.name AND fr.term = a.term `

// keepSeen writes what is known of live feeds from sightings into their own rows,
// before they are live no more or the account's term ends. The condition is on feeds.
func keepSeen(ctx context.Context, tx *tx, where string, args ...any) error {
	const sighting = `FROM accounts a JOIN freshness fr ON fr.id = a.name AND fr.term = a.term WHERE a.id = feeds.account_id`
	_, err := tx.exec(ctx, `UPDATE feeds SET seen = (SELECT fr.seen `+sighting+`) WHERE state = 'live' AND `+where+` AND EXISTS (SELECT 1 `+sighting+` AND fr.seen > feeds.seen)`, args...)
	if err != nil {
		return fmt.Errorf("keep what was seen of feeds: %w", err)
	}
	return nil
}

// keepSeenOfAccounts does the same for accounts, which the condition is on.
func keepSeenOfAccounts(ctx context.Context, tx *tx, where string, args ...any) error {
	const sighting = `FROM freshness fr WHERE fr.id = accounts.name AND fr.term = accounts.term`
	_, err := tx.exec(ctx, `UPDATE accounts SET last_seen = (SELECT fr.seen `+sighting+`) WHERE `+where+` AND EXISTS (SELECT 1 `+sighting+` AND fr.seen > accounts.last_seen)`, args...)
	if err != nil {
		return fmt.Errorf("keep when accounts were seen: %w", err)
	}
	return nil
}

// endSightings moves what is known of an account from sightings to its own rows: it
// loses its name.
func endSightings(ctx context.Context, tx *tx, id int64, account vedette.AccountName) error {
	if err := keepSeen(ctx, tx, `account_id = ?`, id); err != nil {
		return err
	}
	if err := keepSeenOfAccounts(ctx, tx, `id = ?`, id); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `DELETE FROM freshness WHERE id = ?`, string(account))
	return err
}
