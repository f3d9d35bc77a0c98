package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"
)

// queryTimeout is how long a transaction, or a query outside of one, may take from
// when it has a connection. None of ours takes a second where all is well. What
// takes longer waits most likely for a connection that was lost without our
// being told, as by a firewall that forgot it, and would wait until the kernel
// gives up, for many minutes.
const queryTimeout = 15 * time.Second

// dialTimeout bounds the opening of a connection.
const dialTimeout = 10 * time.Second

// withConn does something over a connection of a pool, for which it may have to
// wait in a queue as long as the caller likes. As database/sql itself does, it
// takes another one where the first turns out to be closed; so it does where that
// leads to a server that takes no writes any more, since a new one may lead to the
// server that took its place.
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
		_ = conn.Close() // it goes back to the pool, or is closed already
		if !readOnly && !errors.Is(err, driver.ErrBadConn) || tries == 2 {
			return err
		}
	}
}

// discardConn has a connection closed when it is given back, and those closed that are
// idle: they lead to the same server.
func (s *Store) discardConn(conn *sql.Conn, cause error) {
	s.log.Debug("the database takes no writes over its connections, which are opened anew", "error", cause) // who wrote says it louder
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })                                              // which is all that it can say
	s.closeIdleConns()
}

// withTimeout bounds what is done. Where the time was used up, all connections
// that are idle go too: what took one from us silently took them all, and each
// would cost the same time again.
func (s *Store) withTimeout(ctx context.Context, do func(ctx context.Context) error) error {
	timeoutCtx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err := do(timeoutCtx)
	if err != nil && errors.Is(timeoutCtx.Err(), context.DeadlineExceeded) && ctx.Err() == nil && s.closeIdleConns != nil {
		s.log.Warn("the database did not answer in time; its connections are opened anew", "after", queryTimeout)
		s.closeIdleConns()
	}
	return err
}

// queryEach reads the rows of a query outside of a transaction.
func (s *Store) queryEach(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	if prepared := s.readStatements[query]; prepared != nil {
		return queryEach(ctx, preparedQuery{prepared}, &dialect{}, scan, "", args...)
	}
	return s.withConn(ctx, s.reader, func(ctx context.Context, conn *sql.Conn) error {
		return queryEach(ctx, conn, &s.dialect, scan, query, args...)
	})
}

// queryOne reads the only row of a query outside of a transaction.
func (s *Store) queryOne(ctx context.Context, scan func(scanner) error, query string, args ...any) error {
	if prepared := s.readStatements[query]; prepared != nil {
		return scan(prepared.QueryRowContext(ctx, args...))
	}
	return s.withConn(ctx, s.reader, func(ctx context.Context, conn *sql.Conn) error {
		return scan(conn.QueryRowContext(ctx, s.dialect.bind(query), args...))
	})
}

// scanInto scans a row into variables.
func scanInto(dest ...any) func(scanner) error {
	return func(row scanner) error { return row.Scan(dest...) }
}

// timeoutConnector bounds how long a driver may take to open a connection, its handshake
// included.
type timeoutConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (h timeoutConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return h.Connector.Connect(ctx)
}
