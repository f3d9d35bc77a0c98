package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/databases"
)

// TestMySQLIsolationIsReadCommitted checks connections of both pools. The variable has different
// names in MySQL and in MariaDB before 11.1.
func TestMySQLIsolationIsReadCommitted(t *testing.T) {
	s, err := Open(context.Background(), Config{URL: databases.MariaDB(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for name, db := range map[string]*sql.DB{"transactions": s.db, "migrations": s.migrator} {
		var variable, level string
		err := db.QueryRow(`SHOW SESSION VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')`).Scan(&variable, &level)
		if err != nil || level != "READ-COMMITTED" {
			t.Errorf("%s: got %s %q, %v, want READ-COMMITTED", name, variable, level, err)
		}
	}
}

// TestReservedWordsAreQuoted checks against the list of MySQL, because MariaDB reserves fewer
// words.
func TestReservedWordsAreQuoted(t *testing.T) {
	text, err := os.ReadFile("testdata/mysql-reserved.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\n")
	reserved := strings.Fields(list)
	s, err := Open(t.Context(), Config{URL: databases.MariaDB(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var found []string
	err = s.queryEach(t.Context(), func(rows *sql.Rows) error {
		var table, column string
		err := rows.Scan(&table, &column)
		for _, name := range []string{table, column} {
			if slices.Contains(reserved, strings.ToLower(name)) {
				found = append(found, name)
			}
		}
		return err
	}, `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE()`)
	if err != nil || !slices.Equal(found, []string{"stored"}) {
		t.Errorf("got tables and columns with reserved names %q, %v, want stored", found, err)
	}
	first, err := migrationFiles.ReadFile("migrations/mysql/00001_first.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(first), mysqlUpsertStatement(1)} {
		if !strings.Contains(text, "`stored`") || strings.Contains(strings.ReplaceAll(text, "`stored`", ""), "stored") {
			t.Errorf("got a reserved word without quotes in %.400s", text)
		}
	}
}

// TestPagesDoNotRereadRows reads a feed in pages. No page may start at the feed's first row again,
// nor read the whole table.
func TestPagesDoNotRereadRows(t *testing.T) {
	const pods, size = 4000, 1000
	w := newFixtureWith(t, Config{URL: databases.MariaDB(t), MaxConns: 1}) // the server counts reads per connection
	w.commit(1, podsAt(0, pods, 1)...)
	if _, err := w.Stats(t.Context()); err != nil { // updates the statistics
		t.Fatal(err)
	}
	accountID, kindID := w.ids()
	for what, read := range map[string]func() error{
		"the index": func() error {
			return w.scanFeedRows(t.Context(), accountID, feedKey{kindID: kindID}, size, func([]indexRow) error { return nil })
		},
		"objects": func() (err error) {
			page := Page{Next: " "}
			for q := (Query{Limit: size, SkipTotal: true}); page.Next != "" && err == nil; q.After = page.Next {
				page, err = w.Objects(t.Context(), q)
			}
			return err
		},
	} {
		before := w.rowsRead()
		w.must(read())
		if n := w.rowsRead() - before; n < pods-size || n > pods*9/4 {
			t.Errorf("%s: got %d rows read for %d in pages of %d, want each row read about once", what, n, pods, size)
		}
	}
}

// TestPurgeReadsOnlyOldRows purges few of many operations.
func TestPurgeReadsOnlyOldRows(t *testing.T) {
	const all, old = 2000, 10
	w := newFixtureWith(t, Config{URL: databases.MariaDB(t), MaxConns: 1})
	var operations []OperationRow
	for n := range all {
		operations = append(operations, OperationRow{ID: vedette.OperationID(fmt.Sprintf("01J%023d", n)), Account: "prod", State: vedette.Done, Accepted: time.Unix(int64(n+1), 0)})
	}
	w.must(w.EndOperations(t.Context(), operations))
	before := w.rowsRead()
	n, err := w.PurgeOperations(t.Context(), time.Unix(old+1, 0), all)
	if read := w.rowsRead() - before; err != nil || n != old || read > all/10 {
		t.Errorf("got %d operations purged, %d rows read, %v, want %d purged and at most %d read", n, read, err, old, all/10)
	}
}

// ids returns the ids of the account and the kind.
func (w *fixture) ids() (accountID, kindID int64) {
	accountID, err := w.accountID(w.t.Context(), "prod")
	w.must(err)
	kindID, _, err = w.kinds.lookupID(w.t.Context(), w.Store, podFeed.Kind)
	w.must(err)
	return accountID, kindID
}

// rowsRead returns how many rows the only connection has read in sequence. Some count twice:
// MariaDB counts index entries separately, and MySQL counts lookups of labels in an empty table.
func (w *fixture) rowsRead() (n int) {
	err := w.queryEach(w.t.Context(), func(rows *sql.Rows) error {
		var name string
		var value int
		err := rows.Scan(&name, &value)
		n += value
		return err
	}, `SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_next', 'Handler_read_rnd_next', 'Handler_icp_attempts')`)
	w.must(err)
	return n
}

// TestServerWithoutAutocommit writes one statement and reads it on another connection.
func TestServerWithoutAutocommit(t *testing.T) {
	dbURL := databases.StartMariaDB(t, databases.Options{Settings: []string{"autocommit=0"}}).URL
	var stores [2]*Store
	for i := range stores {
		s, err := Open(t.Context(), Config{URL: dbURL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		stores[i] = s
	}
	if err := stores[0].BeginOperation(t.Context(), OperationRow{ID: "01J", Account: "prod"}); err != nil {
		t.Fatal(err)
	}
	if _, err := stores[1].Operation(t.Context(), "01J"); err != nil {
		t.Error(err)
	}
}

// TestDeleteReadsOnlyItsRows deletes most rows of a namespace in a small table, of which a planner may
// prefer to read all rows. That would lock rows of other namespaces and accounts.
func TestDeleteReadsOnlyItsRows(t *testing.T) {
	const pods, deleted = 300, 250
	w := newFixtureWith(t, Config{URL: databases.MariaDB(t), MaxConns: 1})
	w.commit(1, podsAt(0, pods, 1)...)
	others := podsAt(pods, pods, 1)
	for i := range others {
		others[i].Key.Namespace = "other"
	}
	w.commit(1, others...)
	_, err := w.Stats(t.Context()) // updates the statistics
	w.must(err)
	accountID, kindID := w.ids()
	var keys []rowKey
	for _, o := range podsAt(0, deleted, 1) {
		keys = append(keys, rowKey{kindID, o.Key.Namespace, o.Key.Name})
	}
	sortKeys(keys)
	before := w.rowsRead()
	w.must(w.write(t.Context(), func(ctx context.Context, tx *transaction) error { return w.dialect.remove(ctx, tx, accountID, keys) }))
	if n := w.rowsRead() - before; n > pods {
		t.Errorf("got %d rows read to delete %d, want at most %d, which the namespace has", n, deleted, pods)
	}
}

// TestIdleTransaction makes the server close a connection within a transaction, as when the
// machine is suspended. MySQL returns an error number, and MariaDB closes the connection. Neither
// may be blamed on an object.
func TestIdleTransaction(t *testing.T) {
	dbURL := databases.MariaDB(t)
	shortTimeoutURL, err := url.Parse(dbURL)
	if err != nil {
		t.Fatal(err)
	}
	query := shortTimeoutURL.Query()
	query.Set("wait_timeout", "1")
	shortTimeoutURL.RawQuery = query.Encode()
	s, err := Open(t.Context(), Config{URL: shortTimeoutURL.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	watcher, err := Open(t.Context(), Config{URL: dbURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watcher.Close() })
	err = s.write(t.Context(), func(ctx context.Context, tx *transaction) error {
		var connection int64
		err := tx.QueryRowContext(ctx, `SELECT CONNECTION_ID()`).Scan(&connection)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for connected := true; err == nil && connected; <-tick.C {
			err = watcher.queryOne(ctx, scanInto(&connected), `SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?`, connection)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.exec(ctx, `DO 1`)
		return err
	})
	if err := s.wrapError("write", err); vedette.KindOf(err) != vedette.Unavailable {
		t.Errorf("got %v, want an error of kind %s", err, vedette.Unavailable)
	}
}

// TestRefusedConnections opens connections that fail on each try.
func TestRefusedConnections(t *testing.T) {
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
			_, err := Open(t.Context(), Config{URL: u.String()})
			if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), test.wantMessage) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want an error of kind %s with %q and without the password", err, vedette.Invalid, test.wantMessage)
			}
		})
	}
}

// TestMySQLErrors checks errors that only some servers or settings return.
func TestMySQLErrors(t *testing.T) {
	for _, test := range []struct {
		err         error
		kind        vedette.ErrorKind
		wantMessage string
	}{
		{&mysql.MySQLError{Number: 3159, Message: "Connections using insecure transport are prohibited"}, vedette.Invalid, "add tls=true"},
		{&mysql.MySQLError{Number: 1524, Message: "Plugin 'mysql_native_password' is not loaded"}, vedette.Invalid, "rejects the user"},
		{errors.New("unexpected resp from server for caching_sha2_password, perform full authentication"), vedette.Invalid, "add tls=true"},
		{&mysql.MySQLError{Number: 3032, Message: "The server is currently in offline mode"}, vedette.Unavailable, "temporarily unable"},
		{&mysql.MySQLError{Number: 1317, Message: "Query execution was interrupted"}, vedette.Unavailable, "temporarily unable"},
		{errors.Join(&mysql.MySQLError{Number: 9999}, mysql.ErrInvalidConn), vedette.Unavailable, "does not answer"},
		{&mysql.MySQLError{Number: 1406, Message: "Data too long"}, vedette.Invalid, "Data too long"},
	} {
		if err := translateMySQLError(test.err); vedette.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.wantMessage) {
			t.Errorf("%v: got %v of kind %q, want %q of kind %q", test.err, err, vedette.KindOf(err), test.wantMessage, test.kind)
		}
	}
}
