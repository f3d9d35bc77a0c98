package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/overlay"
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
	// MaxConns is the maximum number of connections to the database; 0 means 16. Each is a
	// process of some 10 MB on a PostgreSQL server.
	MaxConns int
	// OnTransaction is called after each attempt to write, with its result and how long it took.
	// It must not block; nil is for none.
	OnTransaction func(result TransactionResult, took time.Duration)
}

// Store keeps what agents report. Its methods may be called concurrently.
type Store struct {
	dialect         dialect
	db              *sql.DB // for writes; one connection with SQLite
	reader          *sql.DB // the same as db, except with SQLite, whose readers do not wait for the writer
	durable         *sql.DB // SQLite only: its commits survive a power failure; nil if all do
	migrator        *sql.DB // like db, but without a time limit for statements
	log             *slog.Logger
	kinds           kindTable
	limits          limits
	totals          feedTotals
	dicts           dictionaries
	locks           admission.Locks
	priority        *admission.Priority
	writeSemaphore  *admission.Semaphore
	overlay         overlay.Overlay
	labelGC         labelGC
	versions        versions
	nameFilters     nameFilters
	cachedNames     atomic.Pointer[accountNames]
	writeStatements statements     // of db
	readStatements  statements     // of reader
	lease           *lease         // nil if none is needed
	cleanup         []func() error // called by Close in reverse order
	opened          atomic.Bool    // the first connection has succeeded
	onTransaction   func(result TransactionResult, took time.Duration)
	closeIdleConns  func() // nil with SQLite, which has no connections to lose
}

var (
	// ErrTerm means that another agent has replaced the writer.
	ErrTerm = vedette.Errorf(vedette.Conflict, "another agent has taken over the account")
	// ErrNoFeed means that the feed of a change was not declared.
	ErrNoFeed = errors.New("the account has no such feed")
	// ErrNoAccount means that the account is not registered, or no longer.
	ErrNoAccount = vedette.Errorf(vedette.NotFound, "the account is not registered")
)

// Open connects and migrates the schema. The error is vedette.Unavailable if the database does not
// answer, so that the caller may retry, and vedette.Invalid if retrying is useless: the URL is
// invalid, or a newer version of this program has migrated the schema.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, cfg := newStore(cfg)
	if err := s.connect(ctx, cfg); err != nil {
		return nil, errors.Join(s.wrapError("open the database", err), s.Close())
	}
	s.opened.Store(true)
	return s, nil
}

// newStore returns a store without connections, and cfg with its defaults.
func newStore(cfg Config) (*Store, Config) {
	s := &Store{log: cfg.Log, onTransaction: cfg.OnTransaction, limits: defaultLimits, writeStatements: statements{},
		readStatements: statements{}}
	s.versions.inventory.reading = admission.NewSemaphore(1)
	s.versions.inventory.warnings.Interval = time.Minute
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = 16
	}
	return s, cfg
}

func (s *Store) connect(ctx context.Context, cfg Config) error {
	connect, err := connectFuncFor(cfg.URL)
	if err != nil {
		return err
	}
	if err := connect(ctx, s, cfg); err != nil {
		return err
	}
	s.writeSemaphore = admission.NewSemaphore(s.dialect.maxWriters(cfg.MaxConns))
	s.priority = admission.NewPriority(s.dialect.priorityChunkSize, s.dialect.singleWriter)
	if err := s.withTimeout(ctx, s.db.PingContext); err != nil {
		return err
	}
	if err := s.acquireLeaseAndMigrate(ctx, cfg); err != nil {
		return err
	}
	if s.dialect.prepare != nil {
		if err := s.withTimeout(ctx, func(ctx context.Context) error { return s.dialect.prepare(ctx, s) }); err != nil {
			return err
		}
	}
	return s.kinds.load(ctx, s)
}

// acquireLeaseAndMigrate acquires the lease before it changes the schema, because another server
// that is running would not survive that. A schema from before the lease is migrated first.
func (s *Store) acquireLeaseAndMigrate(ctx context.Context, cfg Config) error {
	if cfg.Server == "" || s.dialect.clockExpr == "" {
		return s.migrate(ctx)
	}
	hasLease := s.hasLeaseTable(ctx)
	if hasLease {
		if err := s.acquireLease(ctx, cfg); err != nil {
			return err
		}
	}
	if err := s.migrate(ctx); err != nil || hasLease {
		return err
	}
	return s.acquireLease(ctx, cfg)
}

// acquireLease acquires the lease, which Close releases.
func (s *Store) acquireLease(ctx context.Context, cfg Config) error {
	l := newLease(s, cfg)
	if err := l.acquire(ctx); err != nil {
		return err
	}
	s.lease = l
	s.cleanup = append(s.cleanup, l.release)
	return nil
}

// Close waits for transactions in progress and closes the database. Idle connections that the database
// has closed before are not an error, because nothing is lost.
func (s *Store) Close() error {
	errs := []error{s.writeStatements.close(), s.readStatements.close()}
	for i := len(s.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, s.cleanup[i]())
	}
	s.cleanup = nil
	err := errors.Join(errs...)
	if hasServer := s.closeIdleConns != nil; err != nil && hasServer {
		s.log.Debug("closing connections to the database failed", "error", err)
		return nil
	}
	return err
}

// Ping returns an error if the database does not answer.
func (s *Store) Ping(ctx context.Context) error {
	return s.wrapError("ping the database", s.withTimeout(ctx, s.reader.PingContext))
}

// writeFunc is write or writeLowPriority.
type writeFunc func(ctx context.Context, do func(ctx context.Context, tx *transaction) error) error

// write runs do in one transaction. After a deadlock or a serialization failure it is retried
// once, so do must not keep state from its first run.
func (s *Store) write(ctx context.Context, do func(ctx context.Context, tx *transaction) error) error {
	permit, err := s.writeSemaphore.Acquire(ctx)
	if err != nil {
		return err
	}
	defer permit.Release()
	return s.retryOnConflict(func() error { return s.writeOnce(ctx, do) })
}

// execWrite is write for one statement, which is a transaction by itself and so needs only one
// round trip. It returns the number of affected rows.
func (s *Store) execWrite(ctx context.Context, query string, args ...any) (n int64, err error) {
	permit, err := s.writeSemaphore.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer permit.Release()
	err = s.retryOnConflict(func() (err error) {
		n, err = s.execute(ctx, query, args...)
		return err
	})
	return n, err
}

func (s *Store) execute(ctx context.Context, query string, args ...any) (n int64, err error) {
	if err := s.lease.check(ctx); err != nil {
		return 0, err
	}
	if prepared := s.writeStatements[query]; prepared != nil {
		err = s.withTimeout(ctx, func(ctx context.Context) (err error) {
			n, err = rowsAffected(prepared.ExecContext(ctx, args...))
			return err
		})
		return n, err
	}
	err = s.withConn(ctx, s.db, func(ctx context.Context, conn *sql.Conn) (err error) {
		n, err = exec(ctx, conn, &s.dialect, query, args...)
		return err
	})
	return n, err
}

// WithSource returns a context for what a source causes, such as the host of an agent. Its transactions wait behind those
// that callers wait for, and take turns with those of other sources.
func WithSource(ctx context.Context, source string) context.Context {
	return admission.WithSource(ctx, source)
}

// writeLowPriority is write for long transactions that no caller waits for.
func (s *Store) writeLowPriority(ctx context.Context, do func(ctx context.Context, tx *transaction) error) error {
	permit, err := s.writeSemaphore.AcquireLow(ctx)
	if err != nil {
		return err
	}
	defer permit.Release()
	return s.retryOnConflict(func() error { return s.writeOnce(ctx, do) })
}

func (s *Store) retryOnConflict(run func() error) error {
	err := s.measure(run)
	if err != nil && s.dialect.isRetryable(err) {
		s.log.Info("retrying transaction", "error", err)
		err = s.measure(run)
	}
	return err
}

func (s *Store) writeOnce(ctx context.Context, do func(ctx context.Context, tx *transaction) error) error {
	if err := s.lease.check(ctx); err != nil {
		return err
	}
	return s.withConn(ctx, s.db, func(ctx context.Context, conn *sql.Conn) error {
		return s.runTx(ctx, conn, do, s.lease.checkBeforeCommit)
	})
}

// runTx runs do and then beforeCommit in a transaction, and commits it if both succeed.
func (s *Store) runTx(ctx context.Context, conn *sql.Conn, do, beforeCommit func(ctx context.Context, tx *transaction) error) error {
	sqlTx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.isolation})
	if err != nil {
		return err
	}
	t := &transaction{Tx: sqlTx, store: s, dialect: &s.dialect, now: time.Now()}
	err = do(ctx, t)
	if err == nil {
		err = beforeCommit(ctx, t)
	}
	if err != nil {
		return errors.Join(err, ignoreTxDone(sqlTx.Rollback()))
	}
	return sqlTx.Commit()
}

// ignoreTxDone drops the error that a transaction is already rolled back, because its context
// ended or its connection broke.
func ignoreTxDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// transaction is a transaction with the only clock that is used within it.
type transaction struct {
	*sql.Tx
	store   *Store
	dialect *dialect
	now     time.Time
}

func (t *transaction) exec(ctx context.Context, query string, args ...any) (int64, error) {
	if prepared := t.store.writeStatements[query]; prepared != nil {
		return rowsAffected(t.StmtContext(ctx, prepared).ExecContext(ctx, args...)) //nolint:sqlclosecheck // ends with the transaction
	}
	return exec(ctx, t.Tx, t.dialect, query, args...)
}

// execPrepared is exec for a query in s.writeStatements.
func (t *transaction) execPrepared(ctx context.Context, query string, args ...any) error {
	_, err := t.StmtContext(ctx, t.store.writeStatements[query]).ExecContext(ctx, args...) //nolint:sqlclosecheck // ends with the transaction
	return err
}

func (t *transaction) queryRow(ctx context.Context, query string, args ...any) *sql.Row {
	if prepared := t.store.writeStatements[query]; prepared != nil {
		return t.StmtContext(ctx, prepared).QueryRowContext(ctx, args...) //nolint:sqlclosecheck // ends with the transaction
	}
	return t.QueryRowContext(ctx, t.dialect.bind(query), args...)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// exec returns the number of affected rows.
func exec(ctx context.Context, e execer, d *dialect, query string, args ...any) (int64, error) {
	return rowsAffected(e.ExecContext(ctx, d.bind(query), args...))
}

func rowsAffected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// queryEach runs a query and calls scan for each row.
func queryEach(ctx context.Context, q querier, d *dialect, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, d.bind(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func toMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
