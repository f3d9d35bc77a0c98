package storetest

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/namefilter"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/write"
	"github.com/vedette-io/vedette/server/store/writethrough"
)

// Fixture is a store with the account prod, whose Pods are declared.
type Fixture struct {
	*store.Store
	T    *testing.T
	Term vedette.Term
}

// PodFeed is the only feed of the account.
var PodFeed = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}

// NewFixture opens a SQLite database.
func NewFixture(t *testing.T) *Fixture {
	t.Helper()
	return NewFixtureWith(t, sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db")})
}

// NewFixtureWith opens any database.
func NewFixtureWith(t *testing.T, cfg sqldb.Config) *Fixture {
	t.Helper()
	s, err := store.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &Fixture{Store: s, T: t}
	t.Cleanup(func() { _ = s.Close() })
	_, err = s.Register(context.Background(), vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: "u"}})
	f.Must(err)
	f.Term, err = s.Acquire(context.Background(), "prod", registry.CacherClaim{Agent: "a", Server: "s"})
	f.Must(err)
	_, err = s.Declare(context.Background(), "prod", f.Term, []commit.DeclaredFeed{{Feed: PodFeed,
		Resource: vedette.Resource{Kind: PodFeed.Kind, Version: "v1", Plural: "pods", Namespaced: true}}}, nil)
	f.Must(err)
	return f
}

// Must expects no error.
func (f *Fixture) Must(err error) {
	f.T.Helper()
	if err != nil {
		f.T.Error(err)
	}
}

// PodAt returns a version of a Pod.
func PodAt(n, version int) vedette.Object {
	name := fmt.Sprintf("pod-%d", n)
	return vedette.Object{Key: vedette.Key{Kind: PodFeed.Kind, Namespace: "shop", Name: name}, UID: "uid-" + name,
		ResourceVersion: fmt.Sprint(version), Body: []byte(`{"a":1}`)}
}

// PodsAt returns n Pods.
func PodsAt(from, n, version int) (pods []vedette.Object) {
	for i := range n {
		pods = append(pods, PodAt(from+i, version))
	}
	return pods
}

// CommitPods commits pods and a mark.
func (f *Fixture) CommitPods(mark int, pods ...vedette.Object) []commit.Change {
	at := vedette.Mark(fmt.Sprint(mark))
	changes, err := f.Commit(context.Background(), commit.Batch{Account: "prod", Term: f.Term, Upserts: pods,
		Feeds: []commit.FeedUpdate{{Feed: PodFeed, Mark: &at}}})
	f.Must(err)
	return changes
}

// WritePodThrough writes a Pod through.
func (f *Fixture) WritePodThrough(o vedette.Object) {
	_, _, err := f.WriteThrough(context.Background(), "prod", f.Term, o, nil)
	f.Must(err)
}

// Feed returns the stored row of PodFeed.
func (f *Fixture) Feed() read.FeedStatus {
	feeds, err := f.Feeds(context.Background(), "prod")
	f.Must(err)
	return feeds[0]
}

// UseDictionaries replaces the dictionaries of the store, as after a restart.
func (f *Fixture) UseDictionaries(dicts *catalog.Dictionaries) {
	f.Store = withParts(f.T, f.Store, dicts)
}

// AnotherServer returns the store as another server has it, or the same one after a restart: what only the memory held is gone.
func AnotherServer(t *testing.T, s *store.Store) *store.Store {
	t.Helper()
	return withParts(t, s, catalog.NewDictionaries(s.DB))
}

// withParts returns a store on the same database with a new writer and a new reader.
func withParts(t *testing.T, s *store.Store, dicts *catalog.Dictionaries) *store.Store {
	t.Helper()
	locks, filters := &admission.Locks{}, &namefilter.Set{}
	shared := write.Parts{DB: s.DB, Registry: s.Registry, Versions: s.Versions, Kinds: catalog.NewKinds(s.DB), Dictionaries: dicts,
		Locks:        locks,
		WriteThrough: &writethrough.State{}, NameFilters: filters, History: s.History}
	other := *s
	other.Writer = write.New(shared)
	other.Reader = read.New(read.Parts{DB: s.DB, Registry: s.Registry, Versions: s.Versions, Kinds: shared.Kinds, Dictionaries: dicts,
		Accounts: catalog.NewAccounts(s.DB, s.Versions), Locks: locks, NameFilters: filters})
	if err := other.Writer.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &other
}
