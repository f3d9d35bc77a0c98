package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store"
)

var attributeTests = map[string]func(*testing.T, *store.Store){
	"of an application": testApplicationAttributes,
	"of what an application owns": func(t *testing.T, s *store.Store) {
		one := putShop(newWriter(t, s, "one"))
		putShop(newWriter(t, s, "two")) // the same cluster in another account
		got, err := s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{replicaSets}, []vedette.Kind{pods})
		equal(t, "pods", attributeNames(t, got, err), []string{"one Pod n/web-1-a", "one Pod n/web-1-b", "two Pod n/web-1-a", "two Pod n/web-1-b"})
		got, err = s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{replicaSets}, []vedette.Kind{deployments})
		equal(t, "other kind", attributeNames(t, got, err), nil)
		got, err = s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{deployments}, []vedette.Kind{pods})
		equal(t, "other owner", attributeNames(t, got, err), nil)
		got, err = s.OwnedAttributes(t.Context(), "web", []vedette.Kind{replicaSets}, []vedette.Kind{pods})
		equal(t, "other application", attributeNames(t, got, err), nil)
		got, err = s.OwnedAttributes(t.Context(), "shop", nil, nil)
		equal(t, "all kinds", attributeNames(t, got, err), []string{"one Pod n/web-1-a", "one Pod n/web-1-b", "one ReplicaSet.apps n/web-1",
			"two Pod n/web-1-a", "two Pod n/web-1-b", "two ReplicaSet.apps n/web-1"})
		retire(t, one)
		got, err = s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{replicaSets}, []vedette.Kind{pods})
		equal(t, "after an account is retired", attributeNames(t, got, err), []string{"two Pod n/web-1-a", "two Pod n/web-1-b"})
	},
	"of neighbors": func(t *testing.T, s *store.Store) {
		one := putShop(newWriter(t, s, "one"))
		one.put(object(services, "other", "web", "1"), object(services, "n", "till", "1"))
		newWriter(t, s, "two").put(object(services, "n", "till", "1"))
		got, err := s.NeighborAttributes(t.Context(), "shop", []vedette.Kind{replicaSets}, []vedette.Kind{services})
		equal(t, "services", attributeNames(t, got, err), []string{"one Service n/till"})
		got, err = s.NeighborAttributes(t.Context(), "shop", []vedette.Kind{roles}, []vedette.Kind{pods})
		equal(t, "no namespaces", attributeNames(t, got, err), nil)
		got, err = s.NeighborAttributes(t.Context(), "shop", nil, []vedette.Kind{services, roles})
		equal(t, "namespaces of all kinds", attributeNames(t, got, err), []string{"one Service n/till"})
		retire(t, one)
		got, err = s.NeighborAttributes(t.Context(), "shop", []vedette.Kind{replicaSets}, []vedette.Kind{services})
		equal(t, "after the account is retired", attributeNames(t, got, err), nil)
	},
	"of what some objects own": func(t *testing.T, s *store.Store) {
		putShop(newWriter(t, s, "one"))
		putShop(newWriter(t, s, "two"))
		set := object(replicaSets, "n", "web-1", "1")
		owners := []store.OwnerRef{{Account: "one", UID: set.UID}, {Account: "one", UID: "unknown"}, {Account: "none", UID: set.UID}, {Account: "two"}}
		got, err := s.AttributesOwnedBy(t.Context(), owners, []vedette.Kind{pods})
		equal(t, "pods", attributeNames(t, got, err), []string{"one Pod n/web-1-a", "one Pod n/web-1-b"})
		got, err = s.AttributesOwnedBy(t.Context(), nil, nil)
		equal(t, "of nothing", attributeNames(t, got, err), nil)
		for i := range 40_000 {
			owners = append(owners, store.OwnerRef{Account: "two", UID: fmt.Sprint("uid-", i)})
		}
		got, err = s.AttributesOwnedBy(t.Context(), append(owners, store.OwnerRef{Account: "two", UID: set.UID}), nil)
		equal(t, "of many", attributeNames(t, got, err), []string{"one Pod n/web-1-a", "one Pod n/web-1-b", "two Pod n/web-1-a", "two Pod n/web-1-b"})
	},
	"of named objects": func(t *testing.T, s *store.Store) {
		one := putShop(newWriter(t, s, "one"))
		two := putShop(newWriter(t, s, "two"))
		ref := func(account vedette.AccountName, kind vedette.Kind, name string) store.ObjectRef {
			return store.ObjectRef{Account: account, Key: vedette.Key{Kind: kind, Namespace: "n", Name: name}}
		}
		for want, refs := range map[string][]store.ObjectRef{
			"[]":                                    {ref("none", pods, "web-1-a"), ref("one", pods, "web-1-x"), ref("one", vedette.Kind{Name: "Unknown"}, "web-1-a"), ref("one", services, "web-1-a")},
			"[one Pod n/web-1-a two Pod n/web-1-b]": {ref("one", pods, "web-1-a"), ref("two", pods, "web-1-b"), ref("two", pods, "WEB-1-a")},
			"[one Deployment.apps n/web one ReplicaSet.apps n/web-1]": {ref("one", deployments, "web"), ref("one", replicaSets, "web-1")},
		} {
			got, err := s.AttributesOf(t.Context(), refs)
			if names := attributeNames(t, got, err); fmt.Sprint(names) != want {
				t.Errorf("%v: got %v, want %s", refs, names, want)
			}
		}
		got, err := s.AttributesOf(t.Context(), []store.ObjectRef{ref("one", pods, "web-1-a")})
		all, otherErr := s.KindAttributes(t.Context(), store.AttributesQuery{Accounts: []vedette.AccountName{"one"}, Kinds: []vedette.Kind{pods}, Name: "web-1-a"})
		if err != nil || otherErr != nil || !reflect.DeepEqual(got, all) {
			t.Errorf("got %+v, want %+v as in a list", got, all)
		}
		var many []store.ObjectRef
		for i := range 500 {
			many = append(many, ref("one", pods, fmt.Sprint("web-1-", i)))
		}
		got, err = s.AttributesOf(t.Context(), append(many, ref("one", pods, "web-1-a")))
		equal(t, "many", attributeNames(t, got, err), []string{"one Pod n/web-1-a"})
		retire(t, one)
		got, err = s.AttributesOf(t.Context(), []store.ObjectRef{ref("one", pods, "web-1-a"), ref("two", pods, "web-1-a")})
		equal(t, "after the account is retired", attributeNames(t, got, err), []string{"two Pod n/web-1-a"})
		retire(t, two)
	},
	"of namespaces": func(t *testing.T, s *store.Store) {
		putShop(newWriter(t, s, "one"))
		two := newWriter(t, s, "two")
		putShop(two)
		everywhere := func(names ...string) []store.NamespaceRef {
			var refs []store.NamespaceRef
			for _, name := range names {
				refs = append(refs, store.NamespaceRef{Account: "one", Name: name}, store.NamespaceRef{Account: "none", Name: name})
			}
			return refs
		}
		for want, refs := range map[string][]store.NamespaceRef{
			"[]":                            everywhere("none", "N", ""),
			"[one ReplicaSet.apps n/web-1]": everywhere("none", "n"),
			"[one ReplicaSet.apps n/web-1 two ReplicaSet.apps n/web-1]": append(everywhere("n"), store.NamespaceRef{Account: "two", Name: "n"}),
		} {
			got, err := s.NamespaceAttributes(t.Context(), refs, replicaSets)
			if names := attributeNames(t, got, err); fmt.Sprint(names) != want {
				t.Errorf("%v: got %v, want %s", refs, names, want)
			}
		}
		got, err := s.NamespaceAttributes(t.Context(), nil, replicaSets)
		equal(t, "no namespaces", attributeNames(t, got, err), nil)
		got, err = s.NamespaceAttributes(t.Context(), everywhere("n"), vedette.Kind{Name: "Unknown"})
		equal(t, "an unknown kind", attributeNames(t, got, err), nil)
		retire(t, two)
		got, err = s.NamespaceAttributes(t.Context(), []store.NamespaceRef{{Account: "two", Name: "n"}}, replicaSets)
		equal(t, "a retired account", attributeNames(t, got, err), nil)
	},
	"of kinds": func(t *testing.T, s *store.Store) {
		putShop(newWriter(t, s, "one"))
		two := newWriter(t, s, "two")
		two.put(object(services, "m", "web", "1"), object(services, "m", "WEB", "1"), object(roles, "", "admin", "1"))
		for want, q := range map[string]store.AttributesQuery{
			"[one Service n/web two Service m/WEB two Service m/web]": {Kinds: []vedette.Kind{services}},
			"[two Service m/web]": {Kinds: []vedette.Kind{services, roles}, Namespace: "m", Name: "web"},
			"[one Deployment.apps n/web one Pod n/web-1-a one Pod n/web-1-b one ReplicaSet.apps n/web-1 one Service n/web]": {
				Accounts: []vedette.AccountName{"one", "none"}},
			"[two ClusterRole.rbac.authorization.k8s.io admin]": {Name: "admin"},
			"[]": {Accounts: []vedette.AccountName{"a\x00\xff"}, Name: "a\x00\xff"},
		} {
			got, err := s.KindAttributes(t.Context(), q)
			if names := attributeNames(t, got, err); fmt.Sprint(names) != want {
				t.Errorf("%+v: got %v, want %s", q, names, want)
			}
		}
		retire(t, two)
		got, err := s.KindAttributes(t.Context(), store.AttributesQuery{Kinds: []vedette.Kind{roles}})
		equal(t, "after the account is retired", attributeNames(t, got, err), nil)
	},
	"of Pods have labels": func(t *testing.T, s *store.Store) {
		w := putShop(newWriter(t, s, "one"))
		bare := object(pods, "n", "bare", "1")
		bare.Labels = nil
		w.put(bare)
		of := func(rows []store.AttributesRow, err error) []string {
			labels := map[string]map[string]string{}
			for _, r := range rows {
				labels[r.Name] = r.Labels
			}
			return []string{fmt.Sprint(labels, err)}
		}
		want := []string{"map[web-1-a:map[app:web-1-a] web-1-b:map[app:web-1-b]] <nil>"}
		set := shop()[slices.IndexFunc(shop(), func(o vedette.Object) bool { return o.Kind == replicaSets })]
		for name, got := range map[string][]string{
			"application": of(s.ApplicationAttributes(t.Context(), "shop", []vedette.Kind{pods})),
			"owned":       of(s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{replicaSets}, []vedette.Kind{pods})),
			"owned by":    of(s.AttributesOwnedBy(t.Context(), []store.OwnerRef{{Account: "one", UID: set.UID}}, []vedette.Kind{pods})),
		} {
			equal(t, name, got, want)
		}
		equal(t, "without labels", of(s.KindAttributes(t.Context(), store.AttributesQuery{Kinds: []vedette.Kind{pods}, Name: "bare"})), []string{"map[bare:map[]] <nil>"})
		equal(t, "one", of(s.KindAttributes(t.Context(), store.AttributesQuery{Kinds: []vedette.Kind{pods}, Name: "web-1-a"})), []string{"map[web-1-a:map[app:web-1-a]] <nil>"})
	},
	"follow the objects": func(t *testing.T, s *store.Store) {
		w := putShop(newWriter(t, s, "one"))
		moved := object(pods, "n", "web-1-a", "2")
		moved.Annotations, moved.Owner = map[string]string{"moniker.spinnaker.io/application": "till"}, vedette.Owner{}
		w.put(moved)
		got, err := s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{replicaSets}, []vedette.Kind{pods})
		equal(t, "owned", attributeNames(t, got, err), []string{"one Pod n/web-1-b"})
		got, err = s.ApplicationAttributes(t.Context(), "till", nil)
		equal(t, "application", attributeNames(t, got, err), []string{"one Pod n/web-1-a"})
		w.commit(store.Batch{Deletes: deletions(moved.Key)})
		got, err = s.ApplicationAttributes(t.Context(), "till", nil)
		equal(t, "application after the deletion", attributeNames(t, got, err), nil)
	},
}

// shop returns the objects of an application with one Deployment.
func shop() []vedette.Object {
	deployment, set := object(deployments, "n", "web", "1"), object(replicaSets, "n", "web-1", "1")
	set.Owner = vedette.Owner{Kind: deployments, Name: "web", UID: deployment.UID}
	set.Summary = []byte(`{"replicas":2,"images":["web:1"],"_templateLabels":{"app":"web-1","color":"blue"}}`)
	objects := []vedette.Object{deployment, set, object(services, "n", "web", "1")}
	for _, name := range []string{"web-1-a", "web-1-b"} {
		pod := object(pods, "n", name, "1")
		pod.Owner = vedette.Owner{Kind: replicaSets, Name: "web-1", UID: set.UID}
		pod.Summary = []byte(`{"phase":"Running","_statuses":["main","proxy"],"ready":[true,null]}`)
		objects = append(objects, pod)
	}
	for i := range objects {
		objects[i].Annotations = map[string]string{"moniker.spinnaker.io/application": "shop", "moniker.spinnaker.io/cluster": "deployment web"}
	}
	objects[2].Annotations["caching.spinnaker.io/ignore"] = "true"
	return objects
}

func putShop(w *writer) *writer {
	w.put(shop()...)
	return w
}

func testApplicationAttributes(t *testing.T, s *store.Store) {
	w := putShop(newWriter(t, s, "one"))
	putShop(newWriter(t, s, "removed"))
	if err := s.RemoveAccount(t.Context(), "removed"); err != nil {
		t.Fatal(err)
	}
	w.put(object(pods, "n", "other", "1"))
	got, err := s.ApplicationAttributes(t.Context(), "shop", nil)
	equal(t, "all kinds", attributeNames(t, got, err), []string{"one Deployment.apps n/web", "one Pod n/web-1-a", "one Pod n/web-1-b",
		"one ReplicaSet.apps n/web-1", "one Service n/web"})
	for _, r := range got {
		want := shop()[slices.IndexFunc(shop(), func(o vedette.Object) bool { return o.Key == r.Key })]
		if r.UID != want.UID || !reflect.DeepEqual(r.Attributes, attributes.Of(&want)) || !reflect.DeepEqual(r.Moniker, vedette.MonikerOf(want.Key, want.Annotations)) {
			t.Errorf("%s: got %+v, %+v\nwant %+v", r.Key, r.Attributes, r.Moniker, attributes.Of(&want))
		}
	}
	for _, r := range queryAll(t, s, store.Query{Application: "shop"}) {
		want := shop()[slices.IndexFunc(shop(), func(o vedette.Object) bool { return o.Key == r.Key })]
		if r.Owner != want.Owner || string(r.Summary) != string(attributes.TrimSummary(want.Summary)) {
			t.Errorf("%s: got owner %+v and summary %s, want %+v and %s without the fields for attributes", r.Key, r.Owner, r.Summary, want.Owner,
				want.Summary)
		}
	}
	got, err = s.ApplicationAttributes(t.Context(), "shop", []vedette.Kind{pods, {Group: "unknown", Name: "Kind"}})
	equal(t, "pods", attributeNames(t, got, err), []string{"one Pod n/web-1-a", "one Pod n/web-1-b"})
	got, err = s.ApplicationAttributes(t.Context(), "shop", []vedette.Kind{{Group: "unknown", Name: "Kind"}})
	equal(t, "an unknown kind", attributeNames(t, got, err), nil)
	got, err = s.ApplicationAttributes(t.Context(), "SHOP", nil)
	equal(t, "the application in upper case", attributeNames(t, got, err), nil)
	retire(t, w)
	got, err = s.ApplicationAttributes(t.Context(), "shop", nil)
	equal(t, "a retired account", attributeNames(t, got, err), nil)
}

// attributeNames returns rows as "account Kind namespace/name", sorted.
func attributeNames(t *testing.T, rows []store.AttributesRow, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = fmt.Sprintf("%s %s", r.Account, r.Key)
	}
	slices.Sort(out)
	return out
}
