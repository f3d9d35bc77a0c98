package read_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
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
func countQueries(f *fixture) *countingConnector {
	var path string
	f.Must(f.Reads.QueryRow(`SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path))
	counting := &countingConnector{driver: f.Reads.Driver(), name: "file:" + path + "?_pragma=busy_timeout(10000)&_pragma=query_only(1)"}
	f.Reads = sql.OpenDB(counting)
	f.T.Cleanup(func() { _ = f.Reads.Close() })
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
	f := newFixture(t)
	jobs := vedette.Feed{Kind: vedette.Kind{Group: "batch", Name: "Job"}}
	_, err := f.Declare(t.Context(), "prod", f.Term, []commit.DeclaredFeed{{Feed: jobs}, {Feed: storetest.PodFeed}}, nil)
	f.Must(err)
	_, err = f.Commit(t.Context(), commit.Batch{Account: "prod", Term: f.Term, Upserts: []vedette.Object{{
		Key: vedette.Key{Kind: jobs.Kind, Namespace: "shop", Name: "mate"}, UID: "mate", ResourceVersion: "1", Body: []byte("{}")}}})
	f.Must(err)
	counting := countQueries(f)
	kinds := []vedette.Kind{storetest.PodFeed.Kind, {Group: "apps", Name: "ReplicaSet"}, {Group: "none", Name: "Unknown"}}
	owners := make([]read.OwnerRef, 5000)
	for i := range owners {
		owners[i] = read.OwnerRef{Account: "prod", UID: fmt.Sprint("uid-pod-", i)}
	}
	reads := map[string]func() (int, error){
		"application": func() (int, error) { return count(f.ApplicationAttributes(t.Context(), "pod", kinds)) },
		"owned":       func() (int, error) { return count(f.OwnedAttributes(t.Context(), "pod", kinds, kinds)) },
		"neighbors":   func() (int, error) { return count(f.NeighborAttributes(t.Context(), "mate", nil, kinds)) },
		"owned by":    func() (int, error) { return count(f.AttributesOwnedBy(t.Context(), owners, kinds)) },
		"kinds": func() (int, error) {
			return count(f.KindAttributes(t.Context(), read.AttributesQuery{Accounts: []vedette.AccountName{"prod", "none"}, Kinds: kinds, Namespace: "shop"}))
		},
		"namespaces": func() (int, error) {
			return count(f.NamespaceAttributes(t.Context(), []read.NamespaceRef{{Account: "prod", Name: "none"}, {Account: "prod", Name: "shop"}, {Account: "none", Name: "shop"}}, storetest.PodFeed.Kind))
		},
		"Pods": func() (int, error) { return count(f.OwnedAttributes(t.Context(), "pod", kinds, kinds[:1])) },
		"search": func() (int, error) {
			return count(f.Search(t.Context(), read.SearchQuery{Text: "prod:shop:pod", KindName: nameOfAnyKind, Limit: 5000}))
		},
	}
	reads["related search"] = func() (int, error) {
		return count(f.Search(t.Context(), read.SearchQuery{Text: "pod", KindName: nameOfAnyKind, Limit: 5000,
			Related: &read.RelatedQuery{Applications: []string{"pod", "other"}, Kinds: kinds}}))
	}
	reads["count of a search"] = func() (int, error) {
		n, err := f.CountSearch(t.Context(), read.SearchQuery{Text: "pod", KindName: nameOfAnyKind})
		return int(n), err
	}
	for _, objects := range []int{10, 1000} {
		pods := storetest.PodsAt(0, objects, objects)
		for i := range pods {
			pods[i].Labels = map[string]string{"app": fmt.Sprint(i)}
			pods[i].Owner = vedette.Owner{Kind: storetest.PodFeed.Kind, Name: "pod-0", UID: pods[0].UID}
		}
		f.CommitPods(objects, pods...)
		_, err := f.Inventory(t.Context()) // reads what the last call has not
		f.Must(err)
		for name, query := range reads {
			before := counting.queries.Load()
			n, err := query()
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
	f := newFixture(t)
	pods := storetest.PodsAt(0, 300, 300)
	for i := range pods {
		pods[i].Labels = map[string]string{"app": "web"}
	}
	f.CommitPods(300, pods...)
	counting := countQueries(f)
	for _, n := range []int{300, 1, 300} {
		var refs []read.ObjectRef
		for i := range pods[:n] {
			refs = append(refs, read.ObjectRef{Account: "prod", Key: pods[i].Key})
		}
		before := counting.queries.Load()
		rows, err := f.AttributesOf(t.Context(), refs)
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
	f := newFixture(t)
	jobs := vedette.Feed{Kind: vedette.Kind{Group: "batch", Name: "Job"}}
	_, err := f.Declare(t.Context(), "prod", f.Term, []commit.DeclaredFeed{{Feed: jobs}, {Feed: storetest.PodFeed}}, nil)
	f.Must(err)
	counting := countQueries(f)
	expect := func(what string, statements int64) {
		t.Helper()
		before := counting.queries.Load()
		_, err := f.Inventory(t.Context())
		if got := counting.queries.Load() - before; err != nil || got != statements {
			t.Errorf("%s: got %d statements, %v, want %d", what, got, err, statements)
		}
	}
	expect("the first time", 1)
	expect("again", 0)
	f.CommitPods(1, storetest.PodAt(1, 1))
	expect("after a Pod", 0)
	for i := range 3 {
		_, err := f.Commit(t.Context(), commit.Batch{Account: "prod", Term: f.Term, Upserts: []vedette.Object{{
			Key: vedette.Key{Kind: jobs.Kind, Namespace: "shop", Name: fmt.Sprint("job-", i)}, UID: fmt.Sprint(i), ResourceVersion: "1", Body: []byte("{}")}}})
		f.Must(err)
	}
	expect("after Jobs", 1)
	expect("at last", 0)
}

// TestInventoryIsBounded checks that an account cannot fill the memory of the server with clusters.
func TestInventoryIsBounded(t *testing.T) {
	f := newFixture(t)
	f.SetMaxClusters(2)
	sets := vedette.Feed{Kind: vedette.Kind{Group: "apps", Name: "ReplicaSet"}}
	_, err := f.Declare(t.Context(), "prod", f.Term, []commit.DeclaredFeed{{Feed: sets}}, nil)
	f.Must(err)
	var objects []vedette.Object
	for i := range 5 {
		objects = append(objects, vedette.Object{Key: vedette.Key{Kind: sets.Kind, Namespace: "shop", Name: fmt.Sprintf("app%d-web", i)},
			UID: fmt.Sprint(i), ResourceVersion: "1", Body: []byte("{}")})
	}
	_, err = f.Commit(t.Context(), commit.Batch{Account: "prod", Term: f.Term, Upserts: objects})
	f.Must(err)
	inventory, err := f.Inventory(t.Context())
	f.Must(err)
	if n := len(inventory.Applications()); n != 2 {
		t.Errorf("got %d applications, want no more than the limit of 2 clusters allows", n)
	}
}
