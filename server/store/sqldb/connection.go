package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"
)

// queryTimeout limits a transaction, or a query outside of one, from when it has a connection. No
// healthy database needs a second for any of ours. A statement that takes longer most likely uses
// a connection that was lost without notice, for example in a firewall, and would otherwise wait
// for the kernel's timeout, which takes many minutes.
//
// Waiting for a connection does not count: with a thousand agents in their first sync, that is a queue and not a fault.
// Migrations have no limit. The database releases what a lost transaction has locked, because our sessions say so: PostgreSQL
// after 10 seconds of idling in a transaction, MariaDB and MySQL after 20 seconds of silence on the connection
// (IdleTimeout).
//
// A commit that was sent and not answered may take effect later, while its batch is prepared again on top of what was stored
// before. So the next commit of the account first waits for the lock that the lost one holds. A column that numbers commits
// would show the same, for a migration. TestCommitSurvivesStrandedConnections, TestLockOfLostTransaction and TestLateCommitIsCountedOnce
// have a proxy in front of real databases.
const queryTimeout = 15 * time.Second

// dialTimeout limits the opening of a connection.
const dialTimeout = 10 * time.Second

// withConn runs do with a connection of a pool, for which it waits until ctx ends. It retries on
// another connection if the first one turns out to be closed, as database/sql does, and also if
// the server of the first one takes no writes any more, because after a failover a new connection may lead
// to the new primary, or if the connection's statements are outdated, because another server has migrated the database.
func (d *DB) withConn(ctx context.Context, db *sql.DB, do func(ctx context.Context, conn *sql.Conn) error) error {
	for tries := 0; ; tries++ {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		err = d.WithTimeout(ctx, func(ctx context.Context) error { return do(ctx, conn) })
		isUseless := err != nil && (recognizes(d.Dialect.isReadOnly, err) || recognizes(d.Dialect.isOutdated, err))
		if isUseless {
			d.discardConn(conn, err)
		}
		_ = conn.Close() // returns it to the pool; it may be closed already
		if !isUseless && !errors.Is(err, driver.ErrBadConn) || tries == 2 {
			return err
		}
	}
}

// recognizes calls a function of a Dialect about an error. One that is nil recognizes none.
func recognizes(kind func(error) bool, err error) bool { return kind != nil && kind(err) }

// discardConn makes the pool close a connection when it is returned, and all idle connections,
// because they lead to the same server and have the same statements.
func (d *DB) discardConn(conn *sql.Conn, cause error) {
	d.Log.Debug("reconnecting to the database", "error", cause) // the caller logs what stays an error
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })  // returns the same error
	d.closeIdleConns()
}

// WithTimeout runs do with queryTimeout. If do times out, all idle connections are closed too:
// whatever cut one connection without notice has cut all of them, and each would cost the same
// time again.
func (d *DB) WithTimeout(ctx context.Context, do func(ctx context.Context) error) error {
	timeoutCtx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err := do(timeoutCtx)
	if err != nil && errors.Is(timeoutCtx.Err(), context.DeadlineExceeded) && ctx.Err() == nil && d.closeIdleConns != nil {
		d.Log.Warn("database did not answer in time; reconnecting", "after", queryTimeout)
		d.closeIdleConns()
	}
	return err
}

// QueryEach runs a query outside of a transaction and calls scan for each row.
func (d *DB) QueryEach(ctx context.Context, scan func(*sql.Rows) error, statement Statement, args ...any) error {
	if prepared := d.readStatements[statement.SQL]; prepared != nil {
		return queryEach(ctx, preparedQuery{prepared}, &Dialect{}, scan, statement, args...)
	}
	return d.withConn(ctx, d.Reads, func(ctx context.Context, conn *sql.Conn) error {
		return queryEach(ctx, conn, &d.Dialect, scan, statement, args...)
	})
}

// QueryOne runs a query outside of a transaction and calls scan for its only row.
func (d *DB) QueryOne(ctx context.Context, scan func(Scanner) error, statement Statement, args ...any) error {
	if prepared := d.readStatements[statement.SQL]; prepared != nil {
		return scan(Row{prepared.QueryRowContext(ctx, args...), statement})
	}
	return d.withConn(ctx, d.Reads, func(ctx context.Context, conn *sql.Conn) error {
		return scan(Row{conn.QueryRowContext(ctx, d.Dialect.bind(statement.SQL), args...), statement})
	})
}

// ScanInto returns a function that scans a row into variables.
func ScanInto(dest ...any) func(Scanner) error {
	return func(row Scanner) error { return row.Scan(dest...) }
}

// timeoutConnector limits how long a driver may take to open a connection, including its
// handshake.
type timeoutConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (h timeoutConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return h.Connector.Connect(ctx)
}

// Scanner is a row.
type Scanner interface{ Scan(dest ...any) error }
