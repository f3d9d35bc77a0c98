package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/lease"
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

var selectSchemaVersion = Named("read the schema's version", `SELECT MAX(version_id) FROM schema_version`)

// isUpToDate reports whether the schema has the version of this program. A database without a
// schema is not up to date. An error means that the database cannot answer now: goose takes some of
// these for a schema that is damaged.
func (d *DB) isUpToDate(ctx context.Context, provider *goose.Provider) (bool, error) {
	sources := provider.ListSources()
	var stored int64
	err := d.QueryOne(ctx, ScanInto(&stored), selectSchemaVersion)
	if err != nil && vedette.KindOf(d.translateError(err)) == vedette.Unavailable {
		return false, err
	}
	return err == nil && stored == sources[len(sources)-1].Version, nil
}

// leaseVersion is the version of the schema that introduced the lease.
const leaseVersion = 6

// schemaVersions returns the schema's version and that of this program.
func (d *DB) schemaVersions(ctx context.Context, provider *goose.Provider) (stored, known int64, err error) {
	err = d.WithTimeout(ctx, func(ctx context.Context) (err error) {
		stored, known, err = provider.GetVersions(ctx)
		return err
	})
	return stored, known, err
}

// logMigrations logs all migrations in one line: a new database needs each of them.
func (d *DB) logMigrations(results []*goose.MigrationResult) {
	if len(results) == 0 {
		return
	}
	var took time.Duration
	for _, r := range results {
		took += r.Duration
	}
	d.Log.Info("migrated the database", "from", results[0].Source.Version-1, "to", results[len(results)-1].Source.Version, "took", took)
}

// migrate brings the schema up to date, one server at a time. It has no time limit, but waits for
// no lock if there is nothing to do. A schema of a newer version is rejected unless this server can use it.
func (d *DB) migrate(ctx context.Context) error {
	provider, err := d.migrationProvider()
	if err != nil {
		return err
	}
	if upToDate, err := d.isUpToDate(ctx, provider); upToDate || err != nil {
		return err
	}
	locked, unlock, err := d.lockMigrations(ctx)
	if err != nil {
		return err
	}
	results, err := provider.Up(locked) // does nothing to a schema that is newer
	unlock()
	d.logMigrations(results)
	if err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	// Only now is there certainly a version to read, because before another server may have been
	// creating its table.
	stored, known, err := d.schemaVersions(ctx, provider)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if err := d.checkSchemaVersion(ctx, stored, known); err != nil {
		return err
	}
	if stored > known {
		d.Log.Warn("a newer server has migrated the database; this one can use it", "schema", stored, "known", known)
	}
	return nil
}

// knownVersion returns the newest version of the schema that this program knows.
func (d *DB) knownVersion() (int64, error) {
	provider, err := d.migrationProvider()
	if err != nil {
		return 0, err
	}
	sources := provider.ListSources()
	return sources[len(sources)-1].Version, nil
}

// migrateBesideOthers brings the schema up to date while other servers use it. The error is vedette.Conflict if one of them could not use
// it any more.
func (d *DB) migrateBesideOthers(ctx context.Context) error {
	stored, err := d.storedVersion(ctx)
	if err != nil {
		return err
	}
	if stored >= d.knownSchema {
		return d.migrate(ctx) // checks whether this server can use it
	}
	required, err := requiredVersion(stored, d.Dialect.migrations, d.laterMigrations)
	if err != nil {
		return err
	}
	var id, version string
	var known int64
	err = d.QueryOne(ctx, ScanInto(&id, &version, &known), Named("find servers that cannot use the new schema",
		`SELECT id, version, schema_version FROM servers WHERE schema_version < ? AND renewed > `+d.Dialect.clockExpr+` - ? ORDER BY schema_version LIMIT 1`),
		required, lease.OtherTTL.Microseconds())
	switch {
	case err == nil:
		return vedette.Errorf(vedette.Conflict, "this server migrates the database to schema version %d, which server %s of version %s cannot use (it knows %d): "+
			"stop all servers of that version first, or upgrade to the version in between", d.knownSchema, id, version, known)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	return d.migrate(ctx)
}

// compatibilityVersion is the version of the schema that introduced the table schema_compatibility. Servers that do not know it use
// no later version.
const compatibilityVersion = 15

// checkSchemaVersion rejects a schema that a newer version of this program has migrated, unless each of the migrations that this one
// does not know says that it can use the result (docs/decisions/0182).
func (d *DB) checkSchemaVersion(ctx context.Context, stored, known int64) error {
	if stored <= known {
		return nil
	}
	var recorded, oldest int64
	err := d.QueryOne(ctx, ScanInto(&recorded, &oldest), Named("read which servers can use the schema",
		`SELECT COUNT(*), COALESCE(MAX(compatible_from), 0) FROM schema_compatibility WHERE version > ?`), known)
	switch {
	case err != nil && vedette.KindOf(d.translateError(err)) == vedette.Unavailable:
		return fmt.Errorf("read which servers can use the schema: %w", err)
	case err == nil && recorded == stored-known && oldest <= known:
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "the database has schema version %d and this server knows versions up to %d: a newer server has migrated it in a way that this "+
		"one cannot use; run that version or a later one, restore the backup from before the upgrade, or give this server another database", stored, known)
}

// migrationProvider returns what knows the migrations of the dialect.
func (d *DB) migrationProvider() (*goose.Provider, error) {
	all, err := goMigrations(d.Dialect.migrations)
	if err == nil && d.laterMigrations != nil {
		var later []*goose.Migration
		later, err = goMigrations(d.laterMigrations)
		all = append(all, later...)
	}
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	provider, err := goose.NewProvider(d.Dialect.goose, d.migrator, nil,
		goose.WithGoMigrations(all...), goose.WithDisableGlobalRegistry(true), goose.WithTableName("schema_version"))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}
