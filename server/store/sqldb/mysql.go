package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"

	"github.com/vedette-io/vedette"
)

func mysqlDialect() Dialect {
	return Dialect{
		Name:            MySQL,
		migrations:      migrations("mysql"),
		goose:           goose.DialectMySQL,
		gooseLock:       func() ([]goose.ProviderOption, error) { return nil, nil }, // migrationLocker locks instead
		migrationLocker: userLock{},
		// MySQL would read and sort the whole table, and MariaDB start with the first row each time
		KeyHint:        " FORCE INDEX (objects_key)",
		purgeStatement: `DELETE FROM %s WHERE %s ORDER BY %s LIMIT %d`,
		// UNIX_TIMESTAMP is wrong in the hour that a time zone repeats
		clockExpr:         `TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))`,
		ForUpdate:         " FOR UPDATE",
		insert:            InsertValues,
		OnConflictUpdate:  onDuplicateKeyClause,
		size:              mysqlSize,
		translateError:    translateMySQLError,
		isRetryable:       isMySQLRetryable,
		isReadOnly:        isMySQLReadOnly,
		IsUniqueViolation: isMySQLUniqueViolation,
	}
}

// userLock lets one server at a time migrate. Unlike goose's table lock, which has a lease, a user
// lock is released when its connection ends, so that no server waits for one that crashed. It is
// taken before goose is called, because goose reads its table before it takes a lock, and MySQL
// makes a table visible before its first row.
type userLock struct{}

const userLockWait = 300 // seconds that a migration may take

// migrationLockName contains a hash of the database's name, because user locks belong to the whole
// server. It has the maximum length that MySQL allows. MySQL has no MD5 from version 9.6 on.
const migrationLockName = `CONCAT('vedette ', LEFT(SHA2(DATABASE(), 256), 56))`

// SessionLock waits for other servers that migrate.
func (userLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	var acquired sql.NullInt64
	err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(`+migrationLockName+`, ?)`, userLockWait).Scan(&acquired)
	if err == nil && acquired.Int64 != 1 {
		err = vedette.Errorf(vedette.Unavailable, "another server has been migrating the database for more than %d seconds", userLockWait)
	}
	return err
}

// SessionUnlock releases the lock.
func (userLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `DO RELEASE_LOCK(`+migrationLockName+`)`)
	return err
}

func connectMySQL(_ context.Context, d *DB, cfg Config) error {
	d.Dialect = mysqlDialect()
	config, err := mysqlConfig(cfg.URL)
	if err != nil {
		// The cause is left out, because it may contain the URL and so the password.
		return vedette.Errorf(vedette.Invalid,
			"the MySQL URL cannot be read: it must look like mysql://USER:PASSWORD@HOST:3306/DATABASE, with special characters of the password written as %%XX")
	}
	config.Logger = log.New(logWriter{d.Log}, "", 0)
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "the MySQL URL has settings that the driver rejects: check its query")
	}
	// The driver ignores the context of a commit, so reads and writes get a time limit.
	limitedConfig := config.Clone()
	limitedConfig.ReadTimeout, limitedConfig.WriteTimeout = minTimeout(config.ReadTimeout, queryTimeout),
		minTimeout(config.WriteTimeout, queryTimeout)
	limitedConnector, err := mysql.NewConnector(limitedConfig)
	if err != nil {
		return fmt.Errorf("limit the time of statements: %w", err)
	}
	d.migrator = sql.OpenDB(readCommittedConnector{timeoutConnector{connector}})
	d.cleanup = append(d.cleanup, d.migrator.Close)
	d.db = sql.OpenDB(readCommittedConnector{timeoutConnector{limitedConnector}})
	d.db.SetMaxOpenConns(cfg.MaxConns)
	d.db.SetMaxIdleConns(cfg.MaxConns)
	d.db.SetConnMaxIdleTime(IdleTimeout / 2)
	d.Reads = d.db
	d.closeIdleConns = func() {
		d.db.SetMaxIdleConns(-1)
		d.db.SetMaxIdleConns(cfg.MaxConns)
	}
	d.cleanup = append(d.cleanup, d.db.Close)
	if cfg.Sharing != nil {
		d.renewals = sql.OpenDB(readCommittedConnector{timeoutConnector{limitedConnector}})
		d.renewals.SetMaxOpenConns(1)
		d.cleanup = append(d.cleanup, d.renewals.Close)
	}
	return nil
}

// readCommittedConnector sets READ COMMITTED for all transactions of a connection: without gap
// locks, accounts do not wait for each other. database/sql would set it for each transaction, at
// the cost of a round trip.
type readCommittedConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c readCommittedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, `SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`, nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// IdleTimeout is after which time the server closes an idle connection, also in a
// transaction. A connection that was lost keeps its locks for that long. Our pool closes idle
// connections earlier.
const IdleTimeout = 20 * time.Second

// minTimeout returns the shorter of two timeouts; 0 means none.
func minTimeout(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// mysqlConfig returns the driver's settings of a URL. The query may contain any setting of the
// driver.
func mysqlConfig(rawURL string) (*mysql.Config, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	config, err := mysql.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return nil, err
	}
	config.Net = "tcp"
	config.Addr = u.Host
	config.DBName = strings.TrimPrefix(u.Path, "/")
	if socket := u.Query().Get("socket"); socket != "" {
		config.Net, config.Addr = "unix", socket
		delete(config.Params, "socket")
	} else if u.Port() == "" {
		config.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Collation = "utf8mb4_bin"
	config.ClientFoundRows = true   // an update counts a row that it finds but does not change
	config.InterpolateParams = true // otherwise each statement is prepared first, which costs a round trip
	config.MaxAllowedPacket = 0     // ask the server
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	setDefault(config.Params, "wait_timeout", strconv.Itoa(int(IdleTimeout/time.Second)))
	setDefault(config.Params, "innodb_lock_wait_timeout", strconv.Itoa(int(queryTimeout/time.Second/2)))
	if config.Timeout == 0 {
		config.Timeout = dialTimeout
	}
	config.Params["autocommit"] = "1" // a server may have another default, but one statement must be a transaction by itself
	config.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO'"
	return config, nil
}

// logWriter writes the driver's log lines to our log.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(line []byte) (int, error) {
	w.log.Debug("MySQL driver message", "line", strings.TrimSpace(string(line)))
	return len(line), nil
}

// onDuplicateKeyClause is OnConflictUpdate. MySQL sets the columns one after the other, and the
// condition sees columns that are already set.
func onDuplicateKeyClause(where string, columns []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = IF(" + where + ", VALUES(" + c + "), " + c + ")"
	}
	return " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
}

// mysqlSize updates the statistics first, because those that the server has may be old. Tables with a few rows are left out.
func mysqlSize(ctx context.Context, db *sql.DB) (size int64, err error) {
	rows, err := db.QueryContext(ctx, `ANALYZE TABLE objects, labelsets, labels, dictionaries, feeds, accounts,
		operation_changes, operation_objects, operations, tasks, clusters, upstream_answers`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		// one row per table, which is ignored
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil { // closed here, because the next query needs its connection
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables WHERE table_schema = DATABASE()`).Scan(&size)
	return size, err
}
