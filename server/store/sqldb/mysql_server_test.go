package sqldb_test

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/databases"
)

// TestMySQLIsolationIsReadCommitted checks connections of both pools. The variable has different
// names in MySQL and in MariaDB before 11.1.
func TestMySQLIsolationIsReadCommitted(t *testing.T) {
	s, err := store.Open(context.Background(), sqldb.Config{URL: databases.MariaDB(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	writes, _, migrator := s.Pools()
	for name, db := range map[string]*sql.DB{"transactions": writes, "migrations": migrator} {
		var variable, level string
		err := db.QueryRow(`SHOW SESSION VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')`).Scan(&variable, &level)
		if err != nil || level != "READ-COMMITTED" {
			t.Errorf("%s: got %s %q, %v, want READ-COMMITTED", name, variable, level, err)
		}
	}
}

// TestServerWithoutAutocommit writes one statement and reads it on another connection.
func TestServerWithoutAutocommit(t *testing.T) {
	dbURL := databases.StartMariaDB(t, databases.Options{Settings: []string{"autocommit=0"}}).URL
	var stores [2]*store.Store
	for i := range stores {
		s, err := store.Open(t.Context(), sqldb.Config{URL: dbURL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		stores[i] = s
	}
	if err := stores[0].BeginOperation(t.Context(), history.Operation{ID: "01J", Account: "prod"}); err != nil {
		t.Fatal(err)
	}
	if _, err := stores[1].Operation(t.Context(), "01J"); err != nil {
		t.Error(err)
	}
}

// TestClosedTransactionBlamesNoObject makes the server close a connection within a transaction, as when the
// machine is suspended. MySQL returns an error number, and MariaDB closes the connection. Neither
// may be blamed on an object.
func TestClosedTransactionBlamesNoObject(t *testing.T) {
	dbURL := databases.MariaDB(t)
	shortTimeoutURL, err := url.Parse(dbURL)
	if err != nil {
		t.Fatal(err)
	}
	query := shortTimeoutURL.Query()
	query.Set("wait_timeout", "1")
	shortTimeoutURL.RawQuery = query.Encode()
	s, err := store.Open(t.Context(), sqldb.Config{URL: shortTimeoutURL.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	watcher, err := store.Open(t.Context(), sqldb.Config{URL: dbURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watcher.Close() })
	err = s.Write(t.Context(), func(ctx context.Context, tx *sqldb.Tx) error {
		var connection int64
		err := tx.QueryRowContext(ctx, `SELECT CONNECTION_ID()`).Scan(&connection)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for connected := true; err == nil && connected; <-tick.C {
			err = watcher.QueryOne(ctx, sqldb.ScanInto(&connected), sqldb.Named("test", `SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?`), connection)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.Exec(ctx, sqldb.Named("test", `DO 1`))
		return err
	})
	if err := s.WrapError("write", err); vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("got %v, want an error of kind %s", err, vedette.Unavailable)
	}
}

// TestRefusedConnectionsHideThePassword opens connections that fail on each try.
func TestRefusedConnectionsHideThePassword(t *testing.T) {
	server := databases.StartMariaDB(t, databases.Options{})
	serverURL, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ createOptions, query, wantMessage string }{
		"locked":         {" ACCOUNT LOCK", "", "check the URL and the user's privileges"},
		"expired":        {" PASSWORD EXPIRE", "", "check the URL and the user's privileges"},
		"without_rights": {"", "", "check the URL and the user's privileges"},
		"certificate":    {"", "tls=true", "tls"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := databases.Exec(server.URL, "CREATE USER "+name+"@'127.0.0.1' IDENTIFIED BY 'hunter2'"+test.createOptions); err != nil {
				t.Fatal(err)
			}
			u := *serverURL
			u.User, u.RawQuery = url.UserPassword(name, "hunter2"), test.query
			_, err := store.Open(t.Context(), sqldb.Config{URL: u.String()})
			if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), test.wantMessage) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want an error of kind %s with %q and without the password", err, vedette.Invalid, test.wantMessage)
			}
		})
	}
}
