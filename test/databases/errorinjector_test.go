package databases

import (
	"database/sql"
	"errors"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// openThroughInjector opens a database through an ErrorInjector, with one connection and a table.
func openThroughInjector(t *testing.T, driver, url string, dsn func(string) (string, error)) (*ErrorInjector, *sql.DB) {
	r, url := StartErrorInjector(t, url)
	text, err := dsn(url)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open(driver, text)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE t (n INT PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	return r, db
}

// insert inserts numbers in one transaction.
func insert(t *testing.T, db *sql.DB, numbers ...int) error {
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	for _, n := range numbers {
		if _, err := tx.ExecContext(t.Context(), `INSERT INTO t (n) SELECT n FROM (SELECT `+string(rune('0'+n))+` AS n) x`); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func errorCode(err error) string {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	switch {
	case errors.As(err, &pg):
		return pg.Code
	case errors.As(err, &my):
		return strconv.Itoa(int(my.Number))
	}
	return ""
}

// testErrorInjector makes each statement of a transaction fail in turn. The transaction must have
// no effect, and the connection must remain usable.
func testErrorInjector(t *testing.T, r *ErrorInjector, db *sql.DB, code string) {
	for every := 1; every <= 4; every++ { // BEGIN, two INSERTs, which pgx prepares first, COMMIT
		r.sinceLast = 0
		r.FailEvery(code, every)
		err := insert(t, db, 1, 2)
		r.Reset()
		if errorCode(err) != code {
			t.Errorf("statement %d: got %v, want code %s", every, err, code)
		}
		var n int
		if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM t`).Scan(&n); err != nil || n != 0 {
			t.Errorf("after statement %d failed: got %d rows, error %v, want 0", every, n, err)
		}
	}
	if err := insert(t, db, 1, 2); err != nil || r.Injected() < 4 {
		t.Errorf("after Reset: got error %v, and %d injected errors, want at least 4", err, r.Injected())
	}
}

func TestErrorInjectorPostgreSQL(t *testing.T) {
	r, db := openThroughInjector(t, "pgx", PostgreSQL(t), postgresDSN)
	testErrorInjector(t, r, db, "40001")
}

// The server closes the connection after some errors.
func TestErrorInjectorClosesConnection(t *testing.T) {
	r, db := openThroughInjector(t, "pgx", PostgreSQL(t), postgresDSN)
	r.FailEvery("57P01", 2)
	if err := insert(t, db, 1); errorCode(err) != "57P01" {
		t.Error(err)
	}
	r.Reset()
	if err := insert(t, db, 1); err != nil {
		t.Error(err)
	}
}

func TestErrorInjectorMariaDB(t *testing.T) {
	r, db := openThroughInjector(t, "mysql", MariaDB(t), MySQLDSN)
	testErrorInjector(t, r, db, "1213")
}
