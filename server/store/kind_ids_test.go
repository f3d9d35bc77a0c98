package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
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
				t.Run(name, func(t *testing.T) { test(t, newFixtureWith(t, Config{URL: url(t)})) })
			}
		})
	}
}

// kindFeeds returns feeds of n kinds that no other test has.
func kindFeeds(prefix string, n int) (feeds []DeclaredFeed) {
	for i := range n {
		feeds = append(feeds, DeclaredFeed{Feed: vedette.Feed{Kind: vedette.Kind{Group: "example.org", Name: fmt.Sprint(prefix, i)}}})
	}
	return feeds
}

func (w *fixture) declare(feeds ...DeclaredFeed) error {
	_, err := w.Declare(w.t.Context(), "prod", w.term, append(feeds, DeclaredFeed{Feed: podFeed}), nil)
	return err
}

func (w *fixture) count(query string) (n int) {
	w.t.Helper()
	w.must(w.queryOne(w.t.Context(), scanInto(&n), query))
	return n
}

func testUnusedKindsAreDeleted(t *testing.T, w *fixture) {
	w.must(w.declare(kindFeeds("Old", 3)...))
	var objects []vedette.Object
	for i := range 40 { // enough for a dictionary
		o := podAt(i, 1)
		o.Kind = vedette.Kind{Group: "example.org", Name: "Old0"}
		o.Body = []byte(strings.Repeat(fmt.Sprintf(`{"n":%d}`, i), 30))
		objects = append(objects, o)
	}
	w.commit(1, objects...)
	if n := w.count(`SELECT COUNT(*) FROM dictionaries`); n == 0 {
		t.Fatal("got no dictionary, want one")
	}
	w.must(w.declare())
	w.must(w.declare(kindFeeds("New", 1)...)) // marks the old ones as unused
	if n := w.count(`SELECT COUNT(*) FROM kinds WHERE unused > 0`); n != 3 {
		t.Errorf("got %d unused kinds, want 3", n)
	}
	w.must(w.declare(kindFeeds("Old", 1)...)) // one is used again
	w.expireUnusedKinds()
	w.must(w.declare(append(kindFeeds("Old", 1), kindFeeds("Newer", 1)...)...))
	if n := w.count(`SELECT COUNT(*) FROM kinds`); n != 4 { // Pod, Old0, Newer0, and New0, which is unused since now
		t.Errorf("got %d kinds, want 4", n)
	}
	w.must(w.declare(kindFeeds("Old", 3)...)) // the deleted ones get new ids
	w.commit(2, objects...)
	page, err := w.Objects(t.Context(), Query{Bodies: true})
	if err != nil || len(page.Items) != len(objects) {
		t.Errorf("got %d objects, %v, want %d", len(page.Items), err, len(objects))
	}
	w.must(w.declare())
	w.must(w.declare(kindFeeds("Newest", 1)...))
	w.expireUnusedKinds()
	w.must(w.declare(kindFeeds("Last", 1)...))
	if n := w.count(`SELECT COUNT(*) FROM dictionaries`); n != 0 {
		t.Errorf("got %d dictionaries of deleted kinds, want none", n)
	}
}

// expireUnusedKinds makes unused kinds old enough to be deleted.
func (w *fixture) expireUnusedKinds() {
	w.t.Helper()
	_, err := w.execWrite(w.t.Context(), `UPDATE kinds SET unused = 1 WHERE unused > 0`)
	w.must(err)
}

// testKindIDsAreNotReused deletes the kind with the highest id at the moment when another kind is
// inserted, because the server caches what belongs to an id.
func testKindIDsAreNotReused(t *testing.T, w *fixture) {
	for i, prefix := range []string{"Old", "New"} {
		w.must(w.declare(kindFeeds(prefix, 1)...))
		var objects []vedette.Object
		for n := range 40 { // enough for a dictionary
			o := podAt(n, i+1)
			o.Kind = vedette.Kind{Group: "example.org", Name: prefix + "0"}
			o.Body = []byte(strings.Repeat(fmt.Sprintf(`{"%s":%d}`, prefix, n), 30))
			objects = append(objects, o)
		}
		w.commit(i+1, objects...)
		if prefix == "Old" {
			w.must(w.declare())
			_, err := w.execWrite(t.Context(), `UPDATE kinds SET unused = 1 WHERE name = 'Old0'`)
			w.must(err)
		}
	}
	w.dicts = dictionaries{} // as after a restart
	page, err := w.Objects(t.Context(), Query{Bodies: true})
	if err != nil || len(page.Items) != 40 {
		t.Errorf("got %d objects, %v after a restart, want 40", len(page.Items), err)
	}
}

// testDeletedKindIsDeclaredAgain declares a kind that was deleted after its id was read.
func testDeletedKindIsDeclaredAgain(t *testing.T, w *fixture) {
	w.must(w.declare(kindFeeds("Old", 1)...))
	w.must(w.declare())
	if _, err := w.execWrite(t.Context(), `DELETE FROM kinds WHERE name = 'Old0'`); err != nil {
		t.Fatal(err)
	}
	w.must(w.declare(kindFeeds("Old", 1)...))
	feeds, err := w.Feeds(t.Context(), "prod")
	if err != nil || len(feeds) != 2 {
		t.Errorf("got feeds %v, %v, want 2", feeds, err)
	}
}

func testKindLimits(t *testing.T, w *fixture) {
	w.limits = limits{feeds: 8, kinds: 5, namespaces: 3, perAgent: 10, all: 20, dictionaries: 1 << 20, samples: 1 << 20}
	var wide []DeclaredFeed
	for _, ns := range []string{"a", "b", "c", "d"} {
		wide = append(wide, DeclaredFeed{Feed: vedette.Feed{Kind: vedette.Kind{Name: "Service"}, Namespace: ns}})
	}
	for _, tt := range []struct {
		name        string
		feeds       []DeclaredFeed
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
		err := w.declare(tt.feeds...)
		if tt.wantMessage == "" && err != nil || tt.wantMessage != "" && (vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), tt.wantMessage)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.wantMessage)
		}
	}
	var err error
	w.term, err = w.Acquire(t.Context(), "prod", Holder{Agent: "another", Server: "s"})
	if err != nil {
		t.Fatal(err)
	}
	w.must(w.declare(kindFeeds("D", 4)...))
	w.must(w.declare(kindFeeds("E", 4)...))
	w.limits.all = 18
	if err := w.declare(kindFeeds("F", 2)...); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "the database has 17 kinds, and the limit is 18") {
		t.Errorf("more kinds than all agents may introduce: got %v, want the limit", err)
	}
}

// testReplacedWriterIsRejected declares with the term of a former cacher.
func testReplacedWriterIsRejected(t *testing.T, w *fixture) {
	if _, err := w.Acquire(t.Context(), "prod", Holder{Agent: "b", Server: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := w.declare(kindFeeds("New", 3)...); vedette.KindOf(err) != vedette.Conflict {
		t.Errorf("got %v, want an error of kind %s", err, vedette.Conflict)
	}
	if n := w.count(`SELECT COUNT(*) FROM kinds`); n != 1 {
		t.Errorf("got %d kinds, want 1", n)
	}
}
