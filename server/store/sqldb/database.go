package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/store/admission"
)

// Config selects the database.
type Config struct {
	// URL is "sqlite:PATH", "postgres://user:password@host:5432/database" or
	// "mysql://user:password@host:3306/database" (also for MariaDB). The driver gets the
	// query of the latter two.
	URL string
	Log *slog.Logger // nil logs nothing
	// Server holds the lease of the database, so that no other server uses it at the
	// same time. If it is empty no lease is taken, for tools and tests that only read or
	// are alone.
	Server vedette.ServerID
	Host   string // of the server, for messages to operators
	// Sharing lets other servers use the database at the same time; nil if this one uses it alone. SQLite cannot be shared.
	Sharing *Sharing
	// MaxConns is the maximum number of connections to the database; 0 means 16. Each is a
	// process of some 10 MB on a PostgreSQL server.
	MaxConns int
	// OnTransaction is called after each attempt to write, with its result and how long it took.
	// It must not block; nil is for none.
	OnTransaction func(result TransactionResult, took time.Duration)
	// Replicas are URLs of databases that follow the one of URL, and are read instead of it where that makes no difference.
	Replicas []string
	// OnReplicaRead is called after each read that a replica could have answered. It must not block; nil is for none.
	OnReplicaRead func(ReplicaResult)
	// Shards are further databases over which accounts are spread. Only package store opens them.
	Shards []Shard
	// token identifies this process; empty for a random one.
	token string
	// laterMigrations are those of a later release, which tests pretend to have; nil for none.
	laterMigrations fs.FS
}

// DB is a database that the parts of the store share: its connections, its lease, and how it differs from others. Its
// methods may be called concurrently.
type DB struct {
	Dialect         Dialect
	name            string  // for messages: its file, or its server and name
	db              *sql.DB // for writes; one connection with SQLite
	Reads           *sql.DB // the same as db, except with SQLite, whose readers do not wait for the writer
	durable         *sql.DB // SQLite only: its commits survive a power failure; nil if all do
	migrator        *sql.DB // like db, but without a time limit for statements
	renewals        *sql.DB // one connection for the lease of a server that shares the database; otherwise nil
	Log             *slog.Logger
	writeSemaphore  *admission.Semaphore
	writeStatements statements     // of db
	readStatements  statements     // of reader
	lease           *databaseLease // nil if none is needed
	sharing         *Sharing       // nil if no other server uses the database
	hasServersTable bool           // the schema has it
	knownSchema     int64          // the newest version of the schema that this program knows
	writes          writeState
	slowWrites      logthrottle.Limiter // lines of the log

	laterMigrations fs.FS // as in Config

	history        databaseHistory
	historyOf      func(ctx context.Context, tx *sql.Tx) (string, error) // nil if each connection stays with one server
	locksAreLocal  atomic.Bool                                           // a lock is seen by one node only, see Tx.WriteToLock
	directory      string                                                // of a SQLite database; empty for others
	cleanup        []func() error                                        // called by Close in reverse order
	opened         atomic.Bool                                           // the first connection has succeeded
	onTransaction  func(result TransactionResult, took time.Duration)
	replicas       *replicas // nil if there are none
	onReplicaRead  func(ReplicaResult)
	closeIdleConns func() // nil with SQLite, which has no connections to lose
}

// Open connects, migrates the schema, and calls prepare. The error is vedette.Unavailable if the database does not
// answer, so that the caller may retry, and vedette.Invalid if retrying is useless: the URL is
// invalid, or a newer version of this program has migrated the schema.
func Open(ctx context.Context, cfg Config, prepare func(ctx context.Context, db *DB) error) (*DB, error) {
	d, cfg := newDB(cfg)
	err := d.connect(ctx, cfg)
	if err == nil {
		err = prepare(ctx, d)
	}
	if err != nil {
		return nil, errors.Join(d.WrapError("open the database", err), d.Close())
	}
	d.opened.Store(true)
	return d, nil
}

// newDB returns a database without connections, and cfg with its defaults.
func newDB(cfg Config) (*DB, Config) {
	d := &DB{Log: cfg.Log, name: nameOf(cfg.URL), onTransaction: cfg.OnTransaction, onReplicaRead: cfg.OnReplicaRead,
		laterMigrations: cfg.laterMigrations,
		writeStatements: statements{}, readStatements: statements{}}
	d.slowWrites.Interval = time.Minute
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.onReplicaRead == nil {
		d.onReplicaRead = func(ReplicaResult) {}
	}
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = 16
	}
	return d, cfg
}

// nameOf returns what a URL names, without a password.
func nameOf(databaseURL string) string {
	if path, isSQLite := FilePath(databaseURL); isSQLite {
		return path
	}
	if u, err := url.Parse(databaseURL); err == nil {
		return u.Host + u.Path
	}
	return ""
}

func (d *DB) connect(ctx context.Context, cfg Config) error {
	connect, err := connectFuncFor(cfg.URL)
	if err != nil {
		return err
	}
	if err := connect(ctx, d, cfg); err != nil {
		return err
	}
	if err := d.prepareConnected(ctx, cfg); err != nil {
		return err
	}
	if err := d.openReplicas(ctx, cfg); err != nil {
		return err
	}
	return d.acquireLeaseAndMigrate(ctx, cfg)
}

// prepareConnected lets statements run.
func (d *DB) prepareConnected(ctx context.Context, cfg Config) (err error) {
	d.writeSemaphore = admission.NewSemaphore(d.Dialect.maxWriters(cfg.MaxConns))
	if err := d.WithTimeout(ctx, d.db.PingContext); err != nil {
		return err
	}
	d.knownSchema, err = d.knownVersion()
	return err
}

// acquireLeaseAndMigrate acquires the lease before it changes the schema, because another server
// that is running would not survive that. A schema from before the lease is migrated first. Servers that share the database migrate it
// while others run, if these can use the result.
func (d *DB) acquireLeaseAndMigrate(ctx context.Context, cfg Config) error {
	if cfg.Server == "" || d.Dialect.clockExpr == "" {
		if cfg.Sharing != nil {
			return vedette.Errorf(vedette.Invalid, "%s is used by one process at a time, so servers cannot share it: use PostgreSQL, MariaDB or MySQL", d.Dialect.Name)
		}
		return d.migrate(ctx)
	}
	version, err := d.storedVersion(ctx)
	if err != nil {
		return err
	}
	d.hasServersTable = version >= serversVersion
	if cfg.Sharing == nil {
		return d.acquireAndMigrate(ctx, cfg, version)
	}
	if !d.hasServersTable {
		if err := d.migrateAlone(ctx, cfg, version); err != nil {
			return err
		}
		d.hasServersTable = true
	}
	if err := d.migrateBesideOthers(ctx); err != nil {
		return err
	}
	d.sharing = cfg.Sharing
	return d.acquireLease(ctx, cfg)
}

// acquireAndMigrate is acquireLeaseAndMigrate for a server that uses the database alone.
func (d *DB) acquireAndMigrate(ctx context.Context, cfg Config, version int64) error {
	if version >= leaseVersion {
		if err := d.acquireLease(ctx, cfg); err != nil {
			return err
		}
	}
	if err := d.migrate(ctx); err != nil {
		return err
	}
	d.hasServersTable = true
	if version >= leaseVersion {
		return nil
	}
	return d.acquireLease(ctx, cfg)
}

// migrateAlone migrates a schema that servers cannot share yet, while this one uses the database alone.
func (d *DB) migrateAlone(ctx context.Context, cfg Config, version int64) error {
	if version < leaseVersion {
		return d.migrate(ctx)
	}
	cfg.Sharing = nil
	err := d.acquireLease(ctx, cfg)
	if err == nil {
		err = d.migrate(ctx)
		err = errors.Join(err, d.lease.release()) //nolint:contextcheck // it is released even if ctx has ended
		d.lease, d.cleanup = nil, d.cleanup[:len(d.cleanup)-1]
	}
	if vedette.KindOf(err) != vedette.Conflict {
		return err
	}
	if migrated, errRead := d.storedVersion(ctx); errRead != nil || migrated < serversVersion {
		return errors.Join(err, errRead)
	}
	return nil // another server that shares the database has migrated it
}

// acquireLease acquires the lease, which Close releases.
func (d *DB) acquireLease(ctx context.Context, cfg Config) error {
	l := newLease(d, cfg)
	if err := l.acquire(ctx); err != nil {
		return err
	}
	d.lease = l
	d.cleanup = append(d.cleanup, l.release)
	return nil
}

// Close waits for transactions in progress and closes the database. Idle connections that the database
// has closed before are not an error, because nothing is lost.
func (d *DB) Close() error {
	errs := []error{d.writeStatements.close(), d.readStatements.close()}
	for i := len(d.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, d.cleanup[i]())
	}
	d.cleanup = nil
	err := errors.Join(errs...)
	if hasServer := d.closeIdleConns != nil; err != nil && hasServer {
		d.Log.Debug("closing connections to the database failed", "error", err)
		return nil
	}
	return err
}

// Ping returns an error if the database does not answer.
func (d *DB) Ping(ctx context.Context) error {
	return d.WrapError("ping the database", d.WithTimeout(ctx, d.Reads.PingContext))
}

// WriteFunc is write or WriteLowPriority.
type WriteFunc func(ctx context.Context, do func(ctx context.Context, tx *Tx) error) error

// Write runs do in one transaction. After a deadlock or a serialization failure it is retried, see
// retryOnConflict, so do must not keep state from its first run.
func (d *DB) Write(ctx context.Context, do func(ctx context.Context, tx *Tx) error) error {
	permit, err := d.writeSemaphore.Acquire(ctx)
	if err != nil {
		return err
	}
	defer permit.Release()
	return d.retryOnConflict(ctx, func() error { return d.writeOnce(ctx, do) })
}

// ExecWrite is write for one statement, which is a transaction by itself and so needs only one
// round trip. It returns the number of affected rows.
func (d *DB) ExecWrite(ctx context.Context, statement Statement, args ...any) (n int64, err error) {
	permit, err := d.writeSemaphore.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer permit.Release()
	err = d.retryOnConflict(ctx, func() (err error) {
		n, err = d.execute(ctx, statement, args...)
		d.noteWrite(err)
		return err
	})
	return n, err
}

func (d *DB) execute(ctx context.Context, statement Statement, args ...any) (n int64, err error) {
	if err := d.lease.check(ctx); err != nil {
		return 0, err
	}
	if prepared := d.writeStatements[statement.SQL]; prepared != nil {
		err = d.WithTimeout(ctx, func(ctx context.Context) (err error) {
			n, err = rowsAffected(prepared.ExecContext(ctx, args...))
			return err
		})
		return n, statement.wrap(err)
	}
	err = d.withConn(ctx, d.db, func(ctx context.Context, conn *sql.Conn) (err error) {
		if err := d.history.err(); err != nil {
			return err
		}
		n, err = exec(ctx, conn, &d.Dialect, statement, args...)
		return err
	})
	return n, err
}

// WithSource returns a context for what a source causes, such as the host of an agent. Its transactions wait behind those
// that callers wait for, and take turns with those of other sources.
func WithSource(ctx context.Context, source string) context.Context {
	return admission.WithSource(ctx, source)
}

// WriteLowPriority is write for long transactions that no caller waits for.
func (d *DB) WriteLowPriority(ctx context.Context, do func(ctx context.Context, tx *Tx) error) error {
	permit, err := d.writeSemaphore.AcquireLow(ctx)
	if err != nil {
		return err
	}
	defer permit.Release()
	return d.retryOnConflict(ctx, func() error { return d.writeOnce(ctx, do) })
}

func (d *DB) writeOnce(ctx context.Context, do func(ctx context.Context, tx *Tx) error) error {
	if err := d.lease.check(ctx); err != nil {
		return err
	}
	return d.withConn(ctx, d.db, func(ctx context.Context, conn *sql.Conn) error {
		return d.runTx(ctx, conn, do, d.lease.checkBeforeCommit)
	})
}

// runTx runs do and then beforeCommit in a transaction, and commits it if both succeed.
func (d *DB) runTx(ctx context.Context, conn *sql.Conn, do, beforeCommit func(ctx context.Context, tx *Tx) error) error {
	sqlTx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: d.Dialect.isolation})
	if err != nil {
		d.noteWrite(err) // SQLite says here that it is read-only
		return d.retryOnOtherConnection(err)
	}
	t := &Tx{Tx: sqlTx, db: d, Dialect: &d.Dialect, Now: time.Now()}
	err = d.verifyHistory(ctx, sqlTx)
	if err == nil {
		err = do(ctx, t)
	}
	if err == nil {
		err = beforeCommit(ctx, t)
	}
	if err != nil {
		d.noteWrite(err)
		return errors.Join(d.retryOnOtherConnection(err), ignoreTxDone(sqlTx.Rollback()))
	}
	err = sqlTx.Commit()
	d.noteWrite(err)
	return err
}

// ignoreTxDone drops the error that a transaction is already rolled back, because its context
// ended or its connection broke.
func ignoreTxDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// Tx is a transaction with the only clock that is used within it.
type Tx struct {
	*sql.Tx
	db      *DB
	Dialect *Dialect
	Now     time.Time
}

// WriteToLock executes a statement that writes the row which the next one locks by ForUpdate, on databases whose locks are seen by
// one node only, as with Galera. There, of two transactions at two nodes that write the same row, the one that
// commits later fails and is retried, whereas a lock would stop neither. Elsewhere it does nothing.
func (t *Tx) WriteToLock(ctx context.Context, statement Statement, args ...any) error {
	if !t.db.locksAreLocal.Load() {
		return nil
	}
	_, err := t.Exec(ctx, statement, args...)
	return err
}

// Exec executes a statement, and returns the number of affected rows.
func (t *Tx) Exec(ctx context.Context, statement Statement, args ...any) (int64, error) {
	if prepared := t.db.writeStatements[statement.SQL]; prepared != nil {
		n, err := rowsAffected(t.StmtContext(ctx, prepared).ExecContext(ctx, args...)) //nolint:sqlclosecheck // ends with the transaction
		return n, statement.wrap(err)
	}
	return exec(ctx, t.Tx, t.Dialect, statement, args...)
}

// ExecPrepared is Exec for a statement that was prepared. It does not ask for the number of affected rows.
func (t *Tx) ExecPrepared(ctx context.Context, statement Statement, args ...any) error {
	prepared := t.db.writeStatements[statement.SQL]
	_, err := t.StmtContext(ctx, prepared).ExecContext(ctx, args...) //nolint:sqlclosecheck // ends with the transaction
	return statement.wrap(err)
}

// QueryRow runs a query that has at most one row.
func (t *Tx) QueryRow(ctx context.Context, statement Statement, args ...any) Row {
	if prepared := t.db.writeStatements[statement.SQL]; prepared != nil {
		return Row{t.StmtContext(ctx, prepared).QueryRowContext(ctx, args...), statement} //nolint:sqlclosecheck // ends with the transaction
	}
	return Row{t.QueryRowContext(ctx, t.Dialect.bind(statement.SQL), args...), statement}
}

// QueryEach runs a query and calls scan for each row.
func (t *Tx) QueryEach(ctx context.Context, scan func(*sql.Rows) error, statement Statement, args ...any) error {
	return queryEach(ctx, t.Tx, t.Dialect, scan, statement, args...)
}

// Insert inserts rows into a small table. conflictClause is appended to the
// statement and may come from OnConflictUpdate.
func (t *Tx) Insert(ctx context.Context, table string, columns []Column, rows [][]any, conflictClause string) error {
	return t.Dialect.insert(ctx, t, table, columns, rows, conflictClause)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// exec returns the number of affected rows.
func exec(ctx context.Context, e execer, d *Dialect, statement Statement, args ...any) (int64, error) {
	n, err := rowsAffected(e.ExecContext(ctx, d.bind(statement.SQL), args...))
	return n, statement.wrap(err)
}

func rowsAffected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// queryEach runs a query and calls scan for each row. The errors of scan are returned as they are.
func queryEach(ctx context.Context, q querier, d *Dialect, scan func(*sql.Rows) error, statement Statement, args ...any) error {
	rows, err := q.QueryContext(ctx, d.bind(statement.SQL), args...)
	if err != nil {
		return statement.wrap(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return statement.wrap(rows.Err())
}

// ToMicros returns a time as it is stored: in microseconds since 1970, 0 for the zero time.
func ToMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros is the inverse of ToMicros.
func FromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// Purge deletes the first rows of a table that has an id column.
func (d *DB) Purge(ctx context.Context, table, where, order string, limit int, args ...any) (int, error) {
	var n int64
	err := d.WriteLowPriority(ctx, func(ctx context.Context, tx *Tx) (err error) {
		n, err = tx.Exec(ctx, Named("purge "+table, fmt.Sprintf(tx.Dialect.purgeStatement, table, where, order, max(0, limit))), args...)
		return err
	})
	return int(n), err
}
