package store_test

import (
	"database/sql"
	"errors"
	"net/url"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

// TestWritesFollowAFailover makes the connections of a store lead to a server that takes no writes, like a
// primary that has become a replica, and new connections to one that does.
func TestWritesFollowAFailover(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		dbURL := databases.PostgreSQL(t)
		db, err := sql.Open("pgx", dbURL)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		name := parseURL(t, dbURL).Path[1:]
		testFailover(t, dbURL, db, "ALTER DATABASE "+name+" SET default_transaction_read_only = on", "ALTER DATABASE "+name+" SET default_transaction_read_only = off",
			"SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	})
	t.Run("MariaDB", func(t *testing.T) {
		server := databases.StartMariaDB(t, databases.Options{})
		dsn, err := databases.MySQLDSN(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, statement := range []string{"CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'plain'", "GRANT ALL ON vedette.* TO plain@'127.0.0.1'"} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		u := parseURL(t, server.URL)
		u.User = url.UserPassword("plain", "plain")
		testFailover(t, u.String(), db, "SET GLOBAL init_connect = 'SET SESSION TRANSACTION READ ONLY'", "SET GLOBAL init_connect = ''", "KILL USER plain@'127.0.0.1'")
	})
}

func testFailover(t *testing.T, dbURL string, db *sql.DB, demote, promote, disconnect string) {
	s := storetest.Open(t, dbURL)
	term := registerAccount(t, s)
	for _, statement := range []string{demote, disconnect} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	waitForStore(t, s)
	if err := commitOne(t, s, term, 1); vedette.KindOf(err) != vedette.Unavailable || errors.Is(err, sqldb.ErrData) {
		t.Fatalf("on a read-only server: got %v, want an error of kind %s", err, vedette.Unavailable)
	}
	if _, err := s.Objects(t.Context(), read.Query{}); err != nil {
		t.Fatalf("reading from a read-only server: got %v, want no error", err)
	}
	if _, err := db.ExecContext(t.Context(), promote); err != nil {
		t.Fatal(err)
	}
	if err := commitOne(t, s, term, 1); err != nil {
		t.Errorf("on the new primary: got %v, want no error", err)
	}
	if err := s.BeginOperation(t.Context(), history.Operation{ID: "01JZZZZZZZZZZZZZZZZZZZZZZZ"}); err != nil {
		t.Errorf("one statement on the new primary: got %v, want no error", err)
	}
}
