package write_test

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/write"
	"github.com/vedette-io/vedette/test/databases"
)

// TestReservedWordsAreQuoted checks against the list of MySQL, because MariaDB reserves fewer
// words.
func TestReservedWordsAreQuoted(t *testing.T) {
	text, err := os.ReadFile("testdata/mysql-reserved.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\n")
	reserved := strings.Fields(list)
	s, err := store.Open(t.Context(), sqldb.Config{URL: databases.MariaDB(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var found []string
	err = s.QueryEach(t.Context(), func(rows *sql.Rows) error {
		var table, column string
		err := rows.Scan(&table, &column)
		for _, name := range []string{table, column} {
			if slices.Contains(reserved, strings.ToLower(name)) {
				found = append(found, name)
			}
		}
		return err
	}, sqldb.Named("test", `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE()`))
	if err != nil || !slices.Equal(found, []string{"stored"}) {
		t.Errorf("got tables and columns with reserved names %q, %v, want stored", found, err)
	}
	first, err := os.ReadFile("../sqldb/migrations/mysql/00001_first.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(first), write.MySQLUpsertStatement(1).SQL} {
		if !strings.Contains(text, "`stored`") || strings.Contains(strings.ReplaceAll(text, "`stored`", ""), "stored") {
			t.Errorf("got a reserved word without quotes in %.400s", text)
		}
	}
}

// TestPagesDoNotRereadRows reads a feed in pages. No page may start at the feed's first row again,
// nor read the whole table.
func TestPagesDoNotRereadRows(t *testing.T) {
	const pods, size = 4000, 1000
	f := newFixtureWith(t, sqldb.Config{URL: databases.MariaDB(t), MaxConns: 1}) // the server counts reads per connection
	f.CommitPods(1, storetest.PodsAt(0, pods, 1)...)
	if _, err := f.Stats(t.Context()); err != nil { // updates the statistics
		t.Fatal(err)
	}
	accountID, kindID := f.ids()
	for what, do := range map[string]func() error{
		"the index": func() error {
			return f.ScanFeed(t.Context(), accountID, catalog.Feed{KindID: kindID}, size)
		},
		"objects": func() (err error) {
			page := read.Page{Next: " "}
			for q := (read.Query{Limit: size, SkipTotal: true}); page.Next != "" && err == nil; q.After = page.Next {
				page, err = f.Objects(t.Context(), q)
			}
			return err
		},
	} {
		before := f.rowsRead()
		f.Must(do())
		if n := f.rowsRead() - before; n < pods-size || n > pods*9/4 {
			t.Errorf("%s: got %d rows read for %d in pages of %d, want each row read about once", what, n, pods, size)
		}
	}
}

// TestPurgeReadsOnlyOldRows purges few of many operations.
func TestPurgeReadsOnlyOldRows(t *testing.T) {
	const all, old = 2000, 10
	f := newFixtureWith(t, sqldb.Config{URL: databases.MariaDB(t), MaxConns: 1})
	var operations []history.Operation
	for n := range all {
		operations = append(operations, history.Operation{ID: vedette.OperationID(fmt.Sprintf("01J%023d", n)), Account: "prod", State: vedette.Done, Accepted: time.Unix(int64(n+1), 0)})
	}
	f.Must(f.EndOperations(t.Context(), operations))
	before := f.rowsRead()
	n, _, err := f.PurgeOperations(t.Context(), time.Unix(old+1, 0), all)
	if rows := f.rowsRead() - before; err != nil || n != old || rows > all/10 {
		t.Errorf("got %d operations purged, %d rows read, %v, want %d purged and at most %d read", n, rows, err, old, all/10)
	}
}

// ids returns the ids of the account and the kind.
func (f *fixture) ids() (accountID, kindID int64) {
	accountID, err := f.AccountID(f.T.Context(), "prod")
	f.Must(err)
	f.Must(f.QueryOne(f.T.Context(), sqldb.ScanInto(&kindID), sqldb.Named("test", `SELECT id FROM kinds WHERE name = ?`), storetest.PodFeed.Kind.Name))
	return accountID, kindID
}

// rowsRead returns how many rows the only connection has read in sequence. Some count twice:
// MariaDB counts index entries separately, and MySQL counts lookups of labels in an empty table.
func (f *fixture) rowsRead() (n int) {
	err := f.QueryEach(f.T.Context(), func(rows *sql.Rows) error {
		var name string
		var value int
		err := rows.Scan(&name, &value)
		n += value
		return err
	}, sqldb.Named("test", `SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_next', 'Handler_read_rnd_next', 'Handler_icp_attempts')`))
	f.Must(err)
	return n
}

// TestDeleteReadsOnlyItsRows deletes most rows of a namespace in a small table, of which a planner may
// prefer to read all rows. That would lock rows of other namespaces and accounts.
func TestDeleteReadsOnlyItsRows(t *testing.T) {
	const pods, deleted = 300, 250
	f := newFixtureWith(t, sqldb.Config{URL: databases.MariaDB(t), MaxConns: 1})
	f.CommitPods(1, storetest.PodsAt(0, pods, 1)...)
	others := storetest.PodsAt(pods, pods, 1)
	for i := range others {
		others[i].Key.Namespace = "other"
	}
	f.CommitPods(1, others...)
	_, err := f.Stats(t.Context()) // updates the statistics
	f.Must(err)
	accountID, kindID := f.ids()
	var keys []catalog.Key
	for _, o := range storetest.PodsAt(0, deleted, 1) {
		keys = append(keys, catalog.Key{KindID: kindID, Namespace: o.Key.Namespace, Name: o.Key.Name})
	}
	before := f.rowsRead()
	f.Must(f.Remove(t.Context(), accountID, keys))
	if n := f.rowsRead() - before; n > pods {
		t.Errorf("got %d rows read to delete %d, want at most %d, which the namespace has", n, deleted, pods)
	}
}
