package store

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

// dataNumbers are all of MySQL's error numbers that may cost an object its place.
var dataNumbers = map[uint16]bool{1048: true, 1118: true, 1153: true, 1264: true, 1265: true, 1292: true, 1300: true, 1301: true,
	1366: true, 1367: true, 1406: true, 1411: true, 1690: true}

func TestEveryNumberOfMySQL(t *testing.T) {
	s := opened(mysqlDialect())
	for n := range 1 << 16 {
		number := uint16(n)
		err := s.explain("commit", &mysql.MySQLError{Number: number, Message: "something"})
		checkClass(t, fmt.Sprint(number), err, dataNumbers[number])
	}
	checkClass(t, "the driver's packet", s.explain("commit", mysql.ErrPktTooLarge), true)
}

// TestEverySQLState goes through the codes that PostgreSQL documents, and what others
// may make up in their classes.
func TestEverySQLState(t *testing.T) {
	s := opened(postgresDialect())
	isData := func(state string) bool {
		class := state[:2]
		return (class == "22" || class == "23" || class == "54") && state != "23505" && state != "23P01"
	}
	const signs = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	states := documented(t)
	if len(states) < 200 {
		t.Fatalf("only %d codes are listed", len(states))
	}
	for _, one := range signs {
		for _, two := range signs {
			states = append(states, string(one)+string(two)+"000", string(one)+string(two)+"P99")
		}
	}
	for _, state := range states {
		checkClass(t, state, s.explain("commit", &pgconn.PgError{Code: state, Message: "something"}), isData(state))
	}
	checkClass(t, "no code", s.explain("commit", &pgconn.PgError{Message: "something"}), false)
}

func documented(t *testing.T) (states []string) {
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

func TestEveryCodeOfSQLite(t *testing.T) {
	data := map[int]bool{sqlite3.SQLITE_TOOBIG: true, sqlite3.SQLITE_MISMATCH: true, sqlite3.SQLITE_CONSTRAINT_CHECK: true,
		sqlite3.SQLITE_CONSTRAINT_NOTNULL: true, sqlite3.SQLITE_CONSTRAINT_DATATYPE: true}
	for primary := range 1 << 8 {
		for extended := range 1 << 6 {
			code := extended<<8 | primary
			want := data[code] || data[primary]
			if err := explainCode(code, errors.New("something")); errors.Is(err, ErrData) != want {
				t.Errorf("code %d: %v", code, err)
			}
		}
	}
}

// TestWhatBrokeOff holds that what ends a deed before its time says nothing of what it
// was about, on each database.
func TestWhatBrokeOff(t *testing.T) {
	for _, d := range []dialect{sqliteDialect(), postgresDialect(), mysqlDialect()} {
		s := opened(d)
		for _, broken := range []error{context.DeadlineExceeded, sql.ErrTxDone, sql.ErrConnDone, driver.ErrBadConn,
			errors.Join(errors.New("upsert 3 rows"), sql.ErrTxDone)} {
			if err := s.explain("commit", broken); vedette.KindOf(err) != vedette.Unavailable || !errors.Is(err, broken) {
				t.Errorf("%s: %v becomes %v, of kind %q", d.name, broken, err, vedette.KindOf(err))
			}
		}
		if err := s.explain("commit", context.Canceled); vedette.KindOf(err) != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

// TestSettingsThatChange holds that a user who is refused while the server runs is no
// reason to give anything up, as it is when the server starts.
func TestSettingsThatChange(t *testing.T) {
	for d, refused := range map[*dialect]error{
		ptr(postgresDialect()): &pgconn.PgError{Code: "28P01"}, ptr(mysqlDialect()): &mysql.MySQLError{Number: 1045},
	} {
		starting, running := &Store{dialect: *d}, opened(*d)
		if kind := vedette.KindOf(starting.explain("open", refused)); kind != vedette.Invalid {
			t.Errorf("%s: at the start it is %q", d.name, kind)
		}
		if kind := vedette.KindOf(running.explain("commit", refused)); kind != vedette.Unavailable {
			t.Errorf("%s: later it is %q", d.name, kind)
		}
	}
}

func ptr(d dialect) *dialect { return &d }

func opened(d dialect) *Store {
	s := &Store{dialect: d}
	s.opened.Store(true)
	return s
}

// checkClass wants vedette.Invalid and ErrData of what names the data, and of all else
// anything but these.
func checkClass(t *testing.T, code string, err error, data bool) {
	t.Helper()
	if invalid := vedette.KindOf(err) == vedette.Invalid; invalid != data || errors.Is(err, ErrData) != data {
		t.Errorf("%s: %v, of kind %q, names the data: %v", code, err, vedette.KindOf(err), errors.Is(err, ErrData))
	}
}
