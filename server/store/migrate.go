package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/vedette-io/vedette"
)

//go:embed migrations
var migrationFiles embed.FS

// migrations returns a dialect's numbered files. One that was released is never
// changed.
func migrations(dialectName string) fs.FS {
	sub, err := fs.Sub(migrationFiles, "migrations/"+dialectName)
	if err != nil {
		panic(err) // only a malformed path fails
	}
	return sub
}

// isUpToDate reports whether the schema is the one that this program knows. Before the
// first migration there is no table to ask.
func (s *Store) isUpToDate(ctx context.Context, provider *goose.Provider) bool {
	sources := provider.ListSources()
	var stored int64
	err := s.queryOne(ctx, scanInto(&stored), `SELECT MAX(version_id) FROM schema_version`)
	return err == nil && stored == sources[len(sources)-1].Version
}

// leaseVersion is the version of the schema that brought the lease.
const leaseVersion = 6

// hasLeaseTable reports whether the schema has a table for the lease. Where the
// database does not answer, what follows says so.
func (s *Store) hasLeaseTable(ctx context.Context) bool {
	var stored int64
	err := s.queryOne(ctx, scanInto(&stored), `SELECT MAX(version_id) FROM schema_version`)
	return err == nil && stored >= leaseVersion
}

// schemaVersions returns the schema's version and the one that this program knows.
func (s *Store) schemaVersions(ctx context.Context, provider *goose.Provider) (stored, known int64, err error) {
	err = s.withTimeout(ctx, func(ctx context.Context) (err error) {
		stored, known, err = provider.GetVersions(ctx)
		return err
	})
	return stored, known, err
}

// lockMigrations waits for other servers that migrate. Whoever gets the lock calls
// unlock; a connection that is lost gives it up as well.
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
			s.log.Warn("the lock of the schema could not be given up; it ends with its connection", "error", err)
		}
	}, nil
}

// migrate brings the schema up to date, one server at a time. It may take as long
// as it takes, but where there is nothing to do no lock is waited for. A schema
// that a newer server made is refused rather than guessed at.
func (s *Store) migrate(ctx context.Context) error {
	options, err := s.dialect.gooseLock()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(s.dialect.goose, s.migrator, s.dialect.migrations,
		append(options, goose.WithDisableGlobalRegistry(true), goose.WithTableName("schema_version"))...)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if s.isUpToDate(ctx, provider) {
		return nil
	}
	unlock, err := s.lockMigrations(ctx)
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx) // does nothing to a schema that is newer
	unlock()
	for _, r := range results {
		s.log.Info("migrated the database", "version", r.Source.Version, "took", r.Duration)
	}
	if err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	// Only now is there surely a version to read: before, another server may be
	// in the midst of making its table.
	stored, known, err := s.schemaVersions(ctx, provider)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if stored > known {
		return vedette.Errorf(vedette.Invalid, "the database has schema version %d and this server knows versions up to %d: a newer server has migrated it, so run that version or a later one, or give this server another database", stored, known)
	}
	return nil
}
