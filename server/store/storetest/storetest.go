// Package storetest has what the tests of the store share: a store with accounts that are written as by sessions, and objects of all kinds.
// The suite that all databases must pass is in a package for each part of the store below it; store.TestSQLite and its like run it.
package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Open opens a store that is closed when the test ends.
func Open(t testing.TB, url string) *store.Store {
	t.Helper()
	return OpenConfig(t, sqldb.Config{URL: url})
}

// OpenConfig opens a store that is closed when the test ends.
func OpenConfig(t testing.TB, cfg sqldb.Config) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), cfg)
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

// The kinds that the tests use.
var (
	Pods        = vedette.Kind{Name: "Pod"}
	Services    = vedette.Kind{Name: "Service"}
	Deployments = vedette.Kind{Group: "apps", Name: "Deployment"}
	ReplicaSets = vedette.Kind{Group: "apps", Name: "ReplicaSet"}
	Roles       = vedette.Kind{Group: "rbac.authorization.k8s.io", Name: "ClusterRole"}
)

// Resources are what discovery says of the kinds.
var Resources = map[vedette.Kind]vedette.Resource{
	Pods:     {Kind: Pods, Version: "v1", Plural: "pods", Singular: "pod", ShortNames: []string{"po"}, Namespaced: true},
	Services: {Kind: Services, Version: "v1", Plural: "services", Singular: "service", ShortNames: []string{"svc"}, Namespaced: true},
	Deployments: {Kind: Deployments, Version: "v1", Plural: "deployments", Singular: "deployment", ShortNames: []string{"deploy"},
		Namespaced: true},
	ReplicaSets: {Kind: ReplicaSets, Version: "v1", Plural: "replicasets", Singular: "replicaset", ShortNames: []string{"rs"},
		Namespaced: true},
	Roles:      {Kind: Roles, Version: "v1", Plural: "clusterroles", Singular: "clusterrole"},
	Namespaces: {Kind: Namespaces, Version: "v1", Plural: "namespaces", Singular: "namespace", ShortNames: []string{"ns"}},
}

// DeclaredFeeds returns feeds with what discovery says of their kinds.
func DeclaredFeeds(feeds ...vedette.Feed) []commit.DeclaredFeed {
	out := make([]commit.DeclaredFeed, len(feeds))
	for i, f := range feeds {
		out[i] = commit.DeclaredFeed{Feed: f, Resource: Resources[f.Kind]}
	}
	return out
}

// FeedOf returns the feed of a kind in all namespaces.
func FeedOf(kind vedette.Kind) vedette.Feed { return vedette.Feed{Kind: kind} }

// Writer is an account's cacher, like a session of the server.
type Writer struct {
	T       *testing.T
	Store   *store.Store
	Account vedette.AccountName
	Term    vedette.Term
}

// NewWriter registers and acquires an account and declares the feeds, by default one of each kind
// that the tests use.
func NewWriter(t *testing.T, s *store.Store, account vedette.AccountName, feeds ...vedette.Feed) *Writer {
	t.Helper()
	Register(t, s, account)
	w := Acquire(t, s, account)
	if len(feeds) == 0 {
		feeds = []vedette.Feed{FeedOf(Pods), FeedOf(Services), FeedOf(Deployments), FeedOf(ReplicaSets), FeedOf(Roles)}
	}
	w.Declare(feeds...)
	return w
}

// Register registers an account of a cluster of its own.
func Register(t *testing.T, s *store.Store, account vedette.AccountName) registry.Account {
	t.Helper()
	row, err := s.Register(t.Context(),
		vedette.Account{Name: account, Cluster: vedette.Cluster{UID: "uid-" + string(account), Host: "https://" + string(account)}})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// Acquire makes an agent the cacher of an account.
func Acquire(t *testing.T, s *store.Store, account vedette.AccountName) *Writer {
	t.Helper()
	term, err := s.Acquire(t.Context(), account, registry.CacherClaim{Agent: "agent-1", Server: "server-1"})
	if err != nil {
		t.Fatal(err)
	}
	return &Writer{t, s, account, term}
}

// Declare declares the feeds of the account.
func (w *Writer) Declare(feeds ...vedette.Feed) []commit.Change {
	w.T.Helper()
	changes, err := w.Store.Declare(w.T.Context(), w.Account, w.Term, DeclaredFeeds(feeds...), nil)
	if err != nil {
		w.T.Fatal(err)
	}
	return changes
}

// Commit commits a batch of the account.
func (w *Writer) Commit(b commit.Batch) []commit.Change {
	w.T.Helper()
	b.Account, b.Term = w.Account, w.Term
	changes, err := w.Store.Commit(w.T.Context(), b)
	if err != nil {
		w.T.Fatal(err)
	}
	return changes
}

// Put commits objects.
func (w *Writer) Put(objects ...vedette.Object) []commit.Change {
	w.T.Helper()
	return w.Commit(commit.Batch{Upserts: objects})
}

// Deletions returns deletions without a version.
func Deletions(keys ...vedette.Key) []commit.Deletion {
	out := make([]commit.Deletion, len(keys))
	for i, key := range keys {
		out[i].Key = key
	}
	return out
}

// Object returns an object in which all fields are set.
func Object(kind vedette.Kind, namespace, name, version string) vedette.Object {
	return vedette.Object{
		Key:             vedette.Key{Kind: kind, Namespace: namespace, Name: name},
		UID:             fmt.Sprintf("00000000-0000-4000-8000-%012x", vedette.DigestWithoutName(kind.String()+namespace, name)>>16),
		ResourceVersion: version,
		APIVersion:      Resources[kind].APIVersion(),
		Created:         1700000000,
		Labels:          map[string]string{"app": name},
		Annotations:     map[string]string{"moniker.spinnaker.io/application": "app-of-" + name},
		Summary:         []byte(`{"phase":"Running"}`),
		Body:            []byte(`{"metadata":{"name":"` + name + `","resourceVersion":"` + version + `"}}`),
	}
}

// QueryAll reads all objects in pages.
func QueryAll(t testing.TB, s *store.Store, q read.Query) []read.Row {
	t.Helper()
	var rows []read.Row
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

// RowNames returns rows as "account Kind namespace/name@version".
func RowNames(rows []read.Row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = fmt.Sprintf("%s %s@%s", r.Account, r.Key, r.ResourceVersion)
	}
	return out
}

// ChangeNames returns changes as "added Pod default/a", sorted.
func ChangeNames(changes []commit.Change) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = string(c.Type) + " " + c.Key.String()
	}
	slices.Sort(out)
	return out
}

// Equal compares two lists.
func Equal[T cmp.Ordered](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}
