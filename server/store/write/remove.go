package write

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// RemoveAccount removes an account with all of its data, and also retired accounts of its name.
// First one transaction clears its name and raises its term, so that no writer finds it and the
// name is free at once. Then the data is deleted in small transactions. Sweep deletes what is left
// after a crash.
func (w *Writer) RemoveAccount(ctx context.Context, account vedette.AccountName) error {
	action := "remove account " + string(account)
	found, err := w.registry.DiscardAccount(ctx, account)
	if err != nil {
		return err
	}
	if !found {
		return w.db.WrapError(action, registry.ErrNoAccount)
	}
	return w.db.WrapError(action, w.sweepRemoved(ctx))
}

// Sweep deletes the data of removed accounts, and tombstones that are too old.
func (w *Writer) Sweep(ctx context.Context) error {
	if err := w.purgeTombstones(ctx); err != nil {
		return w.db.WrapError("delete old tombstones", err)
	}
	return w.db.WrapError("delete the data of removed accounts", w.sweepRemoved(ctx))
}

func (w *Writer) sweepRemoved(ctx context.Context) error {
	var ids []int64
	err := w.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, sqldb.Named("find removed accounts", `SELECT id FROM accounts WHERE name IS NULL AND retired IS NULL`))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := w.sweepAccount(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// sweepAccount deletes what belongs to an account without a name, and last its row, so that Sweep
// finds the account again after a crash. Several servers may sweep the same account.
func (w *Writer) sweepAccount(ctx context.Context, id int64) error {
	for more := true; more; {
		err := w.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
			keys, err := nextKeys(ctx, tx, id)
			if err != nil {
				return err
			}
			more = len(keys) > 0
			return w.dialect.remove(ctx, tx, id, keys)
		})
		if err != nil {
			return err
		}
	}
	return w.db.WriteLowPriority(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		if err := deleteUnusedLabelsets(ctx, tx, id); err != nil {
			return err
		}
		for _, table := range []string{"feeds", "clusters", "tombstones"} {
			if _, err := tx.Exec(ctx, sqldb.Named("delete rows of a removed account", `DELETE FROM `+table+` WHERE account_id = ?`), id); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, sqldb.Named("delete a removed account", `DELETE FROM accounts WHERE id = ? AND name IS NULL AND retired IS NULL`), id)
		return err
	})
}

func nextKeys(ctx context.Context, tx *sqldb.Tx, accountID int64) ([]catalog.Key, error) {
	var keys []catalog.Key
	err := tx.QueryEach(ctx, func(rows *sql.Rows) error {
		var k catalog.Key
		err := rows.Scan(&k.KindID, &k.Namespace, &k.Name)
		keys = append(keys, k)
		return err
	}, sqldb.Named("find objects of a removed account", fmt.Sprintf(`SELECT kind_id, namespace, name FROM objects WHERE account_id = ? ORDER BY kind_id, namespace, name LIMIT %d`,
		removeChunkSize)), accountID)
	return keys, err
}
