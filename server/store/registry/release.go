package registry

import (
	"context"
	"database/sql"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// ReleaseAll records that no agent serves any account, and raises the terms of those that had a
// holder. A server calls it when it starts: a previous server may have been frozen in the middle
// of a commit. Nobody has asked for changed accounts then, so none is noted.
func (r *Registry) ReleaseAll(ctx context.Context) error {
	_, err := r.releaseWhere(ctx, "holder <> ''")
	return err
}

// ReleaseServer is ReleaseAll for the accounts of one server.
func (r *Registry) ReleaseServer(ctx context.Context, server vedette.ServerID) error {
	_, err := r.releaseWhere(ctx, "holder <> '' AND server = ?", string(server))
	return err
}

// ReleaseEnded is ReleaseAll for the accounts of servers that shared the database and have no row any more. It returns how many there were.
func (r *Registry) ReleaseEnded(ctx context.Context) (int64, error) {
	return r.releaseWhere(ctx, "holder <> '' AND server NOT IN (SELECT id FROM servers)")
}

// releaseChunkSize is the number of accounts in one transaction. Agents acquire them at the same time, because their server has ended,
// and must not wait for all the others.
const releaseChunkSize = 100

// releaseWhere releases the accounts of a condition, those first that nobody has locked. It returns how many it has released.
func (r *Registry) releaseWhere(ctx context.Context, where string, args ...any) (n int64, err error) {
	for {
		ids, err := r.idsWhere(ctx, where, args...)
		if err != nil || len(ids) == 0 {
			return n, r.db.WrapError("release accounts", err)
		}
		released, err := r.release(ctx, ids, where, args...)
		n += released
		if err != nil {
			return n, r.db.WrapError("release accounts", err)
		}
		if err := r.db.Write(ctx, deleteProcessFreshness); err != nil {
			return n, r.db.WrapError("release accounts", err)
		}
		if released == 0 { // others have changed what was found
			return n, nil
		}
	}
}

func (r *Registry) idsWhere(ctx context.Context, where string, args ...any) (ids []int64, err error) {
	err = r.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, sqldb.Named("find accounts that have a cacher", `SELECT a.id FROM accounts a WHERE a.name IS NOT NULL AND `+where+` ORDER BY a.id`), args...)
	return ids, err
}

// release releases those of some accounts for which the condition still holds, and that nobody else has locked. If it can release none, it
// waits for one after the other. So one that is locked for long delays no other.
func (r *Registry) release(ctx context.Context, ids []int64, where string, args ...any) (n int64, err error) {
	for chunk := range slices.Chunk(ids, releaseChunkSize) {
		released, err := r.releaseChunk(ctx, chunk, r.db.Dialect.SkipLocked, where, args...)
		if err != nil { // MariaDB before 10.6 does not know SKIP LOCKED
			break
		}
		n += released
	}
	if n > 0 {
		return n, nil
	}
	for _, id := range ids {
		released, err := r.releaseChunk(ctx, []int64{id}, r.db.Dialect.ForUpdate, where, args...)
		n += released
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// releaseChunk releases accounts in one transaction, which locks them by lock.
func (r *Registry) releaseChunk(ctx context.Context, ids []int64, lock, where string, args ...any) (n int64, err error) {
	err = r.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		n = 0 // it may run again
		rows, err := lockToRelease(ctx, tx, ids, lock, where, args...)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := resumeFreshness(ctx, tx, rows); err != nil {
			return err
		}
		locked := make([]int64, len(rows))
		for i, row := range rows {
			locked[i] = row.id
		}
		in := tx.Dialect.In("id", locked)
		// MySQL assigns from left to right, and the pending feeds of the last term are pending in the next one.
		n, err = tx.Exec(ctx, sqldb.Named("release accounts", `UPDATE accounts SET resumed_term = CASE WHEN resumed_term = term THEN term + 1 ELSE resumed_term END,
			holder = '', server = '', term = term + 1, orphaned = CASE WHEN orphaned > 0 THEN orphaned ELSE ? END WHERE `+in.SQL),
			append([]any{sqldb.ToMicros(tx.Now)}, in.Args...)...)
		return err
	})
	if err != nil {
		n = 0
	}
	return n, err
}

func lockToRelease(ctx context.Context, tx *sqldb.Tx, ids []int64, lock, where string, args ...any) (rows []winner, err error) {
	in := tx.Dialect.In("a.id", ids)
	err = tx.QueryEach(ctx, func(r *sql.Rows) error {
		var row winner
		err := r.Scan(&row.id, &row.name, &row.term, &row.freshness)
		rows = append(rows, row)
		return err
	}, sqldb.Named("lock the released accounts", `SELECT a.id, a.name, a.term, `+freshnessOfRow+` FROM accounts a WHERE a.name IS NOT NULL AND `+in.SQL+` AND `+where+` ORDER BY a.id`+lock),
		slices.Concat(in.Args, args)...)
	return rows, err
}
