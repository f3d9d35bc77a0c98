package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette"
)

// countingConnector counts the queries of its connections.
type countingConnector struct {
	driver  driver.Driver
	name    string
	queries atomic.Int64
}

func (c *countingConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.name)
	if err != nil {
		return nil, err
	}
	return countingConn{conn.(fullConn), &c.queries}, nil
}

func (c *countingConnector) Driver() driver.Driver { return c.driver }

// countQueries makes the store read through a countingConnector.
func countQueries(w *fixture) *countingConnector {
	var path string
	w.must(w.reader.QueryRow(`SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path))
	counting := &countingConnector{driver: w.reader.Driver(), name: "file:" + path + "?" + sqlitePragmas + sqliteReader}
	w.reader = sql.OpenDB(counting)
	w.t.Cleanup(func() { _ = w.reader.Close() })
	return counting
}

// fullConn is what database/sql needs of a connection to query without preparing statements.
type fullConn interface {
	driver.Conn
	driver.QueryerContext
	driver.ExecerContext
}

type countingConn struct {
	fullConn
	queries *atomic.Int64
}

func (c countingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.queries.Add(1)
	return c.fullConn.QueryContext(ctx, query, args)
}

// TestStatementsOfAttributes checks that no read takes more statements for more objects, owners,
// accounts or kinds.
func TestStatementsOfAttributes(t *testing.T) {
	w := newFixture(t)
	jobs := vedette.Feed{Kind: vedette.Kind{Group: "batch", Name: "Job"}}
	_, err := w.Declare(t.Context(), "prod", w.term, []DeclaredFeed{{Feed: jobs}, {Feed: podFeed}}, nil)
	w.must(err)
	_, err = w.Commit(t.Context(), Batch{Account: "prod", Term: w.term, Upserts: []vedette.Object{{
		Key: vedette.Key{Kind: jobs.Kind, Namespace: "shop", Name: "mate"}, UID: "mate", ResourceVersion: "1", Body: []byte("{}")}}})
	w.must(err)
	counting := countQueries(w)
	kinds := []vedette.Kind{podFeed.Kind, {Group: "apps", Name: "ReplicaSet"}, {Group: "none", Name: "Unknown"}}
	owners := make([]OwnerRef, 5000)
	for i := range owners {
		owners[i] = OwnerRef{"prod", fmt.Sprint("uid-pod-", i)}
	}
	reads := map[string]func() (int, error){
		"application": func() (int, error) { return count(w.ApplicationAttributes(t.Context(), "pod", kinds)) },
		"owned":       func() (int, error) { return count(w.OwnedAttributes(t.Context(), "pod", kinds, kinds)) },
		"neighbors":   func() (int, error) { return count(w.NeighborAttributes(t.Context(), "mate", nil, kinds)) },
		"owned by":    func() (int, error) { return count(w.AttributesOwnedBy(t.Context(), owners, kinds)) },
		"kinds": func() (int, error) {
			return count(w.KindAttributes(t.Context(), AttributesQuery{Accounts: []vedette.AccountName{"prod", "none"}, Kinds: kinds, Namespace: "shop"}))
		},
		"namespaces": func() (int, error) {
			return count(w.NamespaceAttributes(t.Context(), []NamespaceRef{{"prod", "none"}, {"prod", "shop"}, {"none", "shop"}}, podFeed.Kind))
		},
		"Pods": func() (int, error) { return count(w.OwnedAttributes(t.Context(), "pod", kinds, kinds[:1])) },
		"search": func() (int, error) {
			return count(w.Search(t.Context(), SearchQuery{Text: "prod:shop:pod", KindName: nameOfAnyKind, Limit: 5000}))
		},
	}
	reads["related search"] = func() (int, error) {
		return count(w.Search(t.Context(), SearchQuery{Text: "pod", KindName: nameOfAnyKind, Limit: 5000,
			Related: &RelatedQuery{Applications: []string{"pod", "other"}, Kinds: kinds}}))
	}
	reads["count of a search"] = func() (int, error) {
		n, err := w.CountSearch(t.Context(), SearchQuery{Text: "pod", KindName: nameOfAnyKind})
		return int(n), err
	}
	for _, objects := range []int{10, 1000} {
		pods := podsAt(0, objects, objects)
		for i := range pods {
			pods[i].Labels = map[string]string{"app": fmt.Sprint(i)}
			pods[i].Owner = vedette.Owner{Kind: podFeed.Kind, Name: "pod-0", UID: pods[0].UID}
		}
		w.commit(objects, pods...)
		_, err := w.Inventory(t.Context()) // reads what the last call has not
		w.must(err)
		for name, read := range reads {
			before := counting.queries.Load()
			n, err := read()
			if statements := counting.queries.Load() - before; name == "Pods" || name == "namespaces" {
				if err != nil || n != objects || statements != 2 && objects > 10 { // one for the labels of Pods
					t.Errorf("%s: got %d of %d objects by %d statements, %v, want two", name, n, objects, statements, err)
				}
			} else if err != nil || n != objects || statements > 2 || objects > 10 && statements != 1 {
				t.Errorf("%s: got %d of %d objects by %d statements, %v, want one, or two the first time", name, n, objects, statements, err)
			}
		}
	}
}

// TestStatementsOfNamedObjects checks that there are two, one of them for labels.
func TestStatementsOfNamedObjects(t *testing.T) {
	w := newFixture(t)
	pods := podsAt(0, 300, 300)
	for i := range pods {
		pods[i].Labels = map[string]string{"app": "web"}
	}
	w.commit(300, pods...)
	counting := countQueries(w)
	for _, n := range []int{300, 1, 300} {
		var refs []ObjectRef
		for i := range pods[:n] {
			refs = append(refs, ObjectRef{Account: "prod", Key: pods[i].Key})
		}
		before := counting.queries.Load()
		rows, err := w.AttributesOf(t.Context(), refs)
		if statements := counting.queries.Load() - before; err != nil || len(rows) != n || statements > 3 || n == 1 && statements != 2 {
			t.Errorf("got %d of %d objects by %d statements, %v, want two, or three the first time", len(rows), n, statements, err)
		}
	}
}

func count[T any](rows []T, err error) (int, error) { return len(rows), err }

func nameOfAnyKind(kind vedette.Kind) string { return strings.ToLower(kind.Name) }

// TestStatementsOfInventory checks that the inventory takes one statement after changes, and none
// otherwise.
func TestStatementsOfInventory(t *testing.T) {
	w := newFixture(t)
	jobs := vedette.Feed{Kind: vedette.Kind{Group: "batch", Name: "Job"}}
	_, err := w.Declare(t.Context(), "prod", w.term, []DeclaredFeed{{Feed: jobs}, {Feed: podFeed}}, nil)
	w.must(err)
	counting := countQueries(w)
	expect := func(what string, statements int64) {
		t.Helper()
		before := counting.queries.Load()
		_, err := w.Inventory(t.Context())
		if got := counting.queries.Load() - before; err != nil || got != statements {
			t.Errorf("%s: got %d statements, %v, want %d", what, got, err, statements)
		}
	}
	expect("the first time", 1)
	expect("again", 0)
	w.commit(1, podAt(1, 1))
	expect("after a Pod", 0)
	for i := range 3 {
		_, err := w.Commit(t.Context(), Batch{Account: "prod", Term: w.term, Upserts: []vedette.Object{{
			Key: vedette.Key{Kind: jobs.Kind, Namespace: "shop", Name: fmt.Sprint("job-", i)}, UID: fmt.Sprint(i), ResourceVersion: "1", Body: []byte("{}")}}})
		w.must(err)
	}
	expect("after Jobs", 1)
	expect("at last", 0)
}

// TestInventoryIsBounded checks that an account cannot fill the memory of the server with clusters.
func TestInventoryIsBounded(t *testing.T) {
	w := newFixture(t)
	w.limits.clusters = 2
	sets := vedette.Feed{Kind: vedette.Kind{Group: "apps", Name: "ReplicaSet"}}
	_, err := w.Declare(t.Context(), "prod", w.term, []DeclaredFeed{{Feed: sets}}, nil)
	w.must(err)
	var objects []vedette.Object
	for i := range 5 {
		objects = append(objects, vedette.Object{Key: vedette.Key{Kind: sets.Kind, Namespace: "shop", Name: fmt.Sprintf("app%d-web", i)},
			UID: fmt.Sprint(i), ResourceVersion: "1", Body: []byte("{}")})
	}
	_, err = w.Commit(t.Context(), Batch{Account: "prod", Term: w.term, Upserts: objects})
	w.must(err)
	inventory, err := w.Inventory(t.Context())
	w.must(err)
	if n := len(inventory.Applications()); n != 2 {
		t.Errorf("got %d applications, want no more than the limit of 2 clusters allows", n)
	}
}
