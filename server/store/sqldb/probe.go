package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/lease"
)

// Validate checks the URL of the database and the files that it names. It does not connect.
func (c Config) Validate(ctx context.Context) error {
	connect, err := connectFuncFor(c.URL)
	if err != nil || strings.HasPrefix(c.URL, "sqlite:") { // connecting to SQLite would create the file
		return err
	}
	d, c := newDB(c)
	return errors.Join(connect(ctx, d, c), d.Close())
}

// Probe connects to the database with its credentials, and describes its schema. It changes nothing,
// so it may run beside a server. The error is like that of Open.
func Probe(ctx context.Context, cfg Config) (string, error) {
	d, cfg := newDB(cfg)
	detail, err := d.probe(ctx, cfg)
	return detail, errors.Join(d.WrapError("open the database", err), d.Close())
}

func (d *DB) probe(ctx context.Context, cfg Config) (string, error) {
	if path, isSQLite := FilePath(cfg.URL); isSQLite {
		switch _, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			return "SQLite: the server will create " + path, checkCreatable(path)
		case err != nil:
			return "", vedette.Errorf(vedette.Invalid, "read the database file: %w", err)
		}
		if err := d.openReadOnly(path); err != nil {
			return "", err
		}
		return d.describe(ctx)
	}
	connect, err := connectFuncFor(cfg.URL)
	if err != nil {
		return "", err
	}
	if err := connect(ctx, d, cfg); err != nil {
		return "", err
	}
	text, err := d.describe(ctx)
	if err != nil {
		return "", err
	}
	replicas, err := d.probeReplicas(ctx, cfg)
	return text + replicas, err
}

// checkCreatable checks that a file can be created, in the nearest directory above it that exists.
func checkCreatable(path string) error {
	dir := filepath.Dir(path)
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	attempt, err := os.CreateTemp(dir, ".vedette-check-*")
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "cannot create the database file %s: %w: check the owner and the mode of %s", path, err, dir)
	}
	return errors.Join(attempt.Close(), os.Remove(attempt.Name()))
}

// openReadOnly opens a file of SQLite that a server may be using.
func (d *DB) openReadOnly(path string) error {
	d.Dialect = sqliteDialect()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(2000)")
	if err != nil {
		return err
	}
	d.db = db
	d.Reads = db
	d.migrator = db
	d.cleanup = append(d.cleanup, db.Close)
	return nil
}

// describe returns the version of the schema, and what the next start of the server does with it.
func (d *DB) describe(ctx context.Context) (string, error) {
	if err := d.WithTimeout(ctx, d.db.PingContext); err != nil {
		return "", err
	}
	provider, err := d.migrationProvider()
	if err != nil {
		return "", err
	}
	sources := provider.ListSources()
	known := sources[len(sources)-1].Version
	stored, err := d.storedVersion(ctx)
	if err != nil {
		return "", err
	}
	if err := d.checkSchemaVersion(ctx, stored, known); err != nil {
		return "", err
	}
	var text string
	switch {
	case stored == 0:
		text = "no tables yet: the server creates them"
	case stored > known:
		text = fmt.Sprintf("schema version %d, by a newer server; this one knows %d and can use it", stored, known)
	case stored < known:
		text = fmt.Sprintf("schema version %d: the server migrates it to %d", stored, known)
	default:
		text = fmt.Sprintf("schema version %d", stored)
	}
	holder, err := d.describeLease(ctx, stored)
	return d.Dialect.Name + ": " + text + holder, err
}

// storedVersion returns the version of the schema; 0 if there is none.
func (d *DB) storedVersion(ctx context.Context) (int64, error) {
	tables := `SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'schema_version' AND table_schema = `
	switch d.Dialect.Name {
	case "SQLite":
		tables = `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'`
	case "PostgreSQL":
		tables += `current_schema()`
	default:
		tables += `DATABASE()`
	}
	var n int
	var version sql.NullInt64
	if err := d.QueryOne(ctx, ScanInto(&n), Named("look for the table of the schema's version", tables)); err != nil || n == 0 {
		return 0, err
	}
	err := d.QueryOne(ctx, ScanInto(&version), selectSchemaVersion)
	return version.Int64, err
}

// describeLease says which servers use the database, if any do.
func (d *DB) describeLease(ctx context.Context, version int64) (string, error) {
	if version < leaseVersion || d.Dialect.clockExpr == "" {
		return "", nil
	}
	var row lease.Row
	err := d.QueryOne(ctx, func(r Scanner) (err error) { row, err = scanLease(r); return err }, selectLease(&d.Dialect, ""))
	if err == nil && row.Token != "" && row.Age() <= lease.OtherTTL {
		return fmt.Sprintf(", in use by server %s on host %s", row.Server, row.Host), nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) || version < serversVersion {
		return "", ignoreNoRows(err)
	}
	var sharing []string
	err = d.QueryEach(ctx, func(rows *sql.Rows) error {
		row, err := scanLease(rows)
		if row.Age() <= lease.OtherTTL {
			sharing = append(sharing, fmt.Sprintf("server %s on host %s", row.Server, row.Host))
		}
		return err
	}, selectServerLeases(&d.Dialect, ` ORDER BY id`))
	if len(sharing) == 0 {
		return "", err
	}
	return ", shared by " + strings.Join(sharing, ", "), err
}

func ignoreNoRows(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}
