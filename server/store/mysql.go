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
		priorityChunkSize: 256, // for fewer a transaction waits for the disk longer than it writes
		goose:             goose.DialectMySQL,
		gooseLock:         func() ([]goose.ProviderOption, error) { return nil, nil }, // migrating is locked as a whole
		migrationLocker:   userLock{},
		orderedJoin:       "STRAIGHT_JOIN",              // MariaDB prefers to begin with the few accounts and kinds, and reads all of their objects
		keyHint:           " FORCE INDEX (objects_key)", // MySQL prefers to read and sort the whole table, and MariaDB to begin with the first row each time
		purgeStatement:    `DELETE FROM %s WHERE %s ORDER BY %s LIMIT %d`,
		clockExpr:         `TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))`, // UNIX_TIMESTAMP goes wrong where the session's time zone repeats an hour
		forUpdate:         " FOR UPDATE",
		lookup:            mysqlLookup,
		upsert:            w.upsert,
		remove:            mysqlRemove,
		insert:            insertValues,
		onConflictUpdate:  onDuplicateKeyClause,
		size:              mysqlSize,
		translateError:    translateMySQLError,
		isRetryable:       isMySQLRetryable,
		isReadOnly:        isMySQLReadOnly,
		isUniqueViolation: isMySQLUniqueViolation,
		prepare:           w.prepare,
	}
}

// userLock lets one server at a time migrate. The database gives a user lock up
// when its connection ends, so that nobody waits for a server that crashed, as
// with the lease in goose's own table lock. It is taken before goose is called, since
// goose looks at its table before it takes a lock, and MySQL makes a table visible
// before there is a row in it.
type userLock struct{}

const userLockWait = 300 // seconds, for which a migration may take

// migrationLockName names the database, because user locks are the whole server's. It is
// as long as MySQL allows, whose versions from 9.6 have no MD5.
const migrationLockName = `CONCAT('vedette ', LEFT(SHA2(DATABASE(), 256), 56))`

// SessionLock waits for other servers that migrate.
func (userLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	var acquired sql.NullInt64
	err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(`+migrationLockName+`, ?)`, userLockWait).Scan(&acquired)
	if err == nil && acquired.Int64 != 1 {
		err = vedette.Errorf(vedette.Unavailable, "another server has been migrating the database for %d seconds", userLockWait)
	}
	return err
}

func (userLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `DO RELEASE_LOCK(`+migrationLockName+`)`)
	return err
}

func connectMySQL(_ context.Context, s *Store, cfg Config) error {
	s.dialect = mysqlDialect()
	config, err := mysqlConfig(cfg.URL)
	if err != nil {
		// The cause may quote the URL, and with it the password.
		return vedette.Errorf(vedette.Invalid, "the MySQL URL cannot be read: it must look like mysql://USER:PASSWORD@HOST:3306/DATABASE, with special characters of the password written as %%XX")
	}
	config.Logger = log.New(logWriter{s.log}, "", 0)
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "the MySQL URL has settings that the driver does not take")
	}
	// The driver's commit listens to no context.
	limitedConfig := config.Clone()
	limitedConfig.ReadTimeout, limitedConfig.WriteTimeout = minTimeout(config.ReadTimeout, queryTimeout), minTimeout(config.WriteTimeout, queryTimeout)
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

// readCommittedConnector has all transactions of a connection read what is committed: without gap
// locks accounts don't wait for each other. Said for each transaction, as database/sql
// would, it costs a round trip more each time.
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

// mysqlIdleTimeout is after how long the server gives up a connection on which nothing
// is asked, in a transaction too: so long may a connection that was lost keep
// what it has locked. Ours are closed before.
const mysqlIdleTimeout = 20 * time.Second

// minTimeout returns the shorter one of two times, of which zero means for ever.
func minTimeout(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// mysqlConfig makes the driver's settings of a URL, whose query may hold any of
// theirs.
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
	config.ClientFoundRows = true   // an update that changes nothing has still found its row
	config.InterpolateParams = true // else each statement is prepared first, which is another round trip
	config.MaxAllowedPacket = 0     // ask the server
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	setDefault(config.Params, "wait_timeout", strconv.Itoa(int(mysqlIdleTimeout/time.Second)))
	setDefault(config.Params, "innodb_lock_wait_timeout", strconv.Itoa(int(queryTimeout/time.Second/2)))
	if config.Timeout == 0 {
		config.Timeout = dialTimeout
	}
	config.Params["autocommit"] = "1" // a server may have another default, and one statement is a transaction by itself
	config.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO'"
	return config, nil
}

// logWriter brings the driver's lines into our log.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(line []byte) (int, error) {
	w.log.Debug("the MySQL driver says", "line", strings.TrimSpace(string(line)))
	return len(line), nil
}

// mysqlStatements writes rows by statements of up to a quarter of the packet
// that the server takes.
type mysqlStatements struct{ maxBytes int }

func (w *mysqlStatements) prepare(ctx context.Context, s *Store) error {
	var packet int
	if err := s.db.QueryRowContext(ctx, `SELECT @@max_allowed_packet`).Scan(&packet); err != nil {
		return fmt.Errorf("ask for max_allowed_packet: %w", err)
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

// MySQL reserves "stored", as MariaDB does not: it stands in quotes where no table's
// name is before it.
const (
	mysqlUpsertHead = "INSERT INTO objects (account_id, kind_id, namespace, name, labelset, `stored`, uid, version, application, head, body) VALUES "
	mysqlUpsertTail = " ON DUPLICATE KEY UPDATE labelset = VALUES(labelset), `stored` = VALUES(`stored`), uid = VALUES(uid), version = VALUES(version)," +
		" application = VALUES(application), head = VALUES(head), body = VALUES(body)"
)

// upsert uses VALUES(column), which MySQL deprecates: MariaDB knows nothing else.
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

// rowsPerStatement returns how many of the rows to write at once, at least one.
func (w *mysqlStatements) rowsPerStatement(rows []objectRow) int {
	const otherColumns = 2048 // bytes that all other columns take at most, nearly always
	size, n := 0, 0
	for n < len(rows) && n < statementSizes[0] {
		size += len(rows[n].head) + len(rows[n].body) + otherColumns
		if size > w.maxBytes {
			break
		}
		n++
	}
	return largestSizeWithin(max(n, 1), statementSizes[0])
}

// onDuplicateKeyClause is onConflictUpdate. The columns are set one after the other, and the
// condition sees those that are set already.
func onDuplicateKeyClause(where string, columns []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = IF(" + where + ", VALUES(" + c + "), " + c + ")"
	}
	return " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
}

// mysqlRemove has the rows found by their key: a table that is not much bigger would be
// read as a whole, and rows of other accounts locked.
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
			return fmt.Errorf("look %d keys up: %w", n, err)
		}
		keys = keys[n:]
	}
	return nil
}

// mysqlKeys writes keys as ranges of the primary key, a form that MySQL's and
// MariaDB's optimizers both see through, which tuples in an IN list are not.
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

// mysqlSize has the server count first: left to itself it may say what was true
// some time ago.
func mysqlSize(ctx context.Context, db *sql.DB) (size int64, err error) {
	rows, err := db.QueryContext(ctx, `ANALYZE TABLE objects, labelsets, labels, dictionaries, feeds, accounts, operations, tasks`)
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		// One row per table, of no interest.
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables WHERE table_schema = DATABASE()`).Scan(&size)
	return size, err
}
