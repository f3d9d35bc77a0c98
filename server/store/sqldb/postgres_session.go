package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// idleInTransaction is after which time PostgreSQL ends a transaction whose connection is silent. The locks of a lost connection
// are released then. Our transactions are never idle.
const (
	idleInTransaction        = "idle_in_transaction_session_timeout"
	idleInTransactionTimeout = "10s"
)

// postgresSession prepares connections. It finds out whether a pooler such as PgBouncer is in between that gives each transaction
// another connection of its own. Prepared statements and settings of a session do not survive there.
type postgresSession struct {
	db         *DB
	hasTimeout bool // the URL sets idleInTransaction
	isPooled   atomic.Bool
	noHistory  atomic.Bool // the server does not tell it
	warned     atomic.Bool
}

// beforeConnect chooses how statements are executed, by what the last connection has shown. The URL's choice takes precedence.
func (s *postgresSession) beforeConnect(_ context.Context, config *pgx.ConnConfig) error {
	if s.isPooled.Load() && config.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// Types of parameters are asked for once, and each statement is parsed where it is executed.
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return nil
}

// afterConnect returns driver.ErrBadConn for a connection that executes statements in a way that a pooler does not support, so
// that it is opened again.
func (s *postgresSession) afterConnect(ctx context.Context, conn *pgx.Conn) error {
	pooled, err := isPooled(ctx, conn.PgConn())
	if err != nil {
		return err
	}
	if s.isPooled.Swap(pooled) != pooled && pooled {
		s.db.Log.Info("a connection pooler is in front of the PostgreSQL server: statements are not prepared", "database", s.db.name)
	}
	id, err := querySimple(ctx, conn.PgConn(), selectHistory)
	if err != nil && !isPostgresUnsupported(err) {
		return fmt.Errorf("read which server it is: %w", err)
	}
	s.noHistory.Store(err != nil)
	if err := s.db.history.observe(id); err != nil {
		return err
	}
	if !pooled {
		return s.setTimeout(ctx, conn.PgConn())
	}
	if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		return fmt.Errorf("a connection pooler was found: connecting without prepared statements: %w", driver.ErrBadConn)
	}
	return s.checkTimeout(ctx, conn.PgConn())
}

// selectHistory names the data of a server and its timeline, which is another one after each promotion. A replica has none.
const selectHistory = `SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE
	(SELECT system_identifier::text FROM pg_control_system()) || ' timeline ' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END`

// historyOf is selectHistory in a transaction, which a pooler may have given another connection than the one before.
func (s *postgresSession) historyOf(ctx context.Context, tx *sql.Tx) (id string, err error) {
	if !s.isPooled.Load() || s.noHistory.Load() {
		return "", nil
	}
	err = tx.QueryRowContext(ctx, selectHistory).Scan(&id)
	return id, err
}

// isPostgresUnsupported recognizes services that speak PostgreSQL's protocol and have no log of their own.
func isPostgresUnsupported(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "0A000" || e.Code == "42883" || e.Code == "42501")
}

// isPooled reports whether the process that executes statements is another one than that which was announced when the connection was
// opened. A pooler announces a number of its own, because the process changes.
func isPooled(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	text, err := querySimple(ctx, conn, `SELECT pg_backend_pid()`)
	if err != nil {
		return false, fmt.Errorf("read the process id of the session: %w", err)
	}
	return text != strconv.FormatUint(uint64(conn.PID()), 10), nil
}

func (s *postgresSession) setTimeout(ctx context.Context, conn *pgconn.PgConn) error {
	if s.hasTimeout {
		return nil
	}
	_, err := querySimple(ctx, conn, `SET `+idleInTransaction+` = '`+idleInTransactionTimeout+`'`)
	return err
}

// checkTimeout warns if lost transactions keep their locks. A session behind a pooler has the settings of the user.
func (s *postgresSession) checkTimeout(ctx context.Context, conn *pgconn.PgConn) error {
	value, err := querySimple(ctx, conn, `SHOW `+idleInTransaction)
	if err == nil && value == "0" && !s.warned.Swap(true) {
		s.db.Log.Warn("behind a connection pooler, transactions of lost connections may keep their locks: run ALTER ROLE ... SET "+
			idleInTransaction+" = '"+idleInTransactionTimeout+"' for the user of the database", "database", s.db.name)
	}
	return err
}

// querySimple executes a statement by the simple protocol, which needs no prepared statement, and returns its only value; "" if
// it has none.
func querySimple(ctx context.Context, conn *pgconn.PgConn, statement string) (string, error) {
	results, err := conn.Exec(ctx, statement).ReadAll()
	if err != nil {
		return "", err
	}
	for _, result := range results {
		if err := result.Err; err != nil {
			return "", err
		}
		if len(result.Rows) == 1 && len(result.Rows[0]) == 1 {
			return string(result.Rows[0][0]), nil
		}
	}
	if len(results) == 0 {
		return "", errors.New("the PostgreSQL server gave no answer")
	}
	return "", nil
}
