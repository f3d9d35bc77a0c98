package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/tempdir"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// tempPattern matches the directories in which copies are made. They are beside the file that is written, so that
// it gets its name at once.
const tempPattern = ".vedette-backup-*"

// RemoveAbandoned removes what commands that were killed left beside the database at path.
func RemoveAbandoned(path string) (removed int) {
	return tempdir.RemoveAbandoned(filepath.Dir(path), tempPattern)
}

// Write writes one state of the database at path to a file, which it replaces when all is written and checked. It needs that
// much space in the directory of the file. A server may use the database meanwhile.
func Write(ctx context.Context, path, file string) (size int64, err error) {
	if err := checkTarget(path, file); err != nil {
		return 0, err
	}
	err = withCopy(ctx, path, filepath.Dir(file), func(written string) error {
		if size, err = sync(written); err != nil {
			return err
		}
		return replace(written, file)
	})
	return size, err
}

// checkTarget refuses to replace what is no backup. As root, /dev/null and /dev/stdout would be files afterwards.
func checkTarget(path, file string) error {
	for _, suffix := range append([]string{".lock"}, suffixes...) {
		if isSame(path+suffix, file) {
			return vedette.Errorf(vedette.Invalid, "the backup cannot be %s, because that belongs to the database itself", file)
		}
	}
	for _, suffix := range suffixes[1:] {
		if _, err := os.Lstat(file + suffix); err == nil {
			return vedette.Errorf(vedette.Invalid, "beside %s is a journal, %[1]s%s, which would be applied to the backup: remove it, or name another file", file, suffix)
		}
	}
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return vedette.Errorf(vedette.Invalid, "the backup cannot be %s, because that is not a regular file: name one, or - for standard output", file)
	}
	return nil
}

// Stream is Write to a writer. It needs space in the directory of the database. If ctx ends while the writer does not accept what it is
// given, the writer is left behind.
func Stream(ctx context.Context, path string, to io.Writer) (size int64, err error) {
	err = withCopy(ctx, path, filepath.Dir(path), func(written string) error {
		file, err := os.Open(written)
		if err != nil {
			return err
		}
		size, err = copyUntil(ctx, to, file)
		return errors.Join(err, file.Close())
	})
	return size, err
}

// withCopy makes a copy that is checked, passes its name to use, and removes it.
func withCopy(ctx context.Context, path, dir string, use func(written string) error) error {
	if _, err := os.Stat(path); err != nil {
		return vedette.Errorf(vedette.Invalid, "no database to back up: %w", err)
	}
	return withTemp(dir, func(written string) error {
		if err := copyDatabase(ctx, path, written); err != nil {
			return fmt.Errorf("copy %s to a file in %s, which needs as much space: %w", path, dir, err)
		}
		if err := check(ctx, written); err != nil {
			return fmt.Errorf("the copy of %s: %w", path, err)
		}
		return use(written)
	})
}

// withTemp passes the name of a file, which does not exist yet, in a directory of its own below dir.
func withTemp(dir string, use func(file string) error) error {
	tempdir.RemoveAbandoned(dir, tempPattern)
	temp, err := tempdir.Make(dir, tempPattern)
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "cannot write to %s: %w", dir, err)
	}
	return errors.Join(use(filepath.Join(temp.Path, "vedette.db")), temp.Remove())
}

// copyDatabase copies one state. VACUUM INTO reads in one transaction, so writers do not wait for it, nor it for them.
func copyDatabase(ctx context.Context, path, to string) error {
	if err := os.WriteFile(to, nil, 0o600); err != nil { // because SQLite would create it with another mode
		return err
	}
	return withSQLite(path, "?_pragma=busy_timeout(10000)", func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "VACUUM INTO ?", to)
		return err
	})
}

func withSQLite(path, options string, use func(db *sql.DB) error) error {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+options)
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

// check checks that a file that nobody uses is the database of a server, complete, and of a schema that this program knows. The directory
// of the file is this process's own.
func check(ctx context.Context, file string) error {
	var tables int
	err := withSQLite(file, "?mode=ro&immutable=1", func(db *sql.DB) error {
		var problem string
		if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&problem); err != nil {
			return vedette.Errorf(vedette.Invalid, "it is damaged, or is not a database of SQLite: %w", err)
		}
		if problem != "ok" {
			return vedette.Errorf(vedette.Invalid, "it is damaged: %s", problem)
		}
		return db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name IN ('schema_version', 'accounts')").Scan(&tables)
	})
	if err != nil {
		return err
	}
	if tables != 2 {
		return vedette.Errorf(vedette.Invalid, "it is a database of SQLite, but not one of vedette-server: it lacks tables")
	}
	if _, err = sqldb.Probe(ctx, sqldb.Config{URL: "sqlite:" + file}); err != nil {
		return err
	}
	return checkSchema(ctx, file)
}

// checkSchema compares what is in a database with what the migrations create up to the version that it has. A table that is missing would
// be noticed only by a running server, and a trigger would change what that writes.
func checkSchema(ctx context.Context, file string) error {
	empty := filepath.Join(filepath.Dir(file), "empty.db")
	if err := sqldb.CreateLike(ctx, empty, file); err != nil {
		return fmt.Errorf("create an empty database to compare with: %w", err)
	}
	want, err := schemaOf(ctx, empty)
	if err != nil {
		return err
	}
	got, err := schemaOf(ctx, file)
	if err != nil {
		return err
	}
	for name := range want {
		if !got[name] {
			return vedette.Errorf(vedette.Invalid, "it is not a whole database of vedette-server: it lacks the %s", name)
		}
	}
	for name := range got {
		if kind, _, _ := strings.Cut(name, " "); !want[name] && (kind == "trigger" || kind == "view") {
			return vedette.Errorf(vedette.Invalid, "it has something that vedette-server does not create: the %s. Remove it first", textcheck.Truncate(name, 100))
		}
	}
	return nil
}

// schemaOf returns the types and names of what a database has, such as "table accounts".
func schemaOf(ctx context.Context, file string) (names map[string]bool, err error) {
	names = map[string]bool{}
	err = withSQLite(file, "?mode=ro&immutable=1", func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT type || ' ' || name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			names[name] = true
		}
		return rows.Err()
	})
	return names, err
}

func isSame(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// copyUntil copies until ctx ends, also if what it reads or writes stalls, as a pipe may for ever. The copying is left behind then: the
// process ends soon.
func copyUntil(ctx context.Context, to io.Writer, from io.Reader) (size int64, err error) {
	type result struct {
		size int64
		err  error
	}
	done := make(chan result, 1)
	go func() {
		size, err := io.Copy(to, contextReader{ctx, from})
		done <- result{size, err}
	}()
	select {
	case r := <-done:
		return r.size, r.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// contextReader ends with a context.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
