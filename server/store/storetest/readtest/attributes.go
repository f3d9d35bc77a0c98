package readtest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// Attributes are tests that read attributes.
var Attributes = map[string]func(*testing.T, *store.Store){
	"of an application": testApplicationAttributes,
	"of what an application owns": func(t *testing.T, s *store.Store) {
		one := putShop(storetest.NewWriter(t, s, "one"))
		putShop(storetest.NewWriter(t, s, "two")) // the same cluster in another account
		got, err := s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{storetest.ReplicaSets}, []vedette.Kind{storetest.Pods})
		storetest.Equal(t, "pods", attributeNames(t, got, err), []string{"one Pod n/web-1-a", "one Pod n/web-1-b", "two Pod n/web-1-a",
			"two Pod n/web-1-b"})
		got, err = s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{storetest.ReplicaSets}, []vedette.Kind{storetest.Deployments})
		storetest.Equal(t, "other kind", attributeNames(t, got, err), nil)
		got, err = s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{storetest.Deployments}, []vedette.Kind{storetest.Pods})
		storetest.Equal(t, "other owner", attributeNames(t, got, err), nil)
		got, err = s.OwnedAttributes(t.Context(), "web", []vedette.Kind{storetest.ReplicaSets}, []vedette.Kind{storetest.Pods})
		storetest.Equal(t, "other application", attributeNames(t, got, err), nil)
		got, err = s.OwnedAttributes(t.Context(), "shop", nil, nil)
		storetest.Equal(t, "all kinds", attributeNames(t, got, err), []string{"one Pod n/web-1-a", "one Pod n/web-1-b",
			"one ReplicaSet.apps n/web-1",
			"two Pod n/web-1-a", "two Pod n/web-1-b", "two ReplicaSet.apps n/web-1"})
		storetest.Retire(t, one)
		got, err = s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{storetest.ReplicaSets}, []vedette.Kind{storetest.Pods})
		storetest.Equal(t, "after an account is retired", attributeNames(t, got, err), []string{"two Pod n/web-1-a", "two Pod n/web-1-b"})
	},
	"of neighbors": func(t *testing.T, s *store.Store) {
		one := putShop(storetest.NewWriter(t, s, "one"))
		one.Put(storetest.Object(storetest.Services, "other", "web", "1"), storetest.Object(storetest.Services, "n", "till", "1"))
		storetest.NewWriter(t, s, "two").Put(storetest.Object(storetest.Services, "n", "till", "1"))
		got, err := s.NeighborAttributes(t.Context(), "shop", []vedette.Kind{storetest.ReplicaSets}, []vedette.Kind{storetest.Services})
		storetest.Equal(t, "services", attributeNames(t, got, err), []string{"one Service n/till"})
		got, err = s.NeighborAttributes(t.Context(), "shop", []vedette.Kind{storetest.Roles}, []vedette.Kind{storetest.Pods})
		storetest.Equal(t, "no namespaces", attributeNames(t, got, err), nil)
		got, err = s.NeighborAttributes(t.Context(), "shop", nil, []vedette.Kind{storetest.Services, storetest.Roles})
		storetest.Equal(t, "namespaces of all kinds", attributeNames(t, got, err), []string{"one Service n/till"})
		storetest.Retire(t, one)
		got, err = s.NeighborAttributes(t.Context(), "shop", []vedette.Kind{storetest.ReplicaSets}, []vedette.Kind{storetest.Services})
		storetest.Equal(t, "after the account is retired", attributeNames(t, got, err), nil)
	},
	"of what some objects own": func(t *testing.T, s *store.Store) {
		putShop(storetest.NewWriter(t, s, "one"))
		putShop(storetest.NewWriter(t, s, "two"))
		set := storetest.Object(storetest.ReplicaSets, "n", "web-1", "1")
		owners := []read.OwnerRef{{Account: "one", UID: set.UID}, {Account: "one", UID: "unknown"}, {Account: "none", UID: set.UID},
			{Account: "two"}}
		got, err := s.AttributesOwnedBy(t.Context(), owners, []vedette.Kind{storetest.Pods})
		storetest.Equal(t, "pods", attributeNames(t, got, err), []string{"one Pod n/web-1-a", "one Pod n/web-1-b"})
		got, err = s.AttributesOwnedBy(t.Context(), nil, nil)
		storetest.Equal(t, "of nothing", attributeNames(t, got, err), nil)
		for i := range 40_000 {
			owners = append(owners, read.OwnerRef{Account: "two", UID: fmt.Sprint("uid-", i)})
		}
		got, err = s.AttributesOwnedBy(t.Context(), append(owners, read.OwnerRef{Account: "two", UID: set.UID}), nil)
		storetest.Equal(t, "of many", attributeNames(t, got, err), []string{"one Pod n/web-1-a", "one Pod n/web-1-b", "two Pod n/web-1-a",
			"two Pod n/web-1-b"})
	},
	"of named objects": func(t *testing.T, s *store.Store) {
		one := putShop(storetest.NewWriter(t, s, "one"))
		two := putShop(storetest.NewWriter(t, s, "two"))
		ref := func(account vedette.AccountName, kind vedette.Kind, name string) read.ObjectRef {
			return read.ObjectRef{Account: account, Key: vedette.Key{Kind: kind, Namespace: "n", Name: name}}
		}
		for want, refs := range map[string][]read.ObjectRef{
			"[]": {ref("none", storetest.Pods, "web-1-a"), ref("one", storetest.Pods, "web-1-x"), ref("one",
				vedette.Kind{Name: "Unknown"}, "web-1-a"), ref("one", storetest.Services, "web-1-a")},
			"[one Pod n/web-1-a two Pod n/web-1-b]": {ref("one", storetest.Pods, "web-1-a"), ref("two", storetest.Pods, "web-1-b"), ref("two",
				storetest.Pods, "WEB-1-a")},
			"[one Deployment.apps n/web one ReplicaSet.apps n/web-1]": {ref("one", storetest.Deployments, "web"), ref("one",
				storetest.ReplicaSets, "web-1")},
		} {
			got, err := s.AttributesOf(t.Context(), refs)
			if names := attributeNames(t, got, err); fmt.Sprint(names) != want {
				t.Errorf("%v: got %v, want %s", refs, names, want)
			}
		}
		got, err := s.AttributesOf(t.Context(), []read.ObjectRef{ref("one", storetest.Pods, "web-1-a")})
		all, otherErr := s.KindAttributes(t.Context(), read.AttributesQuery{Accounts: []vedette.AccountName{"one"},
			Kinds: []vedette.Kind{storetest.Pods}, Name: "web-1-a"})
		if err != nil || otherErr != nil || !reflect.DeepEqual(got, all) {
			t.Errorf("got %+v, want %+v as in a list", got, all)
		}
		var many []read.ObjectRef
		for i := range 500 {
			many = append(many, ref("one", storetest.Pods, fmt.Sprint("web-1-", i)))
		}
		got, err = s.AttributesOf(t.Context(), append(many, ref("one", storetest.Pods, "web-1-a")))
		storetest.Equal(t, "many", attributeNames(t, got, err), []string{"one Pod n/web-1-a"})
		storetest.Retire(t, one)
		got, err = s.AttributesOf(t.Context(), []read.ObjectRef{ref("one", storetest.Pods, "web-1-a"), ref("two", storetest.Pods, "web-1-a")})
		storetest.Equal(t, "after the account is retired", attributeNames(t, got, err), []string{"two Pod n/web-1-a"})
		storetest.Retire(t, two)
	},
	"of namespaces": func(t *testing.T, s *store.Store) {
		putShop(storetest.NewWriter(t, s, "one"))
		two := storetest.NewWriter(t, s, "two")
		putShop(two)
		everywhere := func(names ...string) []read.NamespaceRef {
			var refs []read.NamespaceRef
			for _, name := range names {
				refs = append(refs, read.NamespaceRef{Account: "one", Name: name}, read.NamespaceRef{Account: "none", Name: name})
			}
			return refs
		}
		for want, refs := range map[string][]read.NamespaceRef{
			"[]":                            everywhere("none", "N", ""),
			"[one ReplicaSet.apps n/web-1]": everywhere("none", "n"),
			"[one ReplicaSet.apps n/web-1 two ReplicaSet.apps n/web-1]": append(everywhere("n"), read.NamespaceRef{Account: "two", Name: "n"}),
		} {
			got, err := s.NamespaceAttributes(t.Context(), refs, storetest.ReplicaSets)
			if names := attributeNames(t, got, err); fmt.Sprint(names) != want {
				t.Errorf("%v: got %v, want %s", refs, names, want)
			}
		}
		got, err := s.NamespaceAttributes(t.Context(), nil, storetest.ReplicaSets)
		storetest.Equal(t, "no namespaces", attributeNames(t, got, err), nil)
		got, err = s.NamespaceAttributes(t.Context(), everywhere("n"), vedette.Kind{Name: "Unknown"})
		storetest.Equal(t, "an unknown kind", attributeNames(t, got, err), nil)
		storetest.Retire(t, two)
		got, err = s.NamespaceAttributes(t.Context(), []read.NamespaceRef{{Account: "two", Name: "n"}}, storetest.ReplicaSets)
		storetest.Equal(t, "a retired account", attributeNames(t, got, err), nil)
	},
	"of kinds": func(t *testing.T, s *store.Store) {
		putShop(storetest.NewWriter(t, s, "one"))
		two := storetest.NewWriter(t, s, "two")
		two.Put(storetest.Object(storetest.Services, "m", "web", "1"), storetest.Object(storetest.Services, "m", "WEB", "1"),
			storetest.Object(storetest.Roles, "", "admin", "1"))
		for want, q := range map[string]read.AttributesQuery{
			"[one Service n/web two Service m/WEB two Service m/web]": {Kinds: []vedette.Kind{storetest.Services}},
			"[two Service m/web]": {Kinds: []vedette.Kind{storetest.Services, storetest.Roles}, Namespace: "m", Name: "web"},
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
		storetest.Retire(t, two)
		got, err := s.KindAttributes(t.Context(), read.AttributesQuery{Kinds: []vedette.Kind{storetest.Roles}})
		storetest.Equal(t, "after the account is retired", attributeNames(t, got, err), nil)
	},
	"of Pods have labels": func(t *testing.T, s *store.Store) {
		w := putShop(storetest.NewWriter(t, s, "one"))
		bare := storetest.Object(storetest.Pods, "n", "bare", "1")
		bare.Labels = nil
		w.Put(bare)
		of := func(rows []read.AttributesRow, err error) []string {
			labels := map[string]map[string]string{}
			for _, r := range rows {
				labels[r.Name] = r.Labels
			}
			return []string{fmt.Sprint(labels, err)}
		}
		want := []string{"map[web-1-a:map[app:web-1-a] web-1-b:map[app:web-1-b]] <nil>"}
		set := shop()[slices.IndexFunc(shop(), func(o vedette.Object) bool { return o.Kind == storetest.ReplicaSets })]
		for name, got := range map[string][]string{
			"application": of(s.ApplicationAttributes(t.Context(), "shop", []vedette.Kind{storetest.Pods})),
			"owned":       of(s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{storetest.ReplicaSets}, []vedette.Kind{storetest.Pods})),
			"owned by":    of(s.AttributesOwnedBy(t.Context(), []read.OwnerRef{{Account: "one", UID: set.UID}}, []vedette.Kind{storetest.Pods})),
		} {
			storetest.Equal(t, name, got, want)
		}
		storetest.Equal(t, "without labels", of(s.KindAttributes(t.Context(), read.AttributesQuery{Kinds: []vedette.Kind{storetest.Pods},
			Name: "bare"})), []string{"map[bare:map[]] <nil>"})
		storetest.Equal(t, "one", of(s.KindAttributes(t.Context(), read.AttributesQuery{Kinds: []vedette.Kind{storetest.Pods},
			Name: "web-1-a"})), []string{"map[web-1-a:map[app:web-1-a]] <nil>"})
	},
	"follow the objects": func(t *testing.T, s *store.Store) {
		w := putShop(storetest.NewWriter(t, s, "one"))
		moved := storetest.Object(storetest.Pods, "n", "web-1-a", "2")
		moved.Annotations, moved.Owner = map[string]string{"moniker.spinnaker.io/application": "till"}, vedette.Owner{}
		w.Put(moved)
		got, err := s.OwnedAttributes(t.Context(), "shop", []vedette.Kind{storetest.ReplicaSets}, []vedette.Kind{storetest.Pods})
		storetest.Equal(t, "owned", attributeNames(t, got, err), []string{"one Pod n/web-1-b"})
		got, err = s.ApplicationAttributes(t.Context(), "till", nil)
		storetest.Equal(t, "application", attributeNames(t, got, err), []string{"one Pod n/web-1-a"})
		w.Commit(commit.Batch{Deletes: storetest.Deletions(moved.Key)})
		got, err = s.ApplicationAttributes(t.Context(), "till", nil)
		storetest.Equal(t, "application after the deletion", attributeNames(t, got, err), nil)
	},
}

// shop returns the objects of an application with one Deployment.
func shop() []vedette.Object {
	deployment, set := storetest.Object(storetest.Deployments, "n", "web", "1"), storetest.Object(storetest.ReplicaSets, "n", "web-1", "1")
	set.Owner = vedette.Owner{Kind: storetest.Deployments, Name: "web", UID: deployment.UID}
	set.Summary = []byte(`{"replicas":2,"images":["web:1"],"_templateLabels":{"app":"web-1","color":"blue"}}`)
	objects := []vedette.Object{deployment, set, storetest.Object(storetest.Services, "n", "web", "1")}
	for _, name := range []string{"web-1-a", "web-1-b"} {
		pod := storetest.Object(storetest.Pods, "n", name, "1")
		pod.Owner = vedette.Owner{Kind: storetest.ReplicaSets, Name: "web-1", UID: set.UID}
		pod.Summary = []byte(`{"phase":"Running","_statuses":["main","proxy"],"ready":[true,null]}`)
		objects = append(objects, pod)
	}
	for i := range objects {
		objects[i].Annotations = map[string]string{"moniker.spinnaker.io/application": "shop", "moniker.spinnaker.io/cluster": "deployment web"}
	}
	objects[2].Annotations["caching.spinnaker.io/ignore"] = "true"
	return objects
}

func putShop(w *storetest.Writer) *storetest.Writer {
	w.Put(shop()...)
	return w
}

func testApplicationAttributes(t *testing.T, s *store.Store) {
	w := putShop(storetest.NewWriter(t, s, "one"))
	putShop(storetest.NewWriter(t, s, "removed"))
	if err := s.RemoveAccount(t.Context(), "removed"); err != nil {
		t.Fatal(err)
	}
	w.Put(storetest.Object(storetest.Pods, "n", "other", "1"))
	got, err := s.ApplicationAttributes(t.Context(), "shop", nil)
	storetest.Equal(t, "all kinds", attributeNames(t, got, err), []string{"one Deployment.apps n/web", "one Pod n/web-1-a",
		"one Pod n/web-1-b",
		"one ReplicaSet.apps n/web-1", "one Service n/web"})
	for _, r := range got {
		want := shop()[slices.IndexFunc(shop(), func(o vedette.Object) bool { return o.Key == r.Key })]
		if r.UID != want.UID || !reflect.DeepEqual(r.Attributes, attributes.FromObject(&want)) || !reflect.DeepEqual(r.Moniker,
			vedette.MonikerOf(want.Key, want.Annotations)) {
			t.Errorf("%s: got %+v, %+v\nwant %+v", r.Key, r.Attributes, r.Moniker, attributes.FromObject(&want))
		}
	}
	for _, r := range storetest.QueryAll(t, s, read.Query{Application: "shop"}) {
		want := shop()[slices.IndexFunc(shop(), func(o vedette.Object) bool { return o.Key == r.Key })]
		if r.Owner != want.Owner || string(r.Summary) != string(attributes.TrimSummary(want.Summary)) {
			t.Errorf("%s: got owner %+v and summary %s, want %+v and %s without the fields for attributes", r.Key, r.Owner, r.Summary, want.Owner,
				want.Summary)
		}
	}
	got, err = s.ApplicationAttributes(t.Context(), "shop", []vedette.Kind{storetest.Pods, {Group: "unknown", Name: "Kind"}})
	storetest.Equal(t, "pods", attributeNames(t, got, err), []string{"one Pod n/web-1-a", "one Pod n/web-1-b"})
	got, err = s.ApplicationAttributes(t.Context(), "shop", []vedette.Kind{{Group: "unknown", Name: "Kind"}})
	storetest.Equal(t, "an unknown kind", attributeNames(t, got, err), nil)
	got, err = s.ApplicationAttributes(t.Context(), "SHOP", nil)
	storetest.Equal(t, "the application in upper case", attributeNames(t, got, err), nil)
	storetest.Retire(t, w)
	got, err = s.ApplicationAttributes(t.Context(), "shop", nil)
	storetest.Equal(t, "a retired account", attributeNames(t, got, err), nil)
}

// attributeNames returns rows as "account Kind namespace/name", sorted.
func attributeNames(t *testing.T, rows []read.AttributesRow, err error) []string {
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
