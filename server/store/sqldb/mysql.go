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
		Name:          MySQL,
		migrations:    migrations("mysql"),
		goose:         goose.DialectMySQL,
		migrationLock: userLock{},
		// MySQL would read and sort the whole table, and MariaDB start with the first row each time
		KeyHint:        " FORCE INDEX (objects_key)",
		purgeStatement: `DELETE FROM %s WHERE %s ORDER BY %s LIMIT %d`,
		// UNIX_TIMESTAMP is wrong in the hour that a time zone repeats
		clockExpr:         `TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))`,
		ForUpdate:         " FOR UPDATE",
		SkipLocked:        " FOR UPDATE SKIP LOCKED",
		insert:            InsertValues,
		OnConflictUpdate:  onDuplicateKeyClause,
		hasNoLaterTerm:    "VALUES(term) >= term",
		size:              mysqlSize,
		translateError:    translateMySQLError,
		isRetryable:       isMySQLRetryable,
		isReadOnly:        isMySQLReadOnly,
		isTerminated:      isMySQLTerminated,
		IsUniqueViolation: isMySQLUniqueViolation,
		openReplica:       openMySQLReplica,
	}
}

func connectMySQL(_ context.Context, d *DB, cfg Config) error {
	d.Dialect = mysqlDialect()
	config, err := readMySQLConfig(d, cfg.URL)
	if err != nil {
		return err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return errMySQLSettings
	}
	// The driver ignores the context of a commit, so reads and writes get a time limit.
	limitedConfig := config.Clone()
	limitedConfig.ReadTimeout, limitedConfig.WriteTimeout = minTimeout(config.ReadTimeout, queryTimeout),
		minTimeout(config.WriteTimeout, queryTimeout)
	limitedConnector, err := mysql.NewConnector(limitedConfig)
	if err != nil {
		return fmt.Errorf("limit the time of statements: %w", err)
	}
	_, hasSyncWait := config.Params[syncWait]
	session := func(connector driver.Connector) driver.Connector {
		return sessionConnector{timeoutConnector{connector}, d, hasSyncWait}
	}
	d.migrator = sql.OpenDB(session(connector))
	d.cleanup = append(d.cleanup, d.migrator.Close)
	d.db = sql.OpenDB(session(limitedConnector))
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
		d.renewals = sql.OpenDB(session(limitedConnector))
		d.renewals.SetMaxOpenConns(1)
		d.cleanup = append(d.cleanup, d.renewals.Close)
	}
	return nil
}

var errMySQLSettings = vedette.Errorf(vedette.Invalid, "the MySQL URL has settings that the driver rejects: check its query")

// readMySQLConfig is mysqlConfig with an error for users. The cause is left out, because it may contain the URL and so the password.
func readMySQLConfig(d *DB, rawURL string) (*mysql.Config, error) {
	config, err := mysqlConfig(rawURL)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid,
			"the MySQL URL cannot be read: it must look like mysql://USER:PASSWORD@HOST:3306/DATABASE, with special characters of the password written as %%XX")
	}
	config.Logger = log.New(logWriter{d.Log}, "", 0)
	return config, nil
}

// sessionConnector opens connections with the settings that we need. READ COMMITTED is for all transactions of a connection:
// without gap locks, accounts do not wait for each other. database/sql would set it for each transaction, at the cost of a round
// trip. At a node of a Galera cluster it also sets wsrep_sync_wait, and notes that locks are seen by one node only.
type sessionConnector struct {
	driver.Connector
	db          *DB
	hasSyncWait bool // the URL sets it
}

// Connect implements driver.Connector.
func (c sessionConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (c sessionConnector) prepare(ctx context.Context, conn driver.Conn) error {
	execer := conn.(driver.ExecerContext)
	if _, err := execer.ExecContext(ctx, `SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`, nil); err != nil {
		return err
	}
	queryer := conn.(driver.QueryerContext)
	isGalera, err := isGaleraNode(ctx, queryer)
	if err != nil {
		return err
	}
	history := selectServerName
	if isGalera {
		history = selectClusterState
	}
	id, err := queryValue(ctx, queryer, history)
	if err != nil {
		return fmt.Errorf("read which server it is: %w", err)
	}
	if err := c.db.history.observe(id); err != nil || !isGalera {
		return err
	}
	c.db.locksAreLocal.Store(true)
	if c.hasSyncWait {
		return nil
	}
	_, err = execer.ExecContext(ctx, `SET SESSION `+syncWait+` = 1`, nil)
	return err
}

// syncWait is the setting of Galera that makes each read wait until its node has applied all that any node has committed before:
// connections may lead to different nodes, and a commit is planned on what was read. It costs a message to the other nodes
// (docs/scaling.md). Writes need none, because a transaction that is based on old rows is rejected when it commits.
const syncWait = "wsrep_sync_wait"

// What names the history of the data: a server, because a replica that takes over may lack commits, or a Galera cluster, of
// which each node has all commits.
const (
	selectServerName = `SELECT CONCAT(@@GLOBAL.hostname, ':', @@GLOBAL.port, ' id ', @@GLOBAL.server_id)`
	// A node that does not belong to the majority yet, or any more, has none.
	selectClusterState = `SELECT CASE MAX(CASE WHEN VARIABLE_NAME = 'WSREP_READY' THEN VARIABLE_VALUE END)
		WHEN 'ON' THEN CONCAT('cluster ', MAX(CASE WHEN VARIABLE_NAME = 'WSREP_CLUSTER_STATE_UUID' THEN VARIABLE_VALUE END)) ELSE '' END
		FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN ('WSREP_READY', 'WSREP_CLUSTER_STATE_UUID')`
)

// isGaleraNode reports whether a connection leads to a node of a Galera cluster. MySQL does not know the variable.
func isGaleraNode(ctx context.Context, conn driver.QueryerContext) (bool, error) {
	value, err := queryValue(ctx, conn, `SELECT @@GLOBAL.wsrep_on`)
	var unknown *mysql.MySQLError
	if errors.As(err, &unknown) && unknown.Number == 1193 {
		return false, nil
	}
	return value == "1", err
}

// queryValue runs a query on a new connection that has one value.
func queryValue(ctx context.Context, conn driver.QueryerContext, query string) (string, error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	value := make([]driver.Value, 1)
	if err := rows.Next(value); err != nil {
		return "", err
	}
	if text, isText := value[0].([]byte); isText {
		return string(text), nil
	}
	return fmt.Sprint(value[0]), nil
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

// mysqlSize updates the statistics first, because those that the server has may be old. Replicas are left alone: a
// Galera cluster would stop for it. Tables with a few rows are left out.
func mysqlSize(ctx context.Context, db *sql.DB) (size int64, err error) {
	rows, err := db.QueryContext(ctx, `ANALYZE NO_WRITE_TO_BINLOG TABLE objects, labelsets, labels, dictionaries, feeds, accounts,
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
