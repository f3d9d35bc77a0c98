package kube

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestCatalogueUsesPreferredVersionServingKind(t *testing.T) {
	r := func(kind, version string) vedette.ServedKind {
		return vedette.ServedKind{Resource: vedette.Resource{Kind: vedette.ParseKind(kind), Version: version, Plural: strings.ToLower(kind)},
			Verbs: []string{"list", "watch"}}
	}
	cat := newCatalogue([]group{
		{Name: "g", Versions: []groupVersion{{Version: "v2", Kinds: []vedette.ServedKind{r("A.g", "v2")}}, {Version: "v1", Kinds: []vedette.ServedKind{r("A.g", "v1"), r("B.g", "v1")}}}},
		{Name: "stale", Versions: []groupVersion{{Version: "v1", Stale: true}, {Version: "v1beta1", Kinds: []vedette.ServedKind{r("C.stale", "v1beta1")}}}},
		{Name: "broken", Unknown: true},
	})
	var got []string
	for _, r := range cat.Resources {
		got = append(got, r.Kind.String()+"@"+r.Version)
	}
	if want := []string{"A.g@v2", "B.g@v1", "C.stale@v1beta1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := []string{"broken", "stale"}; !slices.Equal(cat.UnknownGroups, want) {
		t.Errorf("unknown groups: got %v, want %v", cat.UnknownGroups, want)
	}
}

// FuzzReadGroups reads arbitrary discovery documents.
func FuzzReadGroups(f *testing.F) {
	f.Add(`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced","verbs":["list","watch"]}]}]}]}`)
	f.Add(`{"items":[{"metadata":{"name":"x"},"versions":[{"resources":[{"resource":"a","responseKind":null,"verbs":["list","watch"]}]}]}]}`)
	f.Add(`{"items":[null]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		groups, err := readGroups(strings.NewReader(doc), nil)
		if err == nil && !json.Valid([]byte(doc)) && len(groups) == 0 && strings.TrimSpace(doc)[0] != '{' {
			t.Errorf("%q: got no error, want one", doc)
		}
		for _, r := range newCatalogue(groups).Resources {
			if r.Kind.Name == "" || r.Plural == "" {
				t.Errorf("%q: got a resource without a name", doc)
			}
		}
	})
}
