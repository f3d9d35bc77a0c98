package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

func mariaDBError(number uint16) error { return &mysql.MySQLError{Number: number} }

func postgresError(code string) error { return &pgconn.PgError{Code: code} }

func newTestDB(dialect Dialect) *DB {
	d, _ := newDB(Config{})
	d.Dialect = dialect
	return d
}

func TestConflictsAreRetriedWithPauses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		dialect Dialect
		err     error
		fails   int // tries that fail; -1 for all
		want    int // tries
	}{
		{"no error", mysqlDialect(), mariaDBError(1213), 0, 1},
		{"a deadlock", mysqlDialect(), mariaDBError(1213), 1, 2},
		{"a conflict between nodes when it commits, again and again", mysqlDialect(), mariaDBError(1213), maxConflictRetries, maxConflictRetries + 1},
		{"it gives up", mysqlDialect(), mariaDBError(1213), -1, maxConflictRetries + 1},
		{"a lock that is not released", mysqlDialect(), mariaDBError(1205), 2, 3},
		{"a commit of which the result is not known", mysqlDialect(), mariaDBError(1180), -1, 1},
		{"a serialization failure", postgresDialect(), postgresError("40001"), 3, 4},
		{"a deadlock of PostgreSQL", postgresDialect(), postgresError("40P01"), 3, 4},
		{"bad data", postgresDialect(), postgresError("22001"), -1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, tries := time.Now(), 0
			err := newTestDB(tt.dialect).retryOnConflict(t.Context(), func() error {
				if tries++; tt.fails >= 0 && tries > tt.fails {
					return nil
				}
				return tt.err
			})
			if tries != tt.want || (err != nil) != (tt.fails < 0) {
				t.Errorf("%s: got %d tries, %v, want %d", tt.name, tries, err, tt.want)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("%s: the pauses took %v, want less than a second", tt.name, took)
			}
		})
	}
}

func TestRetriesEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := newTestDB(mysqlDialect()).retryOnConflict(t.Context(), func() error {
			time.Sleep(queryTimeout / 2) // as MariaDB waits for a lock
			return mariaDBError(1205)
		})
		if err == nil || time.Since(start) > 2*queryTimeout {
			t.Errorf("got %v after %v, want an error after at most %v", err, time.Since(start), 2*queryTimeout)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		tries := 0
		err := newTestDB(mysqlDialect()).retryOnConflict(ctx, func() error { tries++; cancel(); return mariaDBError(1213) })
		if tries != 1 || err == nil {
			t.Errorf("got %d tries, %v, want one: the caller has given up", tries, err)
		}
	})
}

func TestTerminatedConnectionsAreReplaced(t *testing.T) {
	for _, tt := range []struct {
		dialect Dialect
		err     error
		want    bool
	}{
		{postgresDialect(), postgresError("57P01"), true},
		{postgresDialect(), postgresError("57P03"), true},
		{postgresDialect(), postgresError("57014"), false}, // canceled
		{mysqlDialect(), mariaDBError(1047), true},
		{mysqlDialect(), mariaDBError(1927), true},
		{mysqlDialect(), mariaDBError(1317), false}, // interrupted
		{sqliteDialect(), errors.New("any"), false},
	} {
		d := newTestDB(tt.dialect)
		if got := errors.Is(d.retryOnOtherConnection(tt.err), driver.ErrBadConn); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.want)
		}
	}
}
