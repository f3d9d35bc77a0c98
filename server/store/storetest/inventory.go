package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store"
)

var inventoryTests = map[string]func(*testing.T, *store.Store){
	"follows the objects": func(t *testing.T, s *store.Store) {
		equalInventory(t, s)
		w := putShop(newWriter(t, s, "one"))
		equalInventory(t, s, "shop one: deployment web 2 2")
		first := inventory(t, s)
		w.put(object(pods, "n", "pod", "1"), object(roles, "", "role", "1"))
		if inventory(t, s) != first {
			t.Error("got another inventory after a change of objects that it does not count, want the same")
		}
		w.put(object(services, "n", "service", "1"))
		equalInventory(t, s, "app-of-service one: unclustered 1 1", "shop one: deployment web 2 2")
		w.commit(store.Batch{Deletes: deletions(object(services, "n", "service", "1").Key)})
		plain := object(deployments, "n", "web-v001", "1")
		plain.Annotations = nil
		w.put(plain)
		equalInventory(t, s, "shop one: deployment web 2 2", "web one: web 1 0")
		if inventory(t, s).Application("shop") != first.Application("shop") {
			t.Error("got another value of an application that has not changed, want the same")
		}
		plain.ResourceVersion, plain.Annotations = "2", map[string]string{"caching.spinnaker.io/ignore": "true"}
		w.put(plain)
		equalInventory(t, s, "shop one: deployment web 2 2")
		putShop(newWriter(t, s, "two"))
		w.commit(store.Batch{Deletes: deletions(shop()[0].Key)})
		equalInventory(t, s, "shop one: deployment web 1 1; two: deployment web 2 2")
	},
	"follows drops, withdrawn feeds and accounts": func(t *testing.T, s *store.Store) {
		one, two := putShop(newWriter(t, s, "one")), putShop(newWriter(t, s, "two"))
		equalInventory(t, s, "shop one: deployment web 2 2; two: deployment web 2 2")
		set := shop()[1]
		one.commit(store.Batch{Drops: []store.Drop{{Feed: feedOf(replicaSets), Digests: []uint64{vedette.Digest(set.Namespace, set.Name, set.UID, set.ResourceVersion)}}}})
		equalInventory(t, s, "shop one: deployment web 1 1; two: deployment web 2 2")
		two.declare(feedOf(pods), feedOf(replicaSets))
		equalInventory(t, s, "shop one: deployment web 1 1; two: deployment web 1 1")
		retire(t, one)
		equalInventory(t, s, "shop two: deployment web 1 1")
		register(t, s, "one")
		equalInventory(t, s, "shop one: deployment web 1 1; two: deployment web 1 1")
		if err := s.RemoveAccount(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		equalInventory(t, s, "shop one: deployment web 1 1")
	},
	// A statement has room for more keys than the withdrawn kind has objects.
	"counts each object of a withdrawn kind once": func(t *testing.T, s *store.Store) {
		w := putShop(newWriter(t, s, "one"))
		for i := range 20 {
			o := shop()[0]
			o.Name, o.UID = fmt.Sprint("web-", i), fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
			w.put(o)
			equalInventory(t, s, fmt.Sprintf("shop one: deployment web %[1]d %[1]d", i+3))
		}
		w.declare(feedOf(pods), feedOf(replicaSets))
		equalInventory(t, s, "shop one: deployment web 1 1")
	},
	"follows write-throughs": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "one")
		o := shop()[0]
		if _, _, err := s.WriteThrough(t.Context(), "one", w.term, o, nil); err != nil {
			t.Fatal(err)
		}
		equalInventory(t, s, "shop one: deployment web 1 1")
		if _, _, err := s.RemoveThrough(t.Context(), "one", w.term, o.Key, o.UID, nil); err != nil {
			t.Fatal(err)
		}
		equalInventory(t, s)
	},
	"versions": testVersions,
}

func testVersions(t *testing.T, s *store.Store) {
	type versions struct{ shop, till, namespace, otherNamespace, accounts uint64 }
	read := func() versions {
		return versions{s.ApplicationVersion("shop"), s.ApplicationVersion("till"), s.NamespaceVersion("one", "n"), s.NamespaceVersion("one", "m"),
			s.AccountsVersion()}
	}
	before := read()
	expect := func(what, want string) {
		t.Helper()
		now, got := read(), ""
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
	w := newWriter(t, s, "one")
	expect("registered", "a")
	register(t, s, "one")
	expect("registered again", "")
	putShop(w)
	expect("committed", "sn")
	putShop(w)
	expect("committed the same again", "")
	moved := shop()[0]
	moved.ResourceVersion, moved.Annotations = "2", map[string]string{"moniker.spinnaker.io/application": "till"}
	w.put(moved)
	expect("moved to another application", "stn")
	w.commit(store.Batch{Deletes: deletions(moved.Key)})
	expect("deleted", "tn")
	other := shop()[1]
	other.Namespace, other.ResourceVersion = "m", "3"
	if _, _, err := s.WriteThrough(t.Context(), "one", w.term, other, nil); err != nil {
		t.Fatal(err)
	}
	expect("written through", "sm")
	w.declare(feedOf(pods))
	expect("withdrew feeds", "snm")
	retire(t, w)
	expect("retired", "stnma")
	register(t, s, "one")
	expect("restored", "stnma")
	a := vedette.Account{Name: "one", Cluster: vedette.Cluster{UID: "uid-one", Host: "https://one"}, Namespaces: []string{"n"}}
	acquireAs(t, s, store.Holder{Agent: "a", Server: "s", Account: &a})
	expect("other namespaces", "a")
	acquireAs(t, s, store.Holder{Agent: "a", Server: "s", Account: &a})
	expect("the same namespaces", "")
}

func inventory(t *testing.T, s *store.Store) *store.Inventory {
	t.Helper()
	v, err := s.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// equalInventory compares the inventory with lines like "shop one: deployment web 2 1; two: ...":
// application, accounts, clusters, numbers of objects and of those that Spinnaker manages.
func equalInventory(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	equal(t, "inventory", inventoryLines(inventory(t, s)), want)
}

func inventoryLines(v *store.Inventory) []string {
	var lines []string
	for _, name := range v.Applications() {
		line := name
		for i, account := range v.Application(name).Accounts {
			if i > 0 {
				line += ";"
			}
			line += " " + string(account.Account) + ":"
			for _, c := range account.Clusters {
				line += fmt.Sprintf(" %s %d %d", c.Name, c.Objects, c.Managed)
			}
			if u := account.Unclustered; u.Objects > 0 {
				line += fmt.Sprintf(" unclustered %d %d", u.Objects, u.Managed)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// checkInventory compares the counts of clusters with the objects.
func checkInventory(t *testing.T, s *store.Store) {
	t.Helper()
	if t.Failed() {
		return
	}
	rows, err := s.KindAttributes(t.Context(), store.AttributesQuery{})
	if err != nil {
		t.Fatal(err)
	}
	type cluster struct {
		application string
		account     vedette.AccountName
		name        string
	}
	want, got := map[cluster][2]int64{}, map[cluster][2]int64{}
	for _, r := range rows {
		key := cluster{r.Moniker.App, r.Account, r.Moniker.Cluster}
		switch {
		case r.Ignored, r.Moniker.App == "":
			continue
		case attributes.IsApplicationMember(r.Kind):
			key.name = ""
		case !attributes.IsClusterMember(r.Kind), r.Moniker.Cluster == "":
			continue
		}
		count := want[key]
		count[0]++
		if r.Managed {
			count[1]++
		}
		want[key] = count
	}
	v := inventory(t, s)
	for _, name := range v.Applications() {
		for _, account := range v.Application(name).Accounts {
			for _, c := range account.Clusters {
				got[cluster{name, account.Account, c.Name}] = [2]int64{c.Objects, c.Managed}
			}
			if u := account.Unclustered; u.Objects > 0 {
				got[cluster{name, account.Account, ""}] = [2]int64{u.Objects, u.Managed}
			}
		}
	}
	if !slices.Equal(sortedLines(got), sortedLines(want)) {
		t.Errorf("the clusters are %v\nwant %v, as the objects say", sortedLines(got), sortedLines(want))
	}
}

func sortedLines[K comparable, V any](m map[K]V) []string {
	var lines []string
	for key, value := range m {
		lines = append(lines, fmt.Sprint(key, value))
	}
	slices.Sort(lines)
	return lines
}
