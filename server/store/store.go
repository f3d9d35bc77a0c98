package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
)

// Config says which database to use.
type Config struct {
	// URL is "sqlite:PATH", "postgres://user:password@host:5432/database" or
	// "mysql://user:password@host:3306/database" (MariaDB too). The query of the
	// latter two is passed on to their drivers.
	URL string
	Log *slog.Logger // nil: nothing is logged
	// Server takes the lease of the database, so that no other server uses it at the
	// same time. Empty takes none, as tools and tests do that only read or are alone.
	Server vedette.ServerID
	Host   string // that the server runs on
	// MaxConns bounds the connections to the database; 0 means 16. Each costs a
	// PostgreSQL server a process of some 10 MB.
	MaxConns int
}

// Store keeps what agents report. Its methods may be called concurrently.
type Store struct {
	dialect  dialect
	db       *sql.DB // writes; of SQLite a single connection
	reader   *sql.DB // the same as db but for SQLite, whose readers don't wait for the writer
	durable  *sql.DB // of SQLite: what its statements commit outlives a power failure; nil where all does
	migrator *sql.DB // the same as db, but for what bounds its statements
	log      *slog.Logger
	kinds    kindTable
	limits   limits
	dicts    dictionaries
	gates    gates
	hurry    hurry
	writers  turnstile
	floors   floors
	litter   litter
	texts    statements     // of db
	looks    statements     // of reader
	lease    *lease         // nil where none is needed
	cleanup  []func() error // in reverse order of their making
	opened   atomic.Bool    // the database has let us in
	renew    func()         // closes the connections that nobody uses; nil where none can be lost
}

var (
	// ErrTerm refuses a writer that another one has replaced.
	ErrTerm = vedette.Errorf(vedette.Conflict, "another agent has taken over the account")
	// ErrNoFeed refuses changes of a feed that was not declared.
	ErrNoFeed = errors.New("the account has no such feed")
	// ErrNoAccount refuses a writer whose account is not, or no longer, registered.
	ErrNoAccount = vedette.Errorf(vedette.NotFound, "the account is not registered")
)

// Open connects once and brings the schema up to date. Its error is
// vedette.Unavailable where the database does not answer and the caller may
// try again, and vedette.Invalid where that would be in vain: a URL that can't
// be used, or a schema that a newer version of this program wrote.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s := &Store{log: cfg.Log, limits: defaultLimits, texts: statements{}, looks: statements{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = 16
	}
	if err := s.connect(ctx, cfg); err != nil {
		return nil, errors.Join(s.explain("open the database", err), s.Close())
	}
	s.opened.Store(true)
	return s, nil
}

func (s *Store) connect(ctx context.Context, cfg Config) error {
	connect, err := connectorOf(cfg.URL)
	if err != nil {
		return err
	}
	if err := connect(ctx, s, cfg); err != nil {
		return err
	}
	s.writers.free = s.dialect.writers(cfg.MaxConns)
	if err := s.patiently(ctx, s.db.PingContext); err != nil {
		return err
	}
	if err := s.claimAndMigrate(ctx, cfg); err != nil {
		return err
	}
	if s.dialect.prepare != nil {
		if err := s.patiently(ctx, func(ctx context.Context) error { return s.dialect.prepare(ctx, s) }); err != nil {
			return err
		}
	}
	return s.kinds.load(ctx, s)
}

// claimAndMigrate takes the lease before the schema is changed, which a server that
// runs would not survive. A schema that knows no lease yet is changed before.
func (s *Store) claimAndMigrate(ctx context.Context, cfg Config) error {
	if cfg.Server == "" || s.dialect.clock == "" {
		return s.migrate(ctx)
	}
	known := s.knowsLease(ctx)
	if known {
		if err := s.claim(ctx, cfg); err != nil {
			return err
		}
	}
	if err := s.migrate(ctx); err != nil || known {
		return err
	}
	return s.claim(ctx, cfg)
}

// claim takes the lease until Close.
func (s *Store) claim(ctx context.Context, cfg Config) error {
	l := newLease(s, cfg)
	if err := l.claim(ctx); err != nil {
		return err
	}
	s.lease = l
	s.cleanup = append(s.cleanup, l.release)
	return nil
}

// Close waits for what is under way and lets go of the database.
func (s *Store) Close() error {
	errs := []error{s.texts.close(), s.looks.close()}
	for i := len(s.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, s.cleanup[i]())
	}
	s.cleanup = nil
	return errors.Join(errs...)
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.explain("ping the database", s.patiently(ctx, s.reader.PingContext))
}

// writing is write, or writeBatch for one source.
type writing func(ctx context.Context, do func(ctx context.Context, tx *tx) error) error

// write runs do in one transaction. A deadlock or a serialization failure is
// nobody's fault and is tried once more, so do must not keep anything from its
// first run.
func (s *Store) write(ctx context.Context, do func(ctx context.Context, tx *tx) error) error {
	if err := s.writers.enter(ctx); err != nil {
		return err
	}
	defer s.writers.leave()
	return s.attempts(func() error { return s.attempt(ctx, do) })
}

// writeOne is write for a statement that is a transaction by itself, for which no other
// way to the database is needed. It returns the number of rows that were affected.
func (s *Store) writeOne(ctx context.Context, query string, args ...any) (n int64, err error) {
	if err := s.writers.enter(ctx); err != nil {
		return 0, err
	}
	defer s.writers.leave()
	err = s.attempts(func() (err error) {
		n, err = s.execute(ctx, query, args...)
		return err
	})
	return n, err
}

func (s *Store) execute(ctx context.Context, query string, args ...any) (n int64, err error) {
	if err := s.lease.check(ctx); err != nil {
		return 0, err
	}
	if prepared := s.texts[query]; prepared != nil {
		err = s.patiently(ctx, func(ctx context.Context) (err error) {
			n, err = affected(prepared.ExecContext(ctx, args...))
			return err
		})
		return n, err
	}
	err = s.connected(ctx, s.db, func(ctx context.Context, conn *sql.Conn) (err error) {
		n, err = exec(ctx, conn, &s.dialect, query, args...)
		return err
	})
	return n, err
}

// writeBehind is write for what nobody waits for, and may take long.
func (s *Store) writeBehind(ctx context.Context, do func(ctx context.Context, tx *tx) error) error {
	return s.writeBatch(ctx, "", do)
}

// writeBatch is writeBehind for what a source sent. Sources take turns, and so does
// what the server itself has to write.
func (s *Store) writeBatch(ctx context.Context, source string, do func(ctx context.Context, tx *tx) error) error {
	if err := s.writers.enterBehind(ctx, source); err != nil {
		return err
	}
	defer s.writers.leave()
	return s.attempts(func() error { return s.attempt(ctx, do) })
}

func (s *Store) attempts(try func() error) error {
	err := try()
	if err != nil && s.dialect.again(err) {
		s.log.Info("repeat a transaction", "error", err)
		err = try()
	}
	return err
}

func (s *Store) attempt(ctx context.Context, do func(ctx context.Context, tx *tx) error) error {
	if err := s.lease.check(ctx); err != nil {
		return err
	}
	return s.connected(ctx, s.db, func(ctx context.Context, conn *sql.Conn) error {
		return s.transact(ctx, conn, do, s.lease.recheck)
	})
}

// transact runs do in a transaction, which is committed unless do fails, or then may.
func (s *Store) transact(ctx context.Context, conn *sql.Conn, do, may func(ctx context.Context, tx *tx) error) error {
	began, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.isolation})
	if err != nil {
		return err
	}
	t := &tx{Tx: began, store: s, dialect: &s.dialect, now: time.Now()}
	if err = do(ctx, t); err == nil {
		err = may(ctx, t)
	}
	if err != nil {
		return errors.Join(err, ignoreDone(began.Rollback()))
	}
	return began.Commit()
}

// ignoreDone drops the complaint that a transaction was rolled back already,
// as it is where its context ended or its connection broke.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// tx is a transaction with the one clock that is used within it.
type tx struct {
	*sql.Tx
	store   *Store
	dialect *dialect
	now     time.Time
}

func (t *tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	if prepared := t.store.texts[query]; prepared != nil {
		return affected(t.StmtContext(ctx, prepared).ExecContext(ctx, args...))
	}
	return exec(ctx, t.Tx, t.dialect, query, args...)
}

// execPrepared is exec for a text of s.texts.
func (t *tx) execPrepared(ctx context.Context, text string, args ...any) error {
	_, err := t.StmtContext(ctx, t.store.texts[text]).ExecContext(ctx, args...)
	return err
}

func (t *tx) queryRow(ctx context.Context, query string, args ...any) *sql.Row {
	if prepared := t.store.texts[query]; prepared != nil {
		return t.StmtContext(ctx, prepared).QueryRowContext(ctx, args...)
	}
	return t.QueryRowContext(ctx, t.dialect.bind(query), args...)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// exec returns the number of rows that were affected.
func exec(ctx context.Context, e execer, d *dialect, query string, args ...any) (int64, error) {
	return affected(e.ExecContext(ctx, d.bind(query), args...))
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// each runs a query and calls row for each of its rows.
func each(ctx context.Context, q querier, d *dialect, row func(*sql.Rows) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, d.bind(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
