package sqldb

import (
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/vedette-io/vedette"
)

// sqliteClasses has SQLite's result codes. An extended code that is not in the table has the class
// of its primary code, which is its lowest byte.
var sqliteClasses = map[int]errorClass{
	sqlite3.SQLITE_TOOBIG:              dataClass,
	sqlite3.SQLITE_MISMATCH:            dataClass,
	sqlite3.SQLITE_CONSTRAINT_CHECK:    dataClass,
	sqlite3.SQLITE_CONSTRAINT_NOTNULL:  dataClass,
	sqlite3.SQLITE_CONSTRAINT_DATATYPE: dataClass,

	sqlite3.SQLITE_BUSY:      busyClass,
	sqlite3.SQLITE_LOCKED:    busyClass,
	sqlite3.SQLITE_IOERR:     busyClass,
	sqlite3.SQLITE_CANTOPEN:  busyClass,
	sqlite3.SQLITE_INTERRUPT: busyClass,
	sqlite3.SQLITE_ABORT:     busyClass,
	sqlite3.SQLITE_NOMEM:     busyClass,
	sqlite3.SQLITE_PROTOCOL:  busyClass,

	sqlite3.SQLITE_FULL:     diskFullClass,
	sqlite3.SQLITE_READONLY: readOnlyClass,

	sqlite3.SQLITE_CORRUPT: settingsClass,
	sqlite3.SQLITE_NOTADB:  settingsClass,
}

func sqliteClass(code int) errorClass {
	if class, named := sqliteClasses[code]; named {
		return class
	}
	return sqliteClasses[code&0xff]
}

// translateSQLiteError goes by SQLite's result codes.
func translateSQLiteError(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	return translateSQLiteCode(e.Code(), err)
}

func translateSQLiteCode(code int, err error) error {
	switch sqliteClass(code) {
	case dataClass:
		return DataErrorf("a value is too large for SQLite, or has another type than its column: %w", err)
	case diskFullClass:
		return withCause(ErrDiskFull, vedette.Errorf(vedette.Unavailable,
			"the file system of the database file is full: free some space there: %w", err))
	case busyClass:
		return vedette.Errorf(vedette.Unavailable, "%s: %w", sqliteBusyMessage(code&0xff), err)
	case readOnlyClass:
		return withCause(ErrReadOnly, vedette.Errorf(vedette.Unavailable,
			"the database file is read-only: check its owner, its mode and its file system: %w", err))
	case settingsClass:
		return vedette.Errorf(vedette.Invalid,
			"the database file is damaged or is not a SQLite database: move it away; the agents fill a new one: %w", err)
	}
	return err
}

func sqliteBusyMessage(primary int) string {
	switch primary {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return "the database file is locked by another process"
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return "the database file cannot be read or written: check its file system"
	}
	return "SQLite is temporarily unable to execute the statement"
}

func isSQLiteUniqueViolation(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}
