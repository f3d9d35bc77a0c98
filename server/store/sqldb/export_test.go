package sqldb

import (
	"context"
	"database/sql"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/vedette-io/vedette/server/store/lease"
)

var (
	OpenedDB        = openedDB
	SQLiteDialect   = sqliteDialect
	PostgresDialect = postgresDialect
	MySQLDialect    = mysqlDialect
)

// Goose returns what goose needs to migrate without a store.
func (d *Dialect) Goose() (goose.Dialect, fs.FS) { return d.goose, d.migrations }

// UnopenedDB returns a database without connections.
func UnopenedDB(cfg Config) *DB {
	d, _ := newDB(cfg)
	return d
}

func (d *DB) Measure(run func() error) error { return d.measure(run) }

func (d *DB) ResultOf(err error) TransactionResult { return d.resultOf(err) }

// Pools returns the connections for writes, for durable writes and for migrations.
func (d *DB) Pools() (writes, durable, migrator *sql.DB) { return d.db, d.durable, d.migrator }

func (d *DB) HasLease() bool { return d.lease != nil }

func (d *DB) NeedsLease() bool { return d.Dialect.clockExpr != "" }

// AgeLease makes the lease as old as one that may be lost.
func (d *DB) AgeLease() { d.lease.Confirm(time.Now().Add(-lease.OwnTTL)) }

func (d *DB) WriteWithoutLease(ctx context.Context, do func(ctx context.Context, tx *Tx) error) error {
	return d.writeWithoutLease(ctx, do)
}

// AgeWriteProblem makes the last failure so old that a success ends the problem.
func (d *DB) AgeWriteProblem() {
	d.writes.mu.Lock()
	defer d.writes.mu.Unlock()
	d.writes.failed = d.writes.failed.Add(-problemDuration)
}

// WithLater returns a configuration of a later release, with more migrations.
func (c Config) WithLater(migrations fs.FS) Config {
	c.laterMigrations = migrations
	return c
}

// HistoryID returns what the database was when it was opened; empty if that is not known.
func (d *DB) HistoryID() string {
	d.history.mu.Lock()
	defer d.history.mu.Unlock()
	return d.history.id
}

// ObserveHistory notes a connection that leads to another history.
func (d *DB) ObserveHistory(id string) error { return d.history.observe(id) }
