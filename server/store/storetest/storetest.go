// Package storetest is the test suite of the store. All databases must pass it, so that they
// behave the same.
package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// Run runs the suite, in parallel. Each call of open must return a store with an empty database of
// its own.
func Run(t *testing.T, open func(t *testing.T) *store.Store) {
	t.Parallel()
	for _, group := range []struct {
		name  string
		tests map[string]func(*testing.T, *store.Store)
	}{
		{"accounts", accountTests}, {"commits", commitTests}, {"feeds", feedTests}, {"reads", readTests}, {"faults", faultTests},
		{"oracle", oracleTests}, {"names", nameTests},
		{"attributes", attributeTests}, {"search", searchTests}, {"inventory", inventoryTests},
		{"write-through", writeThroughTests}, {"operations", operationTests}, {"tasks", taskTests}, {"upstream answers", upstreamAnswerTests},
	} {
		for name, test := range group.tests {
			t.Run(group.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := open(t)
				test(t, s)
				checkInventory(t, s)
			})
		}
	}
}

// Open opens a store that is closed when the test ends.
func Open(t testing.TB, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var (
	pods        = vedette.Kind{Name: "Pod"}
	services    = vedette.Kind{Name: "Service"}
	deployments = vedette.Kind{Group: "apps", Name: "Deployment"}
	replicaSets = vedette.Kind{Group: "apps", Name: "ReplicaSet"}
	roles       = vedette.Kind{Group: "rbac.authorization.k8s.io", Name: "ClusterRole"}
)

var resources = map[vedette.Kind]vedette.Resource{
	pods:     {Kind: pods, Version: "v1", Plural: "pods", Singular: "pod", ShortNames: []string{"po"}, Namespaced: true},
	services: {Kind: services, Version: "v1", Plural: "services", Singular: "service", ShortNames: []string{"svc"}, Namespaced: true},
	deployments: {Kind: deployments, Version: "v1", Plural: "deployments", Singular: "deployment", ShortNames: []string{"deploy"},
		Namespaced: true},
	replicaSets: {Kind: replicaSets, Version: "v1", Plural: "replicasets", Singular: "replicaset", ShortNames: []string{"rs"},
		Namespaced: true},
	roles:      {Kind: roles, Version: "v1", Plural: "clusterroles", Singular: "clusterrole"},
	namespaces: {Kind: namespaces, Version: "v1", Plural: "namespaces", Singular: "namespace", ShortNames: []string{"ns"}},
}

func declaredFeeds(feeds ...vedette.Feed) []store.DeclaredFeed {
	out := make([]store.DeclaredFeed, len(feeds))
	for i, f := range feeds {
		out[i] = store.DeclaredFeed{Feed: f, Resource: resources[f.Kind]}
	}
	return out
}

func feedOf(kind vedette.Kind) vedette.Feed { return vedette.Feed{Kind: kind} }

// writer is an account's cacher, like a session of the server.
type writer struct {
	t       *testing.T
	s       *store.Store
	account vedette.AccountName
	term    vedette.Term
}

// newWriter registers and acquires an account and declares the feeds, by default one of each kind
// that the tests use.
func newWriter(t *testing.T, s *store.Store, account vedette.AccountName, feeds ...vedette.Feed) *writer {
	t.Helper()
	register(t, s, account)
	w := acquire(t, s, account)
	if len(feeds) == 0 {
		feeds = []vedette.Feed{feedOf(pods), feedOf(services), feedOf(deployments), feedOf(replicaSets), feedOf(roles)}
	}
	w.declare(feeds...)
	return w
}

func register(t *testing.T, s *store.Store, account vedette.AccountName) store.AccountRow {
	t.Helper()
	row, err := s.Register(t.Context(),
		vedette.Account{Name: account, Cluster: vedette.Cluster{UID: "uid-" + string(account), Host: "https://" + string(account)}})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func acquire(t *testing.T, s *store.Store, account vedette.AccountName) *writer {
	t.Helper()
	term, err := s.Acquire(t.Context(), account, store.Holder{Agent: "agent-1", Server: "server-1"})
	if err != nil {
		t.Fatal(err)
	}
	return &writer{t, s, account, term}
}

func (w *writer) declare(feeds ...vedette.Feed) []store.Change {
	w.t.Helper()
	changes, err := w.s.Declare(w.t.Context(), w.account, w.term, declaredFeeds(feeds...), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

func (w *writer) commit(b store.Batch) []store.Change {
	w.t.Helper()
	b.Account, b.Term = w.account, w.term
	changes, err := w.s.Commit(w.t.Context(), b)
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

func (w *writer) put(objects ...vedette.Object) []store.Change {
	w.t.Helper()
	return w.commit(store.Batch{Upserts: objects})
}

// deletions returns deletions without a version.
func deletions(keys ...vedette.Key) []store.Deletion {
	out := make([]store.Deletion, len(keys))
	for i, key := range keys {
		out[i].Key = key
	}
	return out
}

// object returns an object in which all fields are set.
func object(kind vedette.Kind, namespace, name, version string) vedette.Object {
	return vedette.Object{
		Key:             vedette.Key{Kind: kind, Namespace: namespace, Name: name},
		UID:             fmt.Sprintf("00000000-0000-4000-8000-%012x", vedette.DigestWithoutName(kind.String()+namespace, name)>>16),
		ResourceVersion: version,
		APIVersion:      resources[kind].APIVersion(),
		Created:         1700000000,
		Labels:          map[string]string{"app": name},
		Annotations:     map[string]string{"moniker.spinnaker.io/application": "app-of-" + name},
		Summary:         []byte(`{"phase":"Running"}`),
		Body:            []byte(`{"metadata":{"name":"` + name + `","resourceVersion":"` + version + `"}}`),
	}
}

// queryAll reads all objects in pages.
func queryAll(t testing.TB, s *store.Store, q store.Query) []store.Row {
	t.Helper()
	var rows []store.Row
	for {
		page, err := s.Objects(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, page.Items...)
		if page.Next == "" {
			if page.Total >= 0 && page.Total != int64(len(rows)) {
				t.Errorf("%+v: got total %d, want %d, the number of rows on all pages", q, page.Total, len(rows))
			}
			return rows
		}
		q.After = page.Next
	}
}

// rowNames returns rows as "account Kind namespace/name@version".
func rowNames(rows []store.Row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = fmt.Sprintf("%s %s@%s", r.Account, r.Key, r.ResourceVersion)
	}
	return out
}

// changeNames returns changes as "added Pod default/a", sorted.
func changeNames(changes []store.Change) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = string(c.Type) + " " + c.Key.String()
	}
	slices.Sort(out)
	return out
}

func equal[T cmp.Ordered](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}
