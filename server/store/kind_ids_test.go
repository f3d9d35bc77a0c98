package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/databases"
)

// TestKindIDs runs what concerns the numbers of kinds on each database.
func TestKindIDs(t *testing.T) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "v.db") },
		"PostgreSQL": databases.PostgreSQL,
		"MariaDB":    databases.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			url(t) // keeps the server up between the tests
			for name, test := range map[string]func(*testing.T, *fixture){"unused ones are forgotten": testUnusedKindsAreDeleted,
				"one that another server forgot": testDeletedKindIsDeclaredAgain,
				"numbers are not given again":    testKindIDsAreNotReused, "declarations are bounded": testKindLimits, "a writer that was replaced": testReplacedWriterIsRejected} {
				t.Run(name, func(t *testing.T) { test(t, newFixtureWith(t, Config{URL: url(t)})) })
			}
		})
	}
}

// kindFeeds are feeds of so many kinds that nobody else has.
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
		t.Fatal("there is no dictionary")
	}
	w.must(w.declare())
	w.must(w.declare(kindFeeds("New", 1)...)) // notes that the old ones are unused
	if n := w.count(`SELECT COUNT(*) FROM kinds WHERE unused > 0`); n != 3 {
		t.Errorf("%d kinds count as unused, want 3", n)
	}
	w.must(w.declare(kindFeeds("Old", 1)...)) // one is used again
	w.expireUnusedKinds()
	w.must(w.declare(append(kindFeeds("Old", 1), kindFeeds("Newer", 1)...)...))
	if n := w.count(`SELECT COUNT(*) FROM kinds`); n != 4 { // Pod, Old0, Newer0, and New0, which is unused since now
		t.Errorf("%d kinds are left, want 4", n)
	}
	w.must(w.declare(kindFeeds("Old", 3)...)) // those that were forgotten are numbered anew
	w.commit(2, objects...)
	page, err := w.Objects(t.Context(), Query{Bodies: true})
	if err != nil || len(page.Items) != len(objects) {
		t.Errorf("%d of %d objects, %v", len(page.Items), len(objects), err)
	}
	w.must(w.declare())
	w.must(w.declare(kindFeeds("Newest", 1)...))
	w.expireUnusedKinds()
	w.must(w.declare(kindFeeds("Last", 1)...))
	if n := w.count(`SELECT COUNT(*) FROM dictionaries`); n != 0 {
		t.Errorf("%d dictionaries are left of kinds that are forgotten", n)
	}
}

// expireUnusedKinds makes what is unused so for long.
func (w *fixture) expireUnusedKinds() {
	w.t.Helper()
	_, err := w.execWrite(w.t.Context(), `UPDATE kinds SET unused = 1 WHERE unused > 0`)
	w.must(err)
}

// testKindIDsAreNotReused has the kind that was numbered last be forgotten, and another one come
// in the same moment. The server keeps what it knows of a number in memory.
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
		t.Errorf("after a restart %d of 40 objects can be read: %v", len(page.Items), err)
	}
}

// testDeletedKindIsDeclaredAgain declares a kind whose number was read before it was
// forgotten.
func testDeletedKindIsDeclaredAgain(t *testing.T, w *fixture) {
	w.must(w.declare(kindFeeds("Old", 1)...))
	w.must(w.declare())
	if _, err := w.execWrite(t.Context(), `DELETE FROM kinds WHERE name = 'Old0'`); err != nil {
		t.Fatal(err)
	}
	w.must(w.declare(kindFeeds("Old", 1)...))
	feeds, err := w.Feeds(t.Context(), "prod")
	if err != nil || len(feeds) != 2 {
		t.Errorf("%v, %v", feeds, err)
	}
}

func testKindLimits(t *testing.T, w *fixture) {
	w.limits = limits{feeds: 8, kinds: 5, namespaces: 3, perAgent: 10, all: 20, dictionaries: 1 << 20, samples: 1 << 20}
	var wide []DeclaredFeed
	for _, ns := range []string{"a", "b", "c", "d"} {
		wide = append(wide, DeclaredFeed{Feed: vedette.Feed{Kind: vedette.Kind{Name: "Service"}, Namespace: ns}})
	}
	for _, tt := range []struct {
		why         string
		feeds       []DeclaredFeed
		wantMessage string // empty where it is taken
	}{
		{"as many kinds as may be", kindFeeds("A", 4), ""},
		{"too many kinds", kindFeeds("A", 5), "has 6 kinds, and 5 are the most"},
		{"too many namespaces", wide, "namespaces, and 3 are the most"},
		{"too many feeds", append(append(kindFeeds("A", 4), kindFeeds("A", 4)...), kindFeeds("A", 4)...), "has 13 feeds, and 8 are the most"},
		{"other kinds", kindFeeds("B", 4), ""},
		{"more than an agent may bring", kindFeeds("C", 4), "agent a declares 4 kinds that nobody else had declared before, besides 9, and 10 are the most"},
		{"those that it had", kindFeeds("A", 4), ""},
	} {
		err := w.declare(tt.feeds...)
		if tt.wantMessage == "" && err != nil || tt.wantMessage != "" && (vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), tt.wantMessage)) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.wantMessage)
		}
	}
	var err error
	if w.term, err = w.Acquire(t.Context(), "prod", Holder{Agent: "another", Server: "s"}); err != nil {
		t.Fatal(err)
	}
	w.must(w.declare(kindFeeds("D", 4)...))
	w.must(w.declare(kindFeeds("E", 4)...))
	w.limits.all = 18
	if err := w.declare(kindFeeds("F", 2)...); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "the database has 17 kinds, and 18 are the most") {
		t.Errorf("beyond all: %v", err)
	}
}

// testReplacedWriterIsRejected declares in a term that is over.
func testReplacedWriterIsRejected(t *testing.T, w *fixture) {
	if _, err := w.Acquire(t.Context(), "prod", Holder{Agent: "b", Server: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := w.declare(kindFeeds("New", 3)...); vedette.KindOf(err) != vedette.Conflict {
		t.Errorf("got %v", err)
	}
	if n := w.count(`SELECT COUNT(*) FROM kinds`); n != 1 {
		t.Errorf("%d kinds have numbers, want 1", n)
	}
}
