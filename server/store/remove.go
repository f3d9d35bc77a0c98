package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
)

// RemoveAccount removes an account with all of its data. First its name goes
// and its term rises, in one transaction, so that no writer finds it any more
// and the name is free at once; then the data, in portions. What a crash leaves
// is removed by the next RemoveOrphans.
func (s *Store) RemoveAccount(ctx context.Context, account vedette.AccountName) error {
	id, err := s.detach(ctx, account, `name = ?`, string(account))
	if err == nil && id == 0 {
		err = ErrNoAccount
	}
	if err == nil {
		err = s.sweep(ctx, id)
	}
	return s.explain("remove account "+string(account), err)
}

// RemoveOrphans removes the accounts that no agent has served since before a
// time, and what is left of accounts that were removed earlier. It returns the
// names of the former.
func (s *Store) RemoveOrphans(ctx context.Context, before time.Time) ([]vedette.AccountName, error) {
	const deed = "remove orphaned accounts"
	accounts, err := s.Accounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", deed, err)
	}
	var removed []vedette.AccountName
	for _, a := range accounts {
		if a.Orphaned.IsZero() || !a.Orphaned.Before(before) {
			continue
		}
		// An agent may have come back since: the condition holds in the transaction.
		id, err := s.detach(ctx, a.Name, `name = ? AND orphaned > 0 AND orphaned < ?`, string(a.Name), micros(before))
		if err != nil {
			return removed, s.explain(deed, err)
		}
		if id != 0 {
			removed = append(removed, a.Name)
		}
	}
	return removed, s.explain(deed, s.sweepAll(ctx))
}

// detach takes the name from an account that meets a condition and returns its
// number, or 0 where none meets it. Terms go on where they ended, so that a
// writer of the old account can't be taken for one of a new one of that name.
func (s *Store) detach(ctx context.Context, account vedette.AccountName, where string, args ...any) (int64, error) {
	leave, err := s.gates.enter(ctx, account)
	if err != nil {
		return 0, err
	}
	defer leave()
	defer s.floors.forget(account)
	var id, term int64
	err = s.write(ctx, func(ctx context.Context, tx *tx) error {
		err := tx.queryRow(ctx, `SELECT id, term FROM accounts WHERE `+where+tx.dialect.forUpdate, args...).Scan(&id, &term)
		if errors.Is(err, sql.ErrNoRows) {
			id = 0
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `UPDATE counters SET value = ? WHERE name = 'term' AND value < ?`, term+1, term+1); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `UPDATE accounts SET name = NULL, term = ?, holder = '', server = '' WHERE id = ?`, term+1, id)
		return err
	})
	return id, err
}

func (s *Store) sweepAll(ctx context.Context) error {
	var ids []int64
	err := s.each(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT id FROM accounts WHERE name IS NULL`)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.sweep(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes what belongs to an account without a name, and at last its row,
// by which it would be found again after a crash. Several servers may sweep the
// same account.
func (s *Store) sweep(ctx context.Context, id int64) error {
	for more := true; more; {
		err := s.writeBehind(ctx, func(ctx context.Context, tx *tx) error {
			keys, err := someKeys(ctx, tx, id)
			if err != nil {
				return err
			}
			more = len(keys) > 0
			return tx.dialect.remove(ctx, tx, id, keys)
		})
		if err != nil {
			return err
		}
	}
	return s.writeBehind(ctx, func(ctx context.Context, tx *tx) error {
		if err := collectLabelsets(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `DELETE FROM feeds WHERE account_id = ?`, id); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `DELETE FROM accounts WHERE id = ? AND name IS NULL`, id)
		return err
	})
}

func someKeys(ctx context.Context, tx *tx, account int64) ([]rowKey, error) {
	var keys []rowKey
	err := each(ctx, tx.Tx, tx.dialect, func(rows *sql.Rows) error {
		var k rowKey
		err := rows.Scan(&k.kind, &k.namespace, &k.name)
		keys = append(keys, k)
		return err
	}, fmt.Sprintf(`SELECT kind_id, namespace, name FROM objects WHERE account_id = ? ORDER BY kind_id, namespace, name LIMIT %d`, removeChunk), account)
	return keys, err
}
