package apply

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// Schema holds the merge rules of the kinds of one version of a group.
type Schema struct {
	byKind map[string]*mergeRules // of the kinds that accept a strategic merge patch
}

// Rules returns the merge rules of a kind. It returns nil for a kind without a strategic merge
// patch, for example a custom kind.
func (s *Schema) Rules(kind string) strategicpatch.LookupPatchMeta {
	if s.byKind[kind] == nil {
		return nil
	}
	return s.byKind[kind]
}

// openAPIDocument is the part of an OpenAPI document that ParseSchema reads.
type openAPIDocument struct {
	Paths map[string]struct {
		Patch *struct {
			Kind        groupVersionKind `json:"x-kubernetes-group-version-kind"`
			RequestBody struct {
				Content map[string]struct{} `json:"content"`
			} `json:"requestBody"`
		} `json:"patch"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]*openAPISchema `json:"schemas"`
	} `json:"components"`
}

type groupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

func (k groupVersionKind) apiVersion() string {
	return vedette.Resource{Kind: vedette.Kind{Group: k.Group}, Version: k.Version}.APIVersion()
}

// ParseSchema reads the OpenAPI v3 document of one version of a group.
func ParseSchema(apiVersion string, body []byte) (*Schema, error) {
	var d openAPIDocument
	if err := manifest.Decode(body, &d); err != nil {
		return nil, err
	}
	strategicKinds := d.strategicKinds(apiVersion)
	builder := &ruleBuilder{types: d.Components.Schemas, built: map[*openAPISchema]*mergeRules{}}
	s := &Schema{byKind: map[string]*mergeRules{}}
	for _, component := range d.Components.Schemas {
		if component == nil {
			continue
		}
		for _, k := range component.Kinds {
			if k.apiVersion() == apiVersion && strategicKinds[k.Kind] {
				s.byKind[k.Kind] = builder.rulesFor(component)
			}
		}
	}
	return s, nil
}

// strategicKinds returns the kinds of a version for which the API server accepts strategic merge
// patches.
func (d *openAPIDocument) strategicKinds(apiVersion string) map[string]bool {
	kinds := map[string]bool{}
	for _, path := range d.Paths {
		if path.Patch == nil || path.Patch.Kind.apiVersion() != apiVersion {
			continue
		}
		if _, found := path.Patch.RequestBody.Content[string(types.StrategicMergePatchType)]; found {
			kinds[path.Patch.Kind.Kind] = true
		}
	}
	return kinds
}
