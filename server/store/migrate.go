package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/vedette-io/vedette"
)

//go:embed migrations
var migrationFiles embed.FS

// migrations returns a dialect's numbered files. Released files are never changed.
func migrations(dialectName string) fs.FS {
	sub, err := fs.Sub(migrationFiles, "migrations/"+dialectName)
	if err != nil {
		panic(err) // only a malformed path fails
	}
	return sub
}

// isUpToDate reports whether the schema has the version of this program. A database without a
// schema is not up to date. An error means that the database cannot answer now: goose takes some of
// these for a schema that is damaged.
func (s *Store) isUpToDate(ctx context.Context, provider *goose.Provider) (bool, error) {
	sources := provider.ListSources()
	var stored int64
	err := s.queryOne(ctx, scanInto(&stored), `SELECT MAX(version_id) FROM schema_version`)
	if err != nil && vedette.KindOf(s.translateError(err)) == vedette.Unavailable {
		return false, fmt.Errorf("read the schema's version: %w", err)
	}
	return err == nil && stored == sources[len(sources)-1].Version, nil
}

// leaseVersion is the version of the schema that introduced the lease.
const leaseVersion = 6

// hasLeaseTable reports whether the schema has a table for the lease. It ignores errors, because
// the next statement reports them.
func (s *Store) hasLeaseTable(ctx context.Context) bool {
	var stored int64
	err := s.queryOne(ctx, scanInto(&stored), `SELECT MAX(version_id) FROM schema_version`)
	return err == nil && stored >= leaseVersion
}

// schemaVersions returns the schema's version and that of this program.
func (s *Store) schemaVersions(ctx context.Context, provider *goose.Provider) (stored, known int64, err error) {
	err = s.withTimeout(ctx, func(ctx context.Context) (err error) {
		stored, known, err = provider.GetVersions(ctx)
		return err
	})
	return stored, known, err
}

// lockMigrations waits for other servers that migrate. The caller must call unlock; the database
// also unlocks if the connection is lost.
func (s *Store) lockMigrations(ctx context.Context) (unlock func(), err error) {
	locker := s.dialect.migrationLocker
	if locker == nil {
		return func() {}, nil
	}
	conn, err := s.migrator.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to lock the schema: %w", err)
	}
	if err := locker.SessionLock(ctx, conn); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the schema: %w", err), conn.Close())
	}
	return func() {
		if err := errors.Join(locker.SessionUnlock(context.WithoutCancel(ctx), conn), conn.Close()); err != nil {
			s.log.Warn("unlocking the schema failed; the lock ends with its connection", "error", err)
		}
	}, nil
}

// logMigrations logs all migrations in one line: a new database needs each of them.
func (s *Store) logMigrations(results []*goose.MigrationResult) {
	if len(results) == 0 {
		return
	}
	var took time.Duration
	for _, r := range results {
		took += r.Duration
	}
	s.log.Info("migrated the database", "from", results[0].Source.Version-1, "to", results[len(results)-1].Source.Version, "took", took)
}

// migrate brings the schema up to date, one server at a time. It has no time limit, but waits for
// no lock if there is nothing to do. A schema of a newer version is rejected.
func (s *Store) migrate(ctx context.Context) error {
	provider, err := s.migrationProvider()
	if err != nil {
		return err
	}
	if upToDate, err := s.isUpToDate(ctx, provider); upToDate || err != nil {
		return err
	}
	unlock, err := s.lockMigrations(ctx)
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx) // does nothing to a schema that is newer
	unlock()
	s.logMigrations(results)
	if err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	// Only now is there certainly a version to read, because before another server may have been
	// creating its table.
	stored, known, err := s.schemaVersions(ctx, provider)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	return checkSchemaVersion(stored, known)
}

// checkSchemaVersion rejects a schema that a newer version of this program has migrated.
func checkSchemaVersion(stored, known int64) error {
	if stored <= known {
		return nil
	}
	return vedette.Errorf(vedette.Invalid,
		"the database has schema version %d and this server knows versions up to %d: a newer server has migrated it; run that version or a later one, or give this server another database", stored, known)
}

// migrationProvider returns what knows the migrations of the dialect.
func (s *Store) migrationProvider() (*goose.Provider, error) {
	options, err := s.dialect.gooseLock()
	if err != nil {
		return nil, err
	}
	all, err := goMigrations(s.dialect.migrations)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	provider, err := goose.NewProvider(s.dialect.goose, s.migrator, nil,
		append(options, goose.WithGoMigrations(all...), goose.WithDisableGlobalRegistry(true), goose.WithTableName("schema_version"))...)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}
