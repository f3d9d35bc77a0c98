package store

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
const queryTimeout = 15 * time.Second

// dialTimeout limits the opening of a connection.
const dialTimeout = 10 * time.Second

// withConn runs do with a connection of a pool, for which it waits until ctx ends. It retries on
// another connection if the first one turns out to be closed, as database/sql does, and also if
// the server of the first one takes no writes any more: after a failover a new connection may lead
// to the new primary.
func (s *Store) withConn(ctx context.Context, db *sql.DB, do func(ctx context.Context, conn *sql.Conn) error) error {
	for tries := 0; ; tries++ {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		err = s.withTimeout(ctx, func(ctx context.Context) error { return do(ctx, conn) })
		readOnly := err != nil && s.dialect.isReadOnly != nil && s.dialect.isReadOnly(err)
		if readOnly {
			s.discardConn(conn, err)
		}
		_ = conn.Close() // returns it to the pool; it may be closed already
		if !readOnly && !errors.Is(err, driver.ErrBadConn) || tries == 2 {
			return err
		}
	}
}

// discardConn makes the pool close a connection when it is returned, and all idle connections,
// because they lead to the same server.
func (s *Store) discardConn(conn *sql.Conn, cause error) {
	s.log.Debug("database is read-only; reconnecting", "error", cause) // the caller logs it at a higher level
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })         // returns the same error
	s.closeIdleConns()
}

// withTimeout runs do with queryTimeout. If do times out, all idle connections are closed too:
// whatever cut one connection without notice has cut all of them, and each would cost the same
// time again.
func (s *Store) withTimeout(ctx context.Context, do func(ctx context.Context) error) error {
	timeoutCtx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err := do(timeoutCtx)
	if err != nil && errors.Is(timeoutCtx.Err(), context.DeadlineExceeded) && ctx.Err() == nil && s.closeIdleConns != nil {
		s.log.Warn("database did not answer in time; reconnecting", "after", queryTimeout)
		s.closeIdleConns()
	}
	return err
}

// queryEach runs a query outside of a transaction and calls scan for each row.
func (s *Store) queryEach(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	if prepared := s.readStatements[query]; prepared != nil {
		return queryEach(ctx, preparedQuery{prepared}, &dialect{}, scan, "", args...)
	}
	return s.withConn(ctx, s.reader, func(ctx context.Context, conn *sql.Conn) error {
		return queryEach(ctx, conn, &s.dialect, scan, query, args...)
	})
}

// queryOne runs a query outside of a transaction and calls scan for its only row.
func (s *Store) queryOne(ctx context.Context, scan func(scanner) error, query string, args ...any) error {
	if prepared := s.readStatements[query]; prepared != nil {
		return scan(prepared.QueryRowContext(ctx, args...))
	}
	return s.withConn(ctx, s.reader, func(ctx context.Context, conn *sql.Conn) error {
		return scan(conn.QueryRowContext(ctx, s.dialect.bind(query), args...))
	})
}

// scanInto returns a function that scans a row into variables.
func scanInto(dest ...any) func(scanner) error {
	return func(row scanner) error { return row.Scan(dest...) }
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
