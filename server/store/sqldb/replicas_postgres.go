package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/vedette-io/vedette"
)

// postgresPosition is not before any commit that was visible when it is read. A commit that does not wait for the disk may be visible
// before it is flushed.
const postgresPosition = `SELECT (CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END)::text`

// selectReplicaHistory is selectHistory for a replica. The timeline is that of its last restart point, so after a failover a replica is
// used again once it has written one.
const selectReplicaHistory = `SELECT CASE WHEN pg_is_in_recovery() THEN
	(SELECT system_identifier::text FROM pg_control_system()) || ' timeline ' || (SELECT upper(lpad(to_hex(timeline_id), 8, '0')) FROM pg_control_checkpoint())
	ELSE '' END`

func openPostgresReplica(ctx context.Context, d *DB, address string, maxConns int) (*replica, bool, error) {
	config, err := postgresConfig(address)
	if err != nil {
		return nil, false, err
	}
	config.MaxConns = int32(min(maxConns, 10_000)) //nolint:gosec // limited to 10,000
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return d.checkPostgresReplica(ctx, conn) }
	config.ShouldPing = isConnClosed
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, false, fmt.Errorf("create a connection pool: %w", err)
	}
	d.cleanup = append(d.cleanup, func() error { pool.Close(); return nil })
	db := stdlib.OpenDBFromPool(pool)
	db.SetMaxIdleConns(0) // the pool of pgx keeps them
	d.cleanup = append(d.cleanup, db.Close)
	return &replica{pool: db, await: awaitPostgresReplica}, true, nil
}

// checkPostgresReplica returns an error for a connection that does not lead to a replica of the primary. Positions can be compared only in
// the same history.
func (d *DB) checkPostgresReplica(ctx context.Context, conn *pgx.Conn) error {
	pooled, err := isPooled(ctx, conn.PgConn())
	if err != nil {
		return err
	}
	if pooled {
		return vedette.Errorf(vedette.Invalid, "a connection pooler that changes the server between transactions is in front of it: use the replica's own address")
	}
	id, err := querySimple(ctx, conn.PgConn(), selectReplicaHistory)
	if err != nil {
		return fmt.Errorf("read which server it follows: %w", err)
	}
	return d.history.checkReplica(id)
}

// awaitPostgresReplica asks the replica how far it is, again and again.
func awaitPostgresReplica(ctx context.Context, conn *sql.Conn, position string) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 10*time.Millisecond) {
		var isThere sql.NullBool
		err := conn.QueryRowContext(ctx, `SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= $1::text::pg_lsn`, position).Scan(&isThere)
		if err != nil || isThere.Bool {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}
