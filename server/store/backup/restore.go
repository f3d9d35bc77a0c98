package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// replacedSuffix is at the end of the names of the files that were replaced.
const replacedSuffix = ".replaced"

// suffixes are at the end of the names of a database and of its journals.
var suffixes = []string{"", "-wal", "-shm", "-journal"}

// Restore replaces the database at path by a backup, which is checked before. The database that was there is kept with the suffix
// ".replaced". The error is vedette.Conflict if a server uses the database.
//
// If the process is killed between the last steps, there is no database: Restore can be repeated, and a server that starts
// meanwhile begins with an empty one.
func Restore(ctx context.Context, path string, from io.Reader) (size int64, err error) {
	return restore(ctx, path, func(written string) error { return copyFrom(ctx, written, from) })
}

// RestoreFile is Restore from a file, with what journals beside it have. They are there if the file is not from Write: a copy of a
// volume, or what Restore has replaced.
func RestoreFile(ctx context.Context, path, file string) (size int64, err error) {
	switch info, err := os.Stat(file); {
	case err != nil:
		return 0, vedette.Errorf(vedette.Invalid, "read the backup: %w", err)
	case !info.Mode().IsRegular(): // to open a pipe may take for ever
		return 0, vedette.Errorf(vedette.Invalid, "%s is not a regular file: name one, or - for standard input", file)
	}
	return restore(ctx, path, func(written string) error {
		hasJournal := false
		for _, suffix := range []string{"", "-wal", "-journal"} {
			from, err := os.Open(file + suffix)
			if suffix != "" && errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return vedette.Errorf(vedette.Invalid, "read the backup: %w", err)
			}
			if err := errors.Join(copyFrom(ctx, written+suffix, from), from.Close()); err != nil {
				return err
			}
			hasJournal = hasJournal || suffix != ""
		}
		if !hasJournal {
			return nil
		}
		if err := applyJournal(ctx, written); err != nil {
			return vedette.Errorf(vedette.Invalid, "apply the journal beside %s: %w", file, err)
		}
		return nil
	})
}

// applyJournal writes what the journals of a database have into its file, and removes them.
func applyJournal(ctx context.Context, file string) error {
	return withSQLite(file, "", func(db *sql.DB) error {
		var mode string
		if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode); err != nil {
			return err
		}
		if mode != "delete" {
			return fmt.Errorf("SQLite keeps the journal (%s)", mode)
		}
		return nil
	})
}

// restore replaces the database at path by what write has written to a file.
func restore(ctx context.Context, path string, write func(written string) error) (size int64, err error) {
	unlock, err := sqldb.LockFile(path)
	if err != nil {
		return 0, err
	}
	dir := filepath.Dir(path)
	err = withTemp(dir, func(written string) error {
		if err := write(written); err != nil {
			return fmt.Errorf("write to %s: %w", dir, err)
		}
		if size, err = sync(written); err != nil {
			return err
		}
		if size == 0 {
			return vedette.Errorf(vedette.Invalid, "the backup is empty")
		}
		if err := check(ctx, written); err != nil {
			return fmt.Errorf("the backup: %w", err)
		}
		if err := moveAway(path); err != nil {
			return err
		}
		return replace(written, path)
	})
	if err == nil {
		err = errors.Join(giveToOwner(path, dir), giveToOwner(path+".lock", dir))
	}
	return size, errors.Join(err, unlock())
}

func copyFrom(ctx context.Context, file string, from io.Reader) error {
	to, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = copyUntil(ctx, to, from)
	return errors.Join(err, to.Close())
}

// moveAway renames a database with its journals. The database is first: SQLite would apply a journal to another database,
// but removes one that is beside no database.
func moveAway(path string) error {
	if _, err := os.Stat(path); err == nil { // otherwise a former run was killed after this
		for _, suffix := range suffixes {
			if err := os.Remove(path + replacedSuffix + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, suffix := range suffixes {
		if err := os.Rename(path+suffix, path+replacedSuffix+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sync waits until a file is on the disk, and returns its size.
func sync(path string) (size int64, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err == nil {
		size, err = info.Size(), file.Sync()
	}
	return size, errors.Join(err, file.Close())
}

// replace gives a file its name, and waits until that is on the disk.
func replace(written, path string) error {
	if err := os.Rename(written, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
