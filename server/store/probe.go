package store

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
)

// Validate checks the URL of the database and the files that it names. It does not connect.
func (c Config) Validate(ctx context.Context) error {
	connect, err := connectFuncFor(c.URL)
	if err != nil || strings.HasPrefix(c.URL, "sqlite:") { // connecting to SQLite would create the file
		return err
	}
	s, c := newStore(c)
	return errors.Join(connect(ctx, s, c), s.Close())
}

// Probe connects to the database with its credentials, and describes its schema. It changes nothing,
// so it may run beside a server. The error is like that of Open.
func Probe(ctx context.Context, cfg Config) (string, error) {
	s, cfg := newStore(cfg)
	detail, err := s.probe(ctx, cfg)
	return detail, errors.Join(s.wrapError("open the database", err), s.Close())
}

func (s *Store) probe(ctx context.Context, cfg Config) (string, error) {
	if path, isSQLite := strings.CutPrefix(cfg.URL, "sqlite:"); isSQLite {
		path = strings.TrimPrefix(path, "//")
		switch _, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			return "SQLite: the server will create " + path, checkCreatable(path)
		case err != nil:
			return "", vedette.Errorf(vedette.Invalid, "read the database file: %w", err)
		}
		if err := s.openReadOnly(path); err != nil {
			return "", err
		}
		return s.describe(ctx)
	}
	connect, err := connectFuncFor(cfg.URL)
	if err != nil {
		return "", err
	}
	if err := connect(ctx, s, cfg); err != nil {
		return "", err
	}
	return s.describe(ctx)
}

// checkCreatable checks that a file can be created, in the nearest folder above it that exists.
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
func (s *Store) openReadOnly(path string) error {
	s.dialect = sqliteDialect()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(2000)")
	if err != nil {
		return err
	}
	s.db, s.reader, s.migrator = db, db, db
	s.cleanup = append(s.cleanup, db.Close)
	return nil
}

// describe returns the version of the schema, and what the next start of the server does with it.
func (s *Store) describe(ctx context.Context) (string, error) {
	if err := s.withTimeout(ctx, s.db.PingContext); err != nil {
		return "", err
	}
	provider, err := s.migrationProvider()
	if err != nil {
		return "", err
	}
	sources := provider.ListSources()
	known := sources[len(sources)-1].Version
	stored, err := s.storedVersion(ctx)
	if err != nil {
		return "", err
	}
	if err := checkSchemaVersion(stored, known); err != nil {
		return "", err
	}
	var text string
	switch {
	case stored == 0:
		text = "no tables yet: the server creates them"
	case stored < known:
		text = fmt.Sprintf("schema version %d: the server migrates it to %d", stored, known)
	default:
		text = fmt.Sprintf("schema version %d", stored)
	}
	holder, err := s.describeLease(ctx, stored)
	return s.dialect.name + ": " + text + holder, err
}

// storedVersion returns the version of the schema; 0 if there is none.
func (s *Store) storedVersion(ctx context.Context) (int64, error) {
	tables := `SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'schema_version' AND table_schema = `
	switch s.dialect.name {
	case "SQLite":
		tables = `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'`
	case "PostgreSQL":
		tables += `current_schema()`
	default:
		tables += `DATABASE()`
	}
	var n int
	var version sql.NullInt64
	if err := s.queryOne(ctx, scanInto(&n), tables); err != nil || n == 0 {
		return 0, err
	}
	err := s.queryOne(ctx, scanInto(&version), `SELECT MAX(version_id) FROM schema_version`)
	return version.Int64, err
}

// describeLease says which server uses the database, if one does.
func (s *Store) describeLease(ctx context.Context, version int64) (string, error) {
	if version < leaseVersion || s.dialect.clockExpr == "" {
		return "", nil
	}
	var row leaseRow
	err := s.queryOne(ctx, func(r scanner) (err error) { row, err = scanLease(r); return err }, selectLease(&s.dialect))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case err != nil || row.token == "" || row.age() > otherLeaseTTL:
		return "", err
	}
	return fmt.Sprintf(", in use by server %s on host %s", row.server, row.host), nil
}
