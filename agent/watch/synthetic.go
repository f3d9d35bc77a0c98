package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// syntheticMark is the resourceVersion of all synthetic objects.
const syntheticMark vedette.Mark = "1"

// syntheticFeeds returns feeds of the Namespaces and CustomResourceDefinitions in the
// configuration of an account that may not read them from the cluster. The server lists
// namespaces and custom kinds by such objects.
func (s Selection) syntheticFeeds(cat kube.Catalogue, omitted map[vedette.Kind]bool) (feeds []FeedSpec) {
	if names := subtract(s.Namespaces, s.OmitNamespaces); len(names) > 0 && !omitted[namespaceKind] {
		w := FeedSpec{Feed: vedette.Feed{Kind: namespaceKind}, Resource: vedette.Resource{Kind: namespaceKind,
			Version: "v1", Plural: "namespaces", Singular: "namespace", ShortNames: []string{"ns"}}}
		for _, name := range names {
			w.Objects = append(w.Objects, syntheticObject(w.Resource, name, nil))
		}
		feeds = append(feeds, w)
	}
	if len(s.CustomResourceDefinitions) > 0 && !omitted[crdKind] {
		w := FeedSpec{Feed: vedette.Feed{Kind: crdKind}, Resource: vedette.Resource{Kind: crdKind,
			Version: "v1", Plural: "customresourcedefinitions", Singular: "customresourcedefinition", ShortNames: []string{"crd", "crds"}}}
		for _, custom := range s.CustomResourceDefinitions {
			w.Objects = append(w.Objects, syntheticCRD(w.Resource, cat, custom))
		}
		feeds = append(feeds, w)
	}
	return feeds
}

// passOnSynthetic reports the objects of a feed that no API server serves.
func (f *feed) passOnSynthetic(ctx context.Context) error {
	if err := f.handle(ctx, lifecycle.ListAccepted{}); err != nil {
		return err
	}
	for _, raw := range f.Objects {
		if err := f.put(ctx, &Event{Type: Item, Raw: bytes.Clone(raw)}); err != nil {
			return err
		}
	}
	return f.handle(ctx, lifecycle.Listed{Mark: syntheticMark})
}

// syntheticCRD returns the definition of a custom kind, with the plural name from the API
// server or else the English plural.
func syntheticCRD(r vedette.Resource, cat kube.Catalogue, custom CustomResourceDefinition) []byte {
	kind := vedette.ParseKind(custom.Kind)
	plural := pluralOf(kind.Name)
	for _, found := range match(cat, custom.Kind) {
		kind, plural = found.Kind, found.Plural
	}
	scope := "Cluster"
	if custom.isNamespaced() {
		scope = "Namespaced"
	}
	return syntheticObject(r, plural+"."+kind.Group, map[string]any{
		"group": kind.Group, "scope": scope,
		"names": map[string]any{"kind": kind.Name, "plural": plural, "singular": strings.ToLower(kind.Name)},
	})
}

func pluralOf(name string) string {
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"):
		return name + "es"
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

func syntheticObject(r vedette.Resource, name string, spec map[string]any) []byte {
	object := map[string]any{"kind": r.Kind.Name, "apiVersion": r.APIVersion(), "metadata": map[string]any{
		"name": name, "uid": "synthetic:" + name, "resourceVersion": string(syntheticMark)}}
	if spec != nil {
		object["spec"] = spec
	}
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err) // maps of strings always marshal
	}
	return raw
}
