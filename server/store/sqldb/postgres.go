package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/vedette-io/vedette"
)

// postgresDialect uses one array per column for any number of rows, so that one plan serves
// batches of all sizes.
func postgresDialect() Dialect {
	return Dialect{
		Name:              PostgreSQL,
		migrations:        migrations("postgres"),
		goose:             goose.DialectPostgres,
		migrationLock:     transactionLock{},
		numberedParams:    true,
		arrayParams:       true,
		purgeStatement:    purgeByIDStatement,
		clockExpr:         `(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint`,
		ForUpdate:         " FOR UPDATE",
		SkipLocked:        " FOR UPDATE SKIP LOCKED",
		isolation:         sql.LevelReadCommitted,
		insert:            postgresInsert,
		OnConflictUpdate:  onConflictClause,
		hasNoLaterTerm:    "excluded.term >= freshness.term",
		size:              postgresSize,
		translateError:    translatePostgresError,
		isRetryable:       isPostgresRetryable,
		isReadOnly:        isPostgresReadOnly,
		isOutdated:        isPostgresOutdated,
		isTerminated:      isPostgresTerminated,
		IsUniqueViolation: isPostgresUniqueViolation,
		openReplica:       openPostgresReplica,
		positionQuery:     postgresPosition,
	}
}

func connectPostgres(ctx context.Context, d *DB, cfg Config) error {
	d.Dialect = postgresDialect()
	config, err := postgresConfig(cfg.URL)
	if err != nil {
		return err
	}
	session := &postgresSession{db: d}
	_, session.hasTimeout = config.ConnConfig.RuntimeParams[idleInTransaction]
	d.historyOf = session.historyOf
	config.BeforeConnect = session.beforeConnect
	config.AfterConnect = session.afterConnect
	config.ShouldPing = isConnClosed
	config.MaxConns = int32(min(cfg.MaxConns, 10_000)) //nolint:gosec // limited to 10,000
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("create a connection pool: %w", err)
	}
	d.cleanup = append(d.cleanup, func() error { pool.Close(); return nil })
	d.db = stdlib.OpenDBFromPool(pool)
	d.db.SetMaxIdleConns(0) // the pool of pgx keeps them
	d.Reads = d.db
	d.closeIdleConns = pool.Reset
	d.cleanup = append(d.cleanup, d.db.Close)
	// A migration has a connection for its lock, besides the pool, which may be as small as one connection.
	d.migrator = stdlib.OpenDB(*config.ConnConfig, stdlib.OptionBeforeConnect(session.beforeConnect),
		stdlib.OptionAfterConnect(session.afterConnect))
	d.migrator.SetConnMaxIdleTime(migratorIdleTime)
	d.cleanup = append(d.cleanup, d.migrator.Close)
	if cfg.Sharing != nil {
		return d.openPostgresRenewals(ctx, config)
	}
	return nil
}

// migratorIdleTime is after which time the connections for migrations are closed: a migration has many steps, and none follows it.
const migratorIdleTime = time.Second

// openPostgresRenewals opens the connection of the lease, which does not wait for readers.
func (d *DB) openPostgresRenewals(ctx context.Context, config *pgxpool.Config) error {
	single := config.Copy()
	single.MaxConns = 1
	renewals, err := pgxpool.NewWithConfig(ctx, single)
	if err != nil {
		return fmt.Errorf("create the connection of the lease: %w", err)
	}
	d.cleanup = append(d.cleanup, func() error { renewals.Close(); return nil })
	d.renewals = stdlib.OpenDBFromPool(renewals)
	d.renewals.SetMaxIdleConns(0)
	closeIdleConns := d.closeIdleConns
	d.closeIdleConns = func() { closeIdleConns(); renewals.Reset() }
	d.cleanup = append(d.cleanup, d.renewals.Close)
	return nil
}

// postgresConfig returns the driver's settings of a URL. Without a timeout of ours, the pool opens a connection for up to
// two minutes, and whoever needs it waits: the database may have been frozen for a moment and never answer it.
func postgresConfig(text string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, explainPostgresURL(text)
	}
	config.ConnConfig.ConnectTimeout = minTimeout(config.ConnConfig.ConnectTimeout, dialTimeout)
	return config, nil
}

// isConnClosed reports whether the server has closed an idle connection; the ping that follows
// then removes it. A connection that was lost without notice is not pinged: WithTimeout notices
// that, and closes all idle connections.
func isConnClosed(_ context.Context, p pgxpool.ShouldPingParams) bool {
	//nolint:staticcheck // SA1019: Ping, the recommended replacement, waits for a server that does not answer; CheckConn does not.
	return p.IdleDuration > time.Second && p.Conn.PgConn().CheckConn() != nil
}

func setDefault(settings map[string]string, name, value string) {
	if _, exists := settings[name]; !exists {
		settings[name] = value
	}
}

func postgresInsert(ctx context.Context, tx *Tx, table string, columns []Column, rows [][]any, conflictClause string) error {
	if len(rows) == 0 {
		return nil
	}
	names := make([]string, len(columns))
	types := make([]string, len(columns))
	arrays := make([]any, len(columns))
	for i, c := range columns {
		names[i] = c.name
		types[i] = fmt.Sprintf("$%d::%s[]", i+1, c.pgType)
		arrays[i] = arrayOf(rows, i)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO `+table+` (`+strings.Join(names, ", ")+`) SELECT * FROM unnest(`+strings.Join(types,
		", ")+`)`+conflictClause, arrays...)
	if err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	return nil
}

// arrayOf returns the values of a column, which are all int64 or all string.
func arrayOf(rows [][]any, column int) any {
	if _, ok := rows[0][column].(string); ok {
		return columnValues[string](rows, column)
	}
	return columnValues[int64](rows, column)
}

func columnValues[T any](rows [][]any, column int) []T {
	values := make([]T, len(rows))
	for i, r := range rows {
		values[i], _ = r[column].(T)
	}
	return values
}

func postgresSize(ctx context.Context, db *sql.DB) (size int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace`).Scan(&size)
	return size, err
}

// sslModes are the values of sslmode that the driver knows.
var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// explainPostgresURL returns why the driver rejects a URL. The driver's own error is left out, because it
// may contain the URL and so the password.
func explainPostgresURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return unreadablePostgresURL("")
	}
	query := u.Query()
	if mode := query.Get("sslmode"); mode != "" && !slices.Contains(sslModes, mode) {
		return unreadablePostgresURL("sslmode must be one of " + strings.Join(sslModes, ", "))
	}
	for _, key := range []string{"sslrootcert", "sslcert", "sslkey"} {
		if file := query.Get(key); file != "" && !isReadable(file) {
			return unreadablePostgresURL(key + " names the file " + file + ", which cannot be read")
		}
	}
	if query.Has("sslcert") != query.Has("sslkey") {
		return unreadablePostgresURL("sslcert and sslkey must be set together")
	}
	return unreadablePostgresURL("")
}

func isReadable(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	_ = file.Close() // nothing was written
	return true
}

// unreadablePostgresURL returns an error with a reason; "" if it is not known.
func unreadablePostgresURL(reason string) error {
	if reason == "" {
		reason = "it must look like postgres://USER:PASSWORD@HOST:5432/DATABASE, with special characters of the password written as %XX"
	}
	return vedette.Errorf(vedette.Invalid, "the PostgreSQL URL cannot be read: %s", reason)
}
