package sqldb

import (
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"
)

// TestWriteProblemsAreTold checks which errors of databases say that the disk is full, or that the server takes
// no writes.
func TestWriteProblemsAreTold(t *testing.T) {
	sqliteError := func(code int) error { return translateSQLiteCode(code, errors.New("something")) }
	mysqlError := func(number uint16) error {
		return openedDB(mysqlDialect()).WrapError("commit", &mysql.MySQLError{Number: number, Message: "something"})
	}
	postgresError := func(state string) error {
		return openedDB(postgresDialect()).WrapError("commit", &pgconn.PgError{Code: state, Message: "something"})
	}
	for name, tt := range map[string]struct {
		err  error
		want WriteProblem
	}{
		"SQLite, full":                     {sqliteError(sqlite3.SQLITE_FULL), DiskFull},
		"SQLite, read-only":                {sqliteError(sqlite3.SQLITE_READONLY), ReadOnly},
		"SQLite, read-only directory":      {sqliteError(sqlite3.SQLITE_READONLY_DIRECTORY), ReadOnly},
		"SQLite, locked":                   {sqliteError(sqlite3.SQLITE_BUSY), ""},
		"PostgreSQL, full":                 {postgresError("53100"), DiskFull},
		"PostgreSQL, standby":              {postgresError("25006"), ReadOnly},
		"PostgreSQL, too many connections": {postgresError("53300"), ""},
		"MariaDB, full":                    {mysqlError(1021), DiskFull},
		"MariaDB, table full":              {mysqlError(1114), DiskFull},
		"MariaDB, error on write":          {mysqlError(3), DiskFull},
		"MySQL, tablespace full":           {mysqlError(3675), DiskFull},
		"MySQL, --read-only":               {mysqlError(1290), ReadOnly},
		"MySQL, read-only mode":            {mysqlError(1836), ReadOnly},
		"MySQL, lock":                      {mysqlError(1205), ""},
		"no error":                         {nil, ""},
	} {
		if got := ProblemOf(tt.err); got != tt.want {
			t.Errorf("%s: got problem %q of %v, want %q", name, got, tt.err, tt.want)
		}
	}
}

// TestWriteProblemLastsUntilWritesSucceed checks when a database counts as one that takes no writes.
func TestWriteProblemLastsUntilWritesSucceed(t *testing.T) {
	start := time.Now()
	full, other := withCause(ErrDiskFull, errors.New("no space left on device")), errors.New("connection refused")
	type step struct {
		after time.Duration
		err   error
		want  WriteProblem // afterwards
	}
	for name, steps := range map[string][]step{
		"writes succeed":                           {{0, nil, ""}, {1, nil, ""}},
		"another error says nothing":               {{0, other, ""}, {1, nil, ""}},
		"full":                                     {{0, full, DiskFull}, {problemDuration, other, DiskFull}},
		"a success does not end it at once":        {{0, full, DiskFull}, {1, nil, DiskFull}},
		"a success ends it after a while":          {{0, full, DiskFull}, {1, nil, DiskFull}, {problemDuration, nil, ""}},
		"large writes fail, small ones do not":     {{0, full, DiskFull}, {problemDuration - 2, nil, DiskFull}, {problemDuration - 1, full, DiskFull}, {problemDuration, nil, DiskFull}},
		"no success since the last failure":        {{0, full, DiskFull}, {1, nil, DiskFull}, {2, full, DiskFull}, {3 * problemDuration, other, DiskFull}},
		"read-only, then full":                     {{0, withCause(ErrReadOnly, other), ReadOnly}, {1, full, DiskFull}},
		"an old problem does not return by itself": {{0, full, DiskFull}, {problemDuration, nil, ""}, {problemDuration + 1, other, ""}},
	} {
		w := &writeState{}
		for i, s := range steps {
			now := start.Add(s.after)
			w.ended(s.err, now)
			if got := ProblemOf(w.current(now)); got != s.want {
				t.Errorf("%s: step %d: got %q, want %q", name, i, got, s.want)
			}
		}
	}
}
