package write

import (
	"context"
	"database/sql"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/writethrough"
)

// storeTombstones stores in the transaction that removes an object that it is gone, so that whichever server writes the account
// next knows it. The time is that of the database, which all servers share.
func (p *plan) storeTombstones(ctx context.Context, tx *sqldb.Tx) error {
	stored := map[string]bool{}
	for _, uid := range p.tombstones {
		if uid == "" || len(uid) > sqldb.MaxUID || stored[uid] { // no object with a longer one is stored
			continue
		}
		stored[uid] = true
		packed, id := codec.PackUID(uid), p.baseline.accountID
		if _, err := tx.Exec(ctx, sqldb.Named("store a tombstone", `INSERT INTO tombstones (account_id, uid, kind_id, namespace, name, deleted)
			SELECT id, ?, ?, ?, ?, `+tx.Dialect.Clock()+` FROM accounts
			WHERE id = ? AND NOT EXISTS (SELECT 1 FROM tombstones x WHERE x.account_id = ? AND x.uid = ?)`),
			packed, p.tombstoneKey.KindID, p.tombstoneKey.Namespace, p.tombstoneKey.Name, id, id, packed); err != nil {
			return err
		}
	}
	return nil
}

// ensureTombstones reads the tombstones of an account that were stored before its term, once in each term. The account is locked.
func (w *Writer) ensureTombstones(ctx context.Context, account vedette.AccountName, term vedette.Term, accountID int64) error {
	if w.writeThrough.HasTombstones(account, term) {
		return nil
	}
	var stored []writethrough.Tombstone
	clock := w.db.Dialect.Clock()
	err := w.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var packed []byte
		var kindID, age int64
		var t writethrough.Tombstone
		if err := rows.Scan(&packed, &kindID, &t.Key.Namespace, &t.Key.Name, &age); err != nil {
			return err
		}
		kind, ok := w.kinds.CachedKind(kindID) // those of the account's feeds are known; no feed reports objects of others
		if t.Key.Kind = kind; ok {
			t.UID, t.Age = codec.UnpackUID(packed), time.Duration(age)*time.Microsecond
			stored = append(stored, t)
		}
		return nil
	}, sqldb.Named("read tombstones", `SELECT uid, kind_id, namespace, name, `+clock+` - deleted FROM tombstones
		WHERE account_id = ? AND deleted > `+clock+` - ?`), accountID, writethrough.TombstoneTTL.Microseconds())
	if err != nil {
		return err
	}
	w.writeThrough.AddTombstones(account, term, stored)
	return nil
}

// forgetTombstones deletes those that match a condition, because the cluster may have the objects again.
func forgetTombstones(ctx context.Context, tx *sqldb.Tx, where string, args ...any) error {
	_, err := tx.Exec(ctx, sqldb.Named("delete tombstones", `DELETE FROM tombstones WHERE `+where), args...)
	return err
}

// purgeTombstones deletes those that are too old to be read, at most once in their time.
func (w *Writer) purgeTombstones(ctx context.Context) error {
	last := w.tombstonesPurged.Load()
	if last != nil && time.Since(*last) < writethrough.TombstoneTTL {
		return nil
	}
	_, err := w.db.ExecWrite(ctx, sqldb.Named("purge tombstones", `DELETE FROM tombstones WHERE deleted <= `+w.db.Dialect.Clock()+` - ?`),
		writethrough.TombstoneTTL.Microseconds())
	if err == nil {
		w.tombstonesPurged.Store(new(time.Now()))
	}
	return err
}
