package store

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

func mysqlDialect() dialect {
	w := &mysqlStatements{maxBytes: 1 << 20}
	return dialect{
		name:              "MySQL",
		migrations:        migrations("mysql"),
		priorityChunkSize: 256, // a smaller transaction waits longer for the disk than it writes
		goose:             goose.DialectMySQL,
		gooseLock:         func() ([]goose.ProviderOption, error) { return nil, nil }, // migrationLocker locks instead
		migrationLocker:   userLock{},
		orderedJoin:       "STRAIGHT_JOIN", // MariaDB would start with the few accounts and kinds, and read all of their objects
		// MySQL would read and sort the whole table, and MariaDB start with the first row each time
		keyHint:        " FORCE INDEX (objects_key)",
		keyRange:       "o.account_id > 0", // index conditions need a range
		seeksByAccount: true,
		purgeStatement: `DELETE FROM %s WHERE %s ORDER BY %s LIMIT %d`,
		emptyBytes:     "''",
		hexExpr:        "HEX(?)",
		ownedTables:    "objects p STRAIGHT_JOIN objects o ON o.owner = p.uid AND o.account_id + 0 = p.account_id",
		concatBytes:    func(columns ...string) string { return "CONCAT(" + strings.Join(columns, ", ") + ")" },
		// UNIX_TIMESTAMP is wrong in the hour that a time zone repeats
		clockExpr:         `TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))`,
		forUpdate:         " FOR UPDATE",
		lookup:            mysqlLookup,
		upsert:            w.upsert,
		remove:            mysqlRemove,
		insert:            insertValues,
		onConflictUpdate:  onDuplicateKeyClause,
		onConflictAdd:     onDuplicateKeyAddClause,
		size:              mysqlSize,
		translateError:    translateMySQLError,
		isRetryable:       isMySQLRetryable,
		isReadOnly:        isMySQLReadOnly,
		isUniqueViolation: isMySQLUniqueViolation,
		prepare:           w.prepare,
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

func connectMySQL(_ context.Context, s *Store, cfg Config) error {
	s.dialect = mysqlDialect()
	config, err := mysqlConfig(cfg.URL)
	if err != nil {
		// The cause is left out, because it may contain the URL and so the password.
		return vedette.Errorf(vedette.Invalid,
			"the MySQL URL cannot be read: it must look like mysql://USER:PASSWORD@HOST:3306/DATABASE, with special characters of the password written as %%XX")
	}
	config.Logger = log.New(logWriter{s.log}, "", 0)
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
	s.migrator = sql.OpenDB(readCommittedConnector{timeoutConnector{connector}})
	s.cleanup = append(s.cleanup, s.migrator.Close)
	s.db = sql.OpenDB(readCommittedConnector{timeoutConnector{limitedConnector}})
	s.db.SetMaxOpenConns(cfg.MaxConns)
	s.db.SetMaxIdleConns(cfg.MaxConns)
	s.db.SetConnMaxIdleTime(mysqlIdleTimeout / 2)
	s.reader = s.db
	s.closeIdleConns = func() {
		s.db.SetMaxIdleConns(-1)
		s.db.SetMaxIdleConns(cfg.MaxConns)
	}
	s.cleanup = append(s.cleanup, s.db.Close)
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

// mysqlIdleTimeout is after which time the server closes an idle connection, also in a
// transaction. A connection that was lost keeps its locks for that long. Our pool closes idle
// connections earlier.
const mysqlIdleTimeout = 20 * time.Second

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
	config.Net, config.Addr, config.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
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
	setDefault(config.Params, "wait_timeout", strconv.Itoa(int(mysqlIdleTimeout/time.Second)))
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

// mysqlStatements writes rows by statements of at most a quarter of the server's
// max_allowed_packet.
type mysqlStatements struct{ maxBytes int }

func (w *mysqlStatements) prepare(ctx context.Context, s *Store) error {
	var packet int
	if err := s.db.QueryRowContext(ctx, `SELECT @@max_allowed_packet`).Scan(&packet); err != nil {
		return fmt.Errorf("read max_allowed_packet: %w", err)
	}
	w.maxBytes = packet / 4
	for _, n := range statementSizes {
		if err := s.writeStatements.prepare(ctx, s.db, mysqlUpsertStatement(n)); err != nil {
			return err
		}
	}
	return nil
}

func mysqlUpsertStatement(n int) string {
	return mysqlUpsertHead + valueRows(upsertRow, n) + mysqlUpsertTail
}

// MySQL reserves the word "stored", MariaDB does not: it must be quoted unless a table's name
// precedes it.
const (
	mysqlUpsertHead = "INSERT INTO objects (account_id, kind_id, namespace, name, labelset, `stored`, uid, version, application, cluster, owner, attributes, head, body) VALUES "
	mysqlUpsertTail = " ON DUPLICATE KEY UPDATE labelset = VALUES(labelset), `stored` = VALUES(`stored`), uid = VALUES(uid), version = VALUES(version)," +
		" application = VALUES(application), cluster = VALUES(cluster), owner = VALUES(owner), attributes = VALUES(attributes), head = VALUES(head), body = VALUES(body)"
)

// upsert uses VALUES(column), which MySQL has deprecated, because MariaDB has no alternative.
func (w *mysqlStatements) upsert(ctx context.Context, tx *transaction, accountID int64, rows []objectRow) error {
	for len(rows) > 0 {
		n := w.rowsPerStatement(rows)
		if err := tx.execPrepared(ctx, mysqlUpsertStatement(n), upsertArgs(accountID, toMicros(tx.now), rows[:n])...); err != nil {
			return fmt.Errorf("upsert %d rows: %w", n, err)
		}
		rows = rows[n:]
	}
	return nil
}

// rowsPerStatement returns how many of the rows to write in one statement, at least one.
func (w *mysqlStatements) rowsPerStatement(rows []objectRow) int {
	const otherColumns = 3072 // bytes of all other columns, nearly always fewer
	size, n := 0, 0
	for n < len(rows) && n < statementSizes[0] {
		size += len(rows[n].head) + len(rows[n].body) + len(rows[n].attributes) + otherColumns
		if size > w.maxBytes {
			break
		}
		n++
	}
	return largestSizeWithin(max(n, 1), statementSizes[0])
}

// onDuplicateKeyClause is onConflictUpdate. MySQL sets the columns one after the other, and the
// condition sees columns that are already set.
func onDuplicateKeyClause(where string, columns []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = IF(" + where + ", VALUES(" + c + "), " + c + ")"
	}
	return " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
}

// onDuplicateKeyAddClause is onConflictAdd.
func onDuplicateKeyAddClause(_ string, _, columns []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = " + c + " + VALUES(" + c + ")"
	}
	return " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
}

// mysqlRemove makes the planner use the primary key. In a small table it would read all rows and
// lock those of other accounts.
func mysqlRemove(ctx context.Context, tx *transaction, accountID int64, keys []rowKey) error {
	return removeByNamespace(ctx, tx, `DELETE objects FROM objects`+tx.dialect.keyHint, accountID, keys)
}

func mysqlLookup(ctx context.Context, s *Store, accountID int64, keys []rowKey, found func(storedRow)) error {
	for len(keys) > 0 {
		n := min(len(keys), 512)
		where, args := mysqlKeys(keys[:n])
		err := s.queryEach(ctx, scanStored(found), `SELECT `+lookupColumns+` FROM objects o LEFT JOIN labelsets l ON l.id = o.labelset
			WHERE o.account_id = ? AND (`+where+`)`, append([]any{accountID}, args...)...)
		if err != nil {
			return fmt.Errorf("look up %d keys: %w", n, err)
		}
		keys = keys[n:]
	}
	return nil
}

// mysqlKeys returns a condition for keys that the optimizers of both MySQL and MariaDB turn into
// ranges of the primary key, unlike tuples in an IN list.
func mysqlKeys(keys []rowKey) (string, []any) {
	parts := []string{}
	args := make([]any, 0, len(keys)*2)
	for _, run := range groupByNamespace(keys) {
		parts = append(parts, `o.kind_id = ? AND o.namespace = ? AND o.name IN (`+placeholders(len(run))+`)`)
		args = append(args, run[0].kindID, run[0].namespace)
		for _, k := range run {
			args = append(args, k.name)
		}
	}
	return strings.Join(parts, " OR "), args
}

// mysqlSize updates the statistics first, because those that the server has may be old.
func mysqlSize(ctx context.Context, db *sql.DB) (size int64, err error) {
	rows, err := db.QueryContext(ctx, `ANALYZE TABLE objects, labelsets, labels, dictionaries, feeds, accounts, operations, tasks, clusters`)
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
