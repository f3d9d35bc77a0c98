package readtest

import (
	"fmt"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// Inventory are tests that read which applications and clusters there are.
var Inventory = map[string]func(*testing.T, *store.Store){
	"follows the objects": func(t *testing.T, s *store.Store) {
		equalInventory(t, s)
		w := putShop(storetest.NewWriter(t, s, "one"))
		equalInventory(t, s, "shop one: deployment web 2 2")
		first := storetest.Inventory(t, s)
		w.Put(storetest.Object(storetest.Pods, "n", "pod", "1"), storetest.Object(storetest.Roles, "", "role", "1"))
		if storetest.Inventory(t, s) != first {
			t.Error("got another inventory after a change of objects that it does not count, want the same")
		}
		w.Put(storetest.Object(storetest.Services, "n", "service", "1"))
		equalInventory(t, s, "app-of-service one: unclustered 1 1", "shop one: deployment web 2 2")
		w.Commit(commit.Batch{Deletes: storetest.Deletions(storetest.Object(storetest.Services, "n", "service", "1").Key)})
		plain := storetest.Object(storetest.Deployments, "n", "web-v001", "1")
		plain.Annotations = nil
		w.Put(plain)
		equalInventory(t, s, "shop one: deployment web 2 2", "web one: web 1 0")
		if storetest.Inventory(t, s).Application("shop") != first.Application("shop") {
			t.Error("got another value of an application that has not changed, want the same")
		}
		plain.ResourceVersion, plain.Annotations = "2", map[string]string{"caching.spinnaker.io/ignore": "true"}
		w.Put(plain)
		equalInventory(t, s, "shop one: deployment web 2 2")
		putShop(storetest.NewWriter(t, s, "two"))
		w.Commit(commit.Batch{Deletes: storetest.Deletions(shop()[0].Key)})
		equalInventory(t, s, "shop one: deployment web 1 1; two: deployment web 2 2")
	},
	"follows drops, withdrawn feeds and accounts": func(t *testing.T, s *store.Store) {
		one, two := putShop(storetest.NewWriter(t, s, "one")), putShop(storetest.NewWriter(t, s, "two"))
		equalInventory(t, s, "shop one: deployment web 2 2; two: deployment web 2 2")
		set := shop()[1]
		one.Commit(commit.Batch{Drops: []commit.Drop{{Feed: storetest.FeedOf(storetest.ReplicaSets),
			Digests: []uint64{vedette.Digest(set.Namespace, set.Name, set.UID, set.ResourceVersion)}}}})
		equalInventory(t, s, "shop one: deployment web 1 1; two: deployment web 2 2")
		two.Declare(storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.ReplicaSets))
		equalInventory(t, s, "shop one: deployment web 1 1; two: deployment web 1 1")
		storetest.Retire(t, one)
		equalInventory(t, s, "shop two: deployment web 1 1")
		storetest.Register(t, s, "one")
		equalInventory(t, s, "shop one: deployment web 1 1; two: deployment web 1 1")
		if err := s.RemoveAccount(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		equalInventory(t, s, "shop one: deployment web 1 1")
	},
	// A statement has room for more keys than the withdrawn kind has objects.
	"counts each object of a withdrawn kind once": func(t *testing.T, s *store.Store) {
		w := putShop(storetest.NewWriter(t, s, "one"))
		for i := range 20 {
			o := shop()[0]
			o.Name, o.UID = fmt.Sprint("web-", i), fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
			w.Put(o)
			equalInventory(t, s, fmt.Sprintf("shop one: deployment web %[1]d %[1]d", i+3))
		}
		w.Declare(storetest.FeedOf(storetest.Pods), storetest.FeedOf(storetest.ReplicaSets))
		equalInventory(t, s, "shop one: deployment web 1 1")
	},
	"follows write-throughs": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "one")
		o := shop()[0]
		if _, _, err := s.WriteThrough(t.Context(), "one", w.Term, o, nil); err != nil {
			t.Fatal(err)
		}
		equalInventory(t, s, "shop one: deployment web 1 1")
		if _, _, err := s.RemoveThrough(t.Context(), "one", w.Term, o.Key, o.UID, nil); err != nil {
			t.Fatal(err)
		}
		equalInventory(t, s)
	},
	"versions": testVersions,
}

func testVersions(t *testing.T, s *store.Store) {
	type versions struct{ shop, till, namespace, otherNamespace, accounts uint64 }
	query := func() versions {
		return versions{s.ApplicationVersion("shop"), s.ApplicationVersion("till"), s.NamespaceVersion("one", "n"), s.NamespaceVersion("one",
			"m"),
			s.AccountsVersion()}
	}
	before := query()
	expect := func(what, want string) {
		t.Helper()
		now, got := query(), ""
		for i, changed := range []bool{now.shop != before.shop, now.till != before.till, now.namespace != before.namespace,
			now.otherNamespace != before.otherNamespace, now.accounts != before.accounts} {
			if changed {
				got += string("stnma"[i])
			}
		}
		if before = now; got != want {
			t.Errorf("%s: got changes of %q, want %q", what, got, want)
		}
	}
	w := storetest.NewWriter(t, s, "one")
	expect("registered", "a")
	storetest.Register(t, s, "one")
	expect("registered again", "")
	putShop(w)
	expect("committed", "sn")
	putShop(w)
	expect("committed the same again", "")
	moved := shop()[0]
	moved.ResourceVersion, moved.Annotations = "2", map[string]string{"moniker.spinnaker.io/application": "till"}
	w.Put(moved)
	expect("moved to another application", "stn")
	w.Commit(commit.Batch{Deletes: storetest.Deletions(moved.Key)})
	expect("deleted", "tn")
	other := shop()[1]
	other.Namespace, other.ResourceVersion = "m", "3"
	if _, _, err := s.WriteThrough(t.Context(), "one", w.Term, other, nil); err != nil {
		t.Fatal(err)
	}
	expect("written through", "sm")
	w.Declare(storetest.FeedOf(storetest.Pods))
	expect("withdrew feeds", "snm")
	storetest.Retire(t, w)
	expect("retired", "stnma")
	storetest.Register(t, s, "one")
	expect("restored", "stnma")
	a := vedette.Account{Name: "one", Cluster: vedette.Cluster{UID: "uid-one", Host: "https://one"}, Namespaces: []string{"n"}}
	storetest.AcquireAs(t, s, registry.CacherClaim{Agent: "a", Server: "s", Account: &a})
	expect("other namespaces", "a")
	storetest.AcquireAs(t, s, registry.CacherClaim{Agent: "a", Server: "s", Account: &a})
	expect("the same namespaces", "")
}

// equalInventory compares the inventory with lines like "shop one: deployment web 2 1; two: ...":
// application, accounts, clusters, numbers of objects and of those that Spinnaker manages.
func equalInventory(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	storetest.Equal(t, "inventory", storetest.InventoryLines(storetest.Inventory(t, s)), want)
}
