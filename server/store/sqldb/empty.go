package sqldb

import (
	"context"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
)

// CreateLike creates an empty SQLite database at path, whose schema has the version of the database in the file like, or this program's if
// that one is newer.
func CreateLike(ctx context.Context, path, like string) error {
	stored, err := schemaVersionOf(ctx, like)
	if err != nil {
		return err
	}
	d, cfg := newDB(Config{URL: "sqlite:" + path})
	err = connectSQLite(ctx, d, cfg)
	if err == nil {
		err = d.migrateTo(ctx, stored)
	}
	return errors.Join(err, d.Close())
}

func schemaVersionOf(ctx context.Context, path string) (version int64, err error) {
	d, _ := newDB(Config{})
	if err := d.openReadOnly(path); err != nil {
		return 0, err
	}
	version, err = d.storedVersion(ctx)
	return version, errors.Join(err, d.Close())
}

// migrateTo runs the migrations up to a version, or all if it is newer than them.
func (d *DB) migrateTo(ctx context.Context, version int64) error {
	provider, err := d.migrationProvider()
	if err != nil {
		return err
	}
	sources := provider.ListSources()
	if version < sources[0].Version {
		return vedette.Errorf(vedette.Invalid, "the database has schema version %d, which no server has made", version)
	}
	if _, err := provider.UpTo(ctx, min(version, sources[len(sources)-1].Version)); err != nil {
		return fmt.Errorf("migrate the schema to version %d: %w", version, err)
	}
	return nil
}
