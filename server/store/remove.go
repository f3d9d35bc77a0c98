package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
)

// RemoveAccount removes an account with all of its data, and also retired accounts of its name.
// First one transaction clears its name and raises its term, so that no writer finds it and the
// name is free at once. Then the data is deleted in small transactions. Sweep deletes what is left
// after a crash.
func (s *Store) RemoveAccount(ctx context.Context, account vedette.AccountName) error {
	action := "remove account " + string(account)
	found, err := s.DiscardAccount(ctx, account)
	if err != nil {
		return err
	}
	if !found {
		return s.wrapError(action, ErrNoAccount)
	}
	return s.wrapError(action, s.sweepRemoved(ctx))
}

// DiscardAccount is the first step of RemoveAccount. It reports whether there was such an account.
// The next Sweep deletes the data.
func (s *Store) DiscardAccount(ctx context.Context, account vedette.AccountName) (bool, error) {
	action := "remove account " + string(account)
	id, err := s.detach(ctx, account, clearName, `name = ?`, string(account))
	if err != nil {
		return false, s.wrapError(action, err)
	}
	retired, err := s.execWrite(ctx, `UPDATE accounts SET retired = NULL WHERE retired = ?`, string(account))
	return id != 0 || retired > 0, s.wrapError(action, err)
}

// RetireAccount takes the name from an account, and reports whether there was one. The data is kept,
// but not visible, until Register finds the same cluster under the same name.
func (s *Store) RetireAccount(ctx context.Context, account vedette.AccountName) (bool, error) {
	id, err := s.detach(ctx, account, retireName, `name = ?`, string(account))
	return id != 0, s.wrapError("retire account "+string(account), err)
}

// OrphanedAccounts returns the accounts that no agent serves, ordered by name.
func (s *Store) OrphanedAccounts(ctx context.Context) ([]AccountRow, error) {
	var accounts []AccountRow
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		a, err := scanAccount(rows)
		accounts = append(accounts, a)
		return err
	}, selectAccounts+` AND a.orphaned > 0 ORDER BY a.name`)
	return accounts, s.wrapError("read the accounts without agents", err)
}

// RemoveOrphan removes an account like RemoveAccount, but only if no agent has served it since its
// term was read, and reports whether it did. The next Sweep deletes the data.
func (s *Store) RemoveOrphan(ctx context.Context, account vedette.AccountName, term vedette.Term) (bool, error) {
	id, err := s.detach(ctx, account, clearName, whereOrphaned, string(account), int64(term))
	return id != 0, s.wrapError("remove orphaned account "+string(account), err)
}

// RetireOrphan is RemoveOrphan for an account whose data is kept, but not visible, until Register
// finds the same cluster under the same name.
func (s *Store) RetireOrphan(ctx context.Context, account vedette.AccountName, term vedette.Term) (bool, error) {
	id, err := s.detach(ctx, account, retireName, whereOrphaned, string(account), int64(term))
	return id != 0, s.wrapError("retire orphaned account "+string(account), err)
}

// Sweep deletes the data of removed accounts.
func (s *Store) Sweep(ctx context.Context) error {
	return s.wrapError("delete the data of removed accounts", s.sweepRemoved(ctx))
}

const whereOrphaned = `name = ? AND orphaned > 0 AND term = ?`

// What detach does with the name.
const (
	clearName  = `name = NULL`
	retireName = `retired = name, name = NULL`
)

// detach takes the name from an account that meets a condition and returns its id, or 0 if no
// account meets it. The next account of the name gets a higher term, so that a writer of the old
// account cannot write to the new one.
func (s *Store) detach(ctx context.Context, account vedette.AccountName, name, where string, args ...any) (int64, error) {
	unlock, err := s.locks.Lock(ctx, account)
	if err != nil {
		return 0, err
	}
	defer unlock()
	defer s.overlay.Forget(account)
	defer s.versions.accountLog.note(account)
	if err := s.unsettle(ctx, account, where, args...); err != nil {
		return 0, err
	}
	var id, term int64
	err = s.write(ctx, func(ctx context.Context, tx *transaction) error {
		err := tx.queryRow(ctx, `SELECT id, term FROM accounts WHERE `+where+tx.dialect.forUpdate, args...).Scan(&id, &term)
		if errors.Is(err, sql.ErrNoRows) {
			id = 0
			return nil
		}
		if err != nil {
			return err
		}
		if err := flushAndDeleteLastSeen(ctx, tx, id, account); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `UPDATE counters SET value = ? WHERE name = 'term' AND value < ?`, term+1, term+1); err != nil {
			return err
		}
		_, err = tx.exec(ctx, `UPDATE accounts SET `+name+`, term = ?, holder = '', server = '' WHERE id = ?`, term+1, id)
		return err
	})
	if id != 0 || err != nil {
		s.versions.publishOutcome(accountEffect(account, true), err)
	}
	return id, err
}

func (s *Store) sweepRemoved(ctx context.Context) error {
	var ids []int64
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT id FROM accounts WHERE name IS NULL AND retired IS NULL`)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.sweepAccount(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// sweepAccount deletes what belongs to an account without a name, and last its row, so that Sweep
// finds the account again after a crash. Several servers may sweep the same account.
func (s *Store) sweepAccount(ctx context.Context, id int64) error {
	for more := true; more; {
		err := s.writeLowPriority(ctx, func(ctx context.Context, tx *transaction) error {
			keys, err := nextKeys(ctx, tx, id)
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
	return s.writeLowPriority(ctx, func(ctx context.Context, tx *transaction) error {
		if err := deleteUnusedLabelsets(ctx, tx, id); err != nil {
			return err
		}
		for _, table := range []string{"feeds", "clusters"} {
			if _, err := tx.exec(ctx, `DELETE FROM `+table+` WHERE account_id = ?`, id); err != nil {
				return err
			}
		}
		_, err := tx.exec(ctx, `DELETE FROM accounts WHERE id = ? AND name IS NULL AND retired IS NULL`, id)
		return err
	})
}

func nextKeys(ctx context.Context, tx *transaction, accountID int64) ([]rowKey, error) {
	var keys []rowKey
	err := queryEach(ctx, tx.Tx, tx.dialect, func(rows *sql.Rows) error {
		var k rowKey
		err := rows.Scan(&k.kindID, &k.namespace, &k.name)
		keys = append(keys, k)
		return err
	}, fmt.Sprintf(`SELECT kind_id, namespace, name FROM objects WHERE account_id = ? ORDER BY kind_id, namespace, name LIMIT %d`,
		removeChunkSize), accountID)
	return keys, err
}
