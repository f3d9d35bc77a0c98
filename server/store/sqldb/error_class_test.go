package sqldb

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/vedette-io/vedette"
)

// dataErrorNumbers are all error numbers of MySQL for which an object may be left out.
var dataErrorNumbers = map[uint16]bool{1048: true, 1118: true, 1153: true, 1264: true, 1265: true, 1292: true, 1300: true, 1301: true,
	1366: true, 1367: true, 1406: true, 1411: true, 1690: true}

func TestMySQLErrorClasses(t *testing.T) {
	d := openedDB(mysqlDialect())
	for n := range 1 << 16 {
		number := uint16(n)
		err := d.WrapError("commit", &mysql.MySQLError{Number: number, Message: "something"})
		checkClass(t, fmt.Sprint(number), err, dataErrorNumbers[number])
	}
	checkClass(t, "the driver's packet", d.WrapError("commit", mysql.ErrPktTooLarge), true)
}

// TestPostgreSQLErrorClasses checks all codes that PostgreSQL documents, and codes of each class
// that extensions may define.
func TestPostgreSQLErrorClasses(t *testing.T) {
	d := openedDB(postgresDialect())
	isData := func(state string) bool {
		class := state[:2]
		return (class == "22" || class == "23" || class == "54") && state != "23505" && state != "23P01"
	}
	const characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	states := documentedSQLStates(t)
	if len(states) < 200 {
		t.Fatalf("got %d documented codes, want at least 200", len(states))
	}
	for _, one := range characters {
		for _, two := range characters {
			states = append(states, string(one)+string(two)+"000", string(one)+string(two)+"P99")
		}
	}
	for _, state := range states {
		checkClass(t, state, d.WrapError("commit", &pgconn.PgError{Code: state, Message: "something"}), isData(state))
	}
	checkClass(t, "no code", d.WrapError("commit", &pgconn.PgError{Message: "something"}), false)
}

func documentedSQLStates(t *testing.T) (states []string) {
	file, err := os.Open("testdata/sqlstates.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		states = append(states, strings.Fields(lines.Text())...)
	}
	return states
}

func TestSQLiteErrorClasses(t *testing.T) {
	data := map[int]bool{sqlite3.SQLITE_TOOBIG: true, sqlite3.SQLITE_MISMATCH: true, sqlite3.SQLITE_CONSTRAINT_CHECK: true,
		sqlite3.SQLITE_CONSTRAINT_NOTNULL: true, sqlite3.SQLITE_CONSTRAINT_DATATYPE: true}
	for primary := range 1 << 8 {
		for extended := range 1 << 6 {
			code := extended<<8 | primary
			want := data[code] || data[primary]
			if err := translateSQLiteCode(code, errors.New("something")); errors.Is(err, ErrData) != want {
				t.Errorf("code %d: got %v, want a data error: %v", code, err, want)
			}
		}
	}
}

// TestInterruptedWritesAreUnavailable checks that an interrupted write is not blamed on its data,
// on each database.
func TestInterruptedWritesAreUnavailable(t *testing.T) {
	for _, d := range []Dialect{sqliteDialect(), postgresDialect(), mysqlDialect()} {
		s := openedDB(d)
		for _, interrupted := range []error{context.DeadlineExceeded, sql.ErrTxDone, sql.ErrConnDone, driver.ErrBadConn,
			errors.Join(errors.New("upsert 3 rows"), sql.ErrTxDone)} {
			if err := s.WrapError("commit", interrupted); vedette.KindOf(err) != vedette.Unavailable || !errors.Is(err, interrupted) {
				t.Errorf("%s: %v: got %v of kind %q, want kind %q", d.Name, interrupted, err, vedette.KindOf(err), vedette.Unavailable)
			}
		}
		if err := s.WrapError("commit", context.Canceled); vedette.KindOf(err) != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want %v unchanged", d.Name, err, context.Canceled)
		}
	}
}

// TestCredentialsRefusedAtRuntimeAreUnavailable checks that credentials that are rejected while
// the server runs are retried, unlike when it starts.
func TestCredentialsRefusedAtRuntimeAreUnavailable(t *testing.T) {
	for d, refused := range map[*Dialect]error{
		ptr(postgresDialect()): &pgconn.PgError{Code: "28P01"}, ptr(mysqlDialect()): &mysql.MySQLError{Number: 1045},
	} {
		starting, running := &DB{Dialect: *d}, openedDB(*d)
		if kind := vedette.KindOf(starting.WrapError("open", refused)); kind != vedette.Invalid {
			t.Errorf("%s: got kind %q when the server starts, want %q", d.Name, kind, vedette.Invalid)
		}
		if kind := vedette.KindOf(running.WrapError("commit", refused)); kind != vedette.Unavailable {
			t.Errorf("%s: got kind %q while it runs, want %q", d.Name, kind, vedette.Unavailable)
		}
	}
}

func ptr(d Dialect) *Dialect { return &d }

func openedDB(d Dialect) *DB {
	s := &DB{Dialect: d}
	s.opened.Store(true)
	return s
}

// checkClass expects vedette.Invalid and ErrData for errors that are caused by data, and neither
// for all others.
func checkClass(t *testing.T, code string, err error, data bool) {
	t.Helper()
	if invalid := vedette.KindOf(err) == vedette.Invalid; invalid != data || errors.Is(err, ErrData) != data {
		t.Errorf("%s: got %v of kind %q, data error %v, want data error %v", code, err, vedette.KindOf(err), errors.Is(err, ErrData), data)
	}
}

// TestOutdatedStatementsAreTriedAgain checks that "cached plan must not change result type" is told from what PostgreSQL does not support.
func TestOutdatedStatementsAreTriedAgain(t *testing.T) {
	d := openedDB(postgresDialect())
	for routine, want := range map[string]bool{"RevalidateCachedQuery": true, "transformSetOperationStmt": false} {
		err := d.WrapError("read", &pgconn.PgError{Code: "0A000", Routine: routine})
		if got := vedette.KindOf(err) == vedette.Unavailable; got != want {
			t.Errorf("%s: got %v, is it worth another try: %v, want %v", routine, err, got, want)
		}
	}
}
