package registry

import (
	"context"
	"database/sql"
	"errors"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
)

// DiscardAccount is the first step of RemoveAccount. It reports whether there was such an account.
// The next Sweep deletes the data.
func (r *Registry) DiscardAccount(ctx context.Context, account vedette.AccountName) (bool, error) {
	action := "remove account " + string(account)
	id, err := r.detach(ctx, account, clearName, `name = ?`, string(account))
	if err != nil {
		return false, r.db.WrapError(action, err)
	}
	retired, err := r.db.ExecWrite(ctx, sqldb.Named("discard retired accounts", `UPDATE accounts SET retired = NULL WHERE retired = ?`), string(account))
	return id != 0 || retired > 0, r.db.WrapError(action, err)
}

// RetireAccount takes the name from an account, and reports whether there was one. The data is kept,
// but not visible, until Register finds the same cluster under the same name.
func (r *Registry) RetireAccount(ctx context.Context, account vedette.AccountName) (bool, error) {
	id, err := r.detach(ctx, account, retireName, `name = ?`, string(account))
	return id != 0, r.db.WrapError("retire account "+string(account), err)
}

// OrphanedAccounts returns the accounts that no agent serves, ordered by name.
func (r *Registry) OrphanedAccounts(ctx context.Context) ([]Account, error) {
	var accounts []Account
	err := r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		a, err := scanAccount(rows)
		accounts = append(accounts, a)
		return err
	}, sqldb.Named("read orphaned accounts", selectAccounts+` AND a.orphaned > 0 ORDER BY a.name`))
	return accounts, r.db.WrapError("read the accounts without agents", err)
}

// RemoveOrphan removes an account like RemoveAccount, but only if no agent has served it since its
// term was read, and reports whether it did. The next Sweep deletes the data.
func (r *Registry) RemoveOrphan(ctx context.Context, account vedette.AccountName, term vedette.Term) (bool, error) {
	id, err := r.detach(ctx, account, clearName, whereOrphaned, string(account), int64(term))
	return id != 0, r.db.WrapError("remove orphaned account "+string(account), err)
}

// RetireOrphan is RemoveOrphan for an account whose data is kept, but not visible, until Register
// finds the same cluster under the same name.
func (r *Registry) RetireOrphan(ctx context.Context, account vedette.AccountName, term vedette.Term) (bool, error) {
	id, err := r.detach(ctx, account, retireName, whereOrphaned, string(account), int64(term))
	return id != 0, r.db.WrapError("retire orphaned account "+string(account), err)
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
func (r *Registry) detach(ctx context.Context, account vedette.AccountName, name, where string, args ...any) (int64, error) {
	unlock, err := r.locks.Lock(ctx, account)
	if err != nil {
		return 0, err
	}
	defer unlock()
	defer r.writeThrough.Forget(account)
	defer r.versions.AccountLog.Note(account)
	if err := r.unsettle(ctx, account, where, args...); err != nil {
		return 0, err
	}
	var id, term int64
	err = r.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		err := tx.QueryRow(ctx, sqldb.Named("lock the detached account", `SELECT id, term FROM accounts WHERE `+where+tx.Dialect.ForUpdate), args...).Scan(&id, &term)
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
		if _, err := tx.Exec(ctx, sqldb.Named("raise the next term", `UPDATE counters SET value = ? WHERE name = 'term' AND value < ?`), term+1, term+1); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, sqldb.Named("take the name from an account", `UPDATE accounts SET `+name+`, term = ?, holder = '', server = '' WHERE id = ?`), term+1, id)
		return err
	})
	if id != 0 || err != nil {
		r.versions.PublishOutcome(versions.AccountEffect(account, true), err)
	}
	return id, err
}
