package accounts

import (
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// adminFixture is Accounts over a database with the account prod of cluster u1.
type adminFixture struct {
	*Accounts
	t     *testing.T
	store *store.Store
	term  vedette.Term
}

func newAdminFixture(t *testing.T, cfg Config) *adminFixture {
	s, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "vedette.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the test has ended
	f := &adminFixture{Accounts: New(cfg, s, discardLogger), t: t, store: s}
	f.register("u1")
	return f
}

func prodOf(uid string) vedette.Account {
	return vedette.Account{Name: "prod", Cluster: vedette.Cluster{UID: uid, Host: "https://" + uid}}
}

// register registers the account for a cluster and makes an agent its cacher.
func (f *adminFixture) register(uid string) {
	f.t.Helper()
	account := prodOf(uid)
	_, err := f.Register(f.t.Context(), account)
	if err == nil {
		f.term, err = f.store.Acquire(f.t.Context(), "prod", registry.CacherClaim{Agent: "a1", Server: "s1", Account: &account})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *adminFixture) expectOwner(uid string) {
	f.t.Helper()
	row, err := f.store.Account(f.t.Context(), "prod")
	if row.Cluster.UID != uid || uid != "" && err != nil {
		f.t.Errorf("got the owner %q, %v, want %q", row.Cluster.UID, err, uid)
	}
}

func expectKind(t *testing.T, err error, want vedette.ErrorKind) {
	t.Helper()
	if got := vedette.KindOf(err); got != want || want == "" && err != nil {
		t.Errorf("got %v of kind %q, want kind %q", err, got, want)
	}
}

// TestOnlyAccountsWithoutAgentAreReleased checks that only an account without an agent is released, and that another cluster may
// register the name then.
func TestOnlyAccountsWithoutAgentAreReleased(t *testing.T) {
	f := newAdminFixture(t, Config{})
	expectKind(t, f.Release(t.Context(), "prod"), vedette.Conflict)
	f.expectOwner("u1")
	expectKind(t, f.store.Release(t.Context(), "prod", f.term, "s1"), "")
	expectKind(t, f.Release(t.Context(), "prod"), "")
	f.expectOwner("")
	expectKind(t, f.Release(t.Context(), "prod"), vedette.NotFound)
	f.register("u2")
	f.expectOwner("u2")
}

// TestRemovedAccountCannotBeWritten checks that an account is removed although an agent serves it, and that the agent
// cannot write anymore.
func TestRemovedAccountCannotBeWritten(t *testing.T) {
	f := newAdminFixture(t, Config{KeepData: true})
	expectKind(t, f.Remove(t.Context(), "prod"), "")
	f.expectOwner("")
	if _, err := f.store.Declare(t.Context(), "prod", f.term, nil, nil); err == nil {
		t.Error("the former agent may still write")
	}
	expectKind(t, f.Remove(t.Context(), "prod"), vedette.NotFound)
}

// TestReplacedNameChangesItsCluster checks that a name changes its cluster, and that the former one's data returns only if
// it is kept.
func TestReplacedNameChangesItsCluster(t *testing.T) {
	for _, keep := range []bool{false, true} {
		f := newAdminFixture(t, Config{KeepData: keep})
		declared := []commit.DeclaredFeed{{Feed: vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}, Resource: vedette.Resource{Kind: vedette.Kind{Name: "Pod"}, Version: "v1", Plural: "pods"}}}
		if _, err := f.store.Declare(t.Context(), "prod", f.term, declared, nil); err != nil {
			t.Fatal(err)
		}
		_, err := f.Register(t.Context(), prodOf("u2"))
		expectKind(t, err, vedette.Conflict)
		expectKind(t, f.Replace(t.Context(), prodOf("u2")), "")
		f.expectOwner("u2")
		_, err = f.Register(t.Context(), prodOf("u1"))
		expectKind(t, err, vedette.Conflict)
		expectKind(t, f.store.Sweep(t.Context()), "")
		expectKind(t, f.Replace(t.Context(), prodOf("u1")), "")
		feeds, err := f.store.Feeds(t.Context(), "prod")
		if err != nil || len(feeds) > 0 != keep {
			t.Errorf("keep %v: got the feeds %v, %v after the first cluster has returned", keep, feeds, err)
		}
		expectKind(t, f.Replace(t.Context(), vedette.Account{Name: "prod"}), vedette.Invalid)
		f.expectOwner("u1")
	}
}
