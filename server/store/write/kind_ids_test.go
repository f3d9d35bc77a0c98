package write_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

// TestKindIDs runs the tests of kind ids on each database.
func TestKindIDs(t *testing.T) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "v.db") },
		"PostgreSQL": databases.PostgreSQL,
		"MariaDB":    databases.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			url(t) // keeps the server up between the tests
			for name, test := range map[string]func(*testing.T, *fixture){"unused kinds are deleted": testUnusedKindsAreDeleted,
				"a kind that another server deleted": testDeletedKindIsDeclaredAgain,
				"ids are not reused":                 testKindIDsAreNotReused, "declarations are limited": testKindLimits, "a replaced writer is rejected": testReplacedWriterIsRejected} {
				t.Run(name, func(t *testing.T) { test(t, newFixtureWith(t, sqldb.Config{URL: url(t)})) })
			}
		})
	}
}

// kindFeeds returns feeds of n kinds that no other test has.
func kindFeeds(prefix string, n int) (feeds []commit.DeclaredFeed) {
	for i := range n {
		feeds = append(feeds, commit.DeclaredFeed{Feed: vedette.Feed{Kind: vedette.Kind{Group: "example.org", Name: fmt.Sprint(prefix, i)}}})
	}
	return feeds
}

func (f *fixture) declare(feeds ...commit.DeclaredFeed) error {
	_, err := f.Declare(f.T.Context(), "prod", f.Term, append(feeds, commit.DeclaredFeed{Feed: storetest.PodFeed}), nil)
	return err
}

func (f *fixture) count(query string) (n int) {
	f.T.Helper()
	f.Must(f.QueryOne(f.T.Context(), sqldb.ScanInto(&n), sqldb.Named("test", query)))
	return n
}

func testUnusedKindsAreDeleted(t *testing.T, f *fixture) {
	f.Must(f.declare(kindFeeds("Old", 3)...))
	var objects []vedette.Object
	for i := range 40 { // enough for a dictionary
		o := storetest.PodAt(i, 1)
		o.Kind = vedette.Kind{Group: "example.org", Name: "Old0"}
		o.Body = []byte(strings.Repeat(fmt.Sprintf(`{"n":%d}`, i), 30))
		objects = append(objects, o)
	}
	f.CommitPods(1, objects...)
	if n := f.count(`SELECT COUNT(*) FROM dictionaries`); n == 0 {
		t.Fatal("got no dictionary, want one")
	}
	f.Must(f.declare())
	f.Must(f.declare(kindFeeds("New", 1)...)) // marks the old ones as unused
	if n := f.count(`SELECT COUNT(*) FROM kinds WHERE unused > 0`); n != 3 {
		t.Errorf("got %d unused kinds, want 3", n)
	}
	f.Must(f.declare(kindFeeds("Old", 1)...)) // one is used again
	f.expireUnusedKinds()
	f.Must(f.declare(append(kindFeeds("Old", 1), kindFeeds("Newer", 1)...)...))
	if n := f.count(`SELECT COUNT(*) FROM kinds`); n != 4 { // Pod, Old0, Newer0, and New0, which is unused since now
		t.Errorf("got %d kinds, want 4", n)
	}
	f.Must(f.declare(kindFeeds("Old", 3)...)) // the deleted ones get new ids
	f.CommitPods(2, objects...)
	page, err := f.Objects(t.Context(), read.Query{Bodies: true})
	if err != nil || len(page.Items) != len(objects) {
		t.Errorf("got %d objects, %v, want %d", len(page.Items), err, len(objects))
	}
	f.Must(f.declare())
	f.Must(f.declare(kindFeeds("Newest", 1)...))
	f.expireUnusedKinds()
	f.Must(f.declare(kindFeeds("Last", 1)...))
	if n := f.count(`SELECT COUNT(*) FROM dictionaries`); n != 0 {
		t.Errorf("got %d dictionaries of deleted kinds, want none", n)
	}
}

// expireUnusedKinds makes unused kinds old enough to be deleted.
func (f *fixture) expireUnusedKinds() {
	f.T.Helper()
	_, err := f.ExecWrite(f.T.Context(), sqldb.Named("test", `UPDATE kinds SET unused = 1 WHERE unused > 0`))
	f.Must(err)
}

// testKindIDsAreNotReused deletes the kind with the highest id at the moment when another kind is
// inserted, because the server caches what belongs to an id.
func testKindIDsAreNotReused(t *testing.T, f *fixture) {
	for i, prefix := range []string{"Old", "New"} {
		f.Must(f.declare(kindFeeds(prefix, 1)...))
		var objects []vedette.Object
		for n := range 40 { // enough for a dictionary
			o := storetest.PodAt(n, i+1)
			o.Kind = vedette.Kind{Group: "example.org", Name: prefix + "0"}
			o.Body = []byte(strings.Repeat(fmt.Sprintf(`{"%s":%d}`, prefix, n), 30))
			objects = append(objects, o)
		}
		f.CommitPods(i+1, objects...)
		if prefix == "Old" {
			f.Must(f.declare())
			_, err := f.ExecWrite(t.Context(), sqldb.Named("test", `UPDATE kinds SET unused = 1 WHERE name = 'Old0'`))
			f.Must(err)
		}
	}
	f.UseDictionaries(catalog.NewDictionaries(f.DB)) // as after a restart
	page, err := f.Objects(t.Context(), read.Query{Bodies: true})
	if err != nil || len(page.Items) != 40 {
		t.Errorf("got %d objects, %v after a restart, want 40", len(page.Items), err)
	}
}

// testDeletedKindIsDeclaredAgain declares a kind that was deleted after its id was read.
func testDeletedKindIsDeclaredAgain(t *testing.T, f *fixture) {
	f.Must(f.declare(kindFeeds("Old", 1)...))
	f.Must(f.declare())
	if _, err := f.ExecWrite(t.Context(), sqldb.Named("test", `DELETE FROM kinds WHERE name = 'Old0'`)); err != nil {
		t.Fatal(err)
	}
	f.Must(f.declare(kindFeeds("Old", 1)...))
	feeds, err := f.Feeds(t.Context(), "prod")
	if err != nil || len(feeds) != 2 {
		t.Errorf("got feeds %v, %v, want 2", feeds, err)
	}
}

func testKindLimits(t *testing.T, f *fixture) {
	f.SetLimits(8, 5, 3, 10, 20)
	var wide []commit.DeclaredFeed
	for _, ns := range []string{"a", "b", "c", "d"} {
		wide = append(wide, commit.DeclaredFeed{Feed: vedette.Feed{Kind: vedette.Kind{Name: "Service"}, Namespace: ns}})
	}
	for _, tt := range []struct {
		name        string
		feeds       []commit.DeclaredFeed
		wantMessage string // empty if the declaration is accepted
	}{
		{"as many kinds as allowed", kindFeeds("A", 4), ""},
		{"too many kinds", kindFeeds("A", 5), "has 6 kinds, more than the limit of 5"},
		{"too many namespaces", wide, "namespaces, more than the limit of 3"},
		{"too many feeds", append(append(kindFeeds("A", 4), kindFeeds("A", 4)...), kindFeeds("A", 4)...), "has 13 feeds, more than the limit of 8"},
		{"other kinds", kindFeeds("B", 4), ""},
		{"more kinds than one agent may introduce", kindFeeds("C", 4), "agent a declares 4 kinds that no other agent has declared, in addition to 9, and the limit is 10"},
		{"kinds that it had introduced", kindFeeds("A", 4), ""},
	} {
		err := f.declare(tt.feeds...)
		if tt.wantMessage == "" && err != nil || tt.wantMessage != "" && (vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), tt.wantMessage)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.wantMessage)
		}
	}
	var err error
	f.Term, err = f.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "another", Server: "s"})
	if err != nil {
		t.Fatal(err)
	}
	f.Must(f.declare(kindFeeds("D", 4)...))
	f.Must(f.declare(kindFeeds("E", 4)...))
	f.SetLimits(8, 5, 3, 10, 18)
	if err := f.declare(kindFeeds("F", 2)...); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "the database has 17 kinds, and the limit is 18") {
		t.Errorf("more kinds than all agents may introduce: got %v, want the limit", err)
	}
}

// testReplacedWriterIsRejected declares with the term of a former cacher.
func testReplacedWriterIsRejected(t *testing.T, f *fixture) {
	if _, err := f.Acquire(t.Context(), "prod", registry.CacherClaim{Agent: "b", Server: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := f.declare(kindFeeds("New", 3)...); vedette.KindOf(err) != vedette.Conflict {
		t.Errorf("got %v, want an error of kind %s", err, vedette.Conflict)
	}
	if n := f.count(`SELECT COUNT(*) FROM kinds`); n != 1 {
		t.Errorf("got %d kinds, want 1", n)
	}
}
