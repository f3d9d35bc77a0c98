package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"
)

// patience is how long a transaction, or a query outside of one, may take from
// when it has a connection. None of ours takes a second where all is well. What
// takes longer waits most likely for a connection that was lost without our
// being told, as by a firewall that forgot it, and would wait until the kernel
// gives up, for many minutes.
const patience = 15 * time.Second

// mostDialling bounds the opening of a connection.
const mostDialling = 10 * time.Second

// connected does something over a connection of a pool, for which it may have to
// wait in a queue as long as the caller likes. As database/sql itself does, it
// takes another one where the first turns out to be closed; so it does where that
// leads to a server that takes no writes any more, since a new one may lead to the
// server that took its place.
func (s *Store) connected(ctx context.Context, db *sql.DB, do func(ctx context.Context, conn *sql.Conn) error) error {
	for tries := 0; ; tries++ {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		err = s.patiently(ctx, func(ctx context.Context) error { return do(ctx, conn) })
		demoted := err != nil && s.dialect.readOnly != nil && s.dialect.readOnly(err)
		if demoted {
			s.abandon(conn, err)
		}
		_ = conn.Close() // it goes back to the pool, or is closed already
		if !demoted && !errors.Is(err, driver.ErrBadConn) || tries == 2 {
			return err
		}
	}
}

// abandon has a connection closed when it is given back, and those closed that are
// idle: they lead to the same server.
func (s *Store) abandon(conn *sql.Conn, cause error) {
	s.log.Debug("the database takes no writes over its connections, which are opened anew", "error", cause) // who wrote says it louder
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })                                              // which is all that it can say
	s.renew()
}

// patiently bounds what is done. Where the time was used up, all connections
// that are idle go too: what took one from us silently took them all, and each
// would cost the same time again.
func (s *Store) patiently(ctx context.Context, do func(ctx context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := do(bounded)
	if err != nil && errors.Is(bounded.Err(), context.DeadlineExceeded) && ctx.Err() == nil && s.renew != nil {
		s.log.Warn("the database did not answer in time; its connections are opened anew", "after", patience)
		s.renew()
	}
	return err
}

// each reads the rows of a query outside of a transaction.
func (s *Store) each(ctx context.Context, row func(*sql.Rows) error, query string, args ...any) error {
	if prepared := s.looks[query]; prepared != nil {
		return each(ctx, preparedQuery{prepared}, &dialect{}, row, "", args...)
	}
	return s.connected(ctx, s.reader, func(ctx context.Context, conn *sql.Conn) error {
		return each(ctx, conn, &s.dialect, row, query, args...)
	})
}

// one reads the only row of a query outside of a transaction.
func (s *Store) one(ctx context.Context, scan func(scanner) error, query string, args ...any) error {
	if prepared := s.looks[query]; prepared != nil {
		return scan(prepared.QueryRowContext(ctx, args...))
	}
	return s.connected(ctx, s.reader, func(ctx context.Context, conn *sql.Conn) error {
		return scan(conn.QueryRowContext(ctx, s.dialect.bind(query), args...))
	})
}

// into scans a row into variables.
func into(dest ...any) func(scanner) error {
	return func(row scanner) error { return row.Scan(dest...) }
}

// hasty bounds how long a driver may take to open a connection, its handshake
// included.
type hasty struct{ driver.Connector }

// Connect implements driver.Connector.
func (h hasty) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, mostDialling)
	defer cancel()
	return h.Connector.Connect(ctx)
}
