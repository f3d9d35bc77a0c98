package operate

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/vedette-io/vedette"
)

// schemaCache keep the merge rules of the groups that were applied client-side
// lately. Documents of big groups take long to read, and their rules some hundred
// kilobytes, so that none are kept for longer than they are likely to be of use.
type schemaCache struct {
	ttl          time.Duration
	mu           sync.Mutex
	byAPIVersion map[string]*versionSchema // by apiVersion
}

// versionSchema is what an OpenAPI document tells of the kinds of one version.
type versionSchema struct {
	byKind map[string]*mergeRules // of the kinds that take a strategic merge patch
	expiry *time.Timer
}

// maxSchemas bounds how many are kept.
const maxSchemas = 4

// lookupPatchMeta returns the merge rules of a kind, nil for one that has none, as
// custom kinds.
func (r *run) lookupPatchMeta(ctx context.Context, resource vedette.Resource) (strategicpatch.LookupPatchMeta, error) {
	s, err := r.fetchSchema(ctx, resource.APIVersion())
	switch {
	case isNotFound(err) && !vedette.IsNativeGroup(resource.Kind.Group):
		return nil, nil // an aggregated API that describes nothing has no strategic merge either
	case isNotFound(err):
		return nil, vedette.Errorf(vedette.Unavailable, "the cluster does not describe %s by OpenAPI v3, which a client-side apply needs: apply it server-side", resource.APIVersion())
	case err != nil:
		return nil, err
	case s.byKind[resource.Kind.Name] == nil:
		return nil, nil
	}
	return s.byKind[resource.Kind.Name], nil
}

func (r *run) fetchSchema(ctx context.Context, apiVersion string) (*versionSchema, error) {
	if s := r.operator.schemas.get(apiVersion); s != nil {
		return s, nil
	}
	body, _, err := r.send(ctx, request{path: "/openapi/v3" + groupVersionPath(apiVersion)})
	if err != nil {
		return nil, err
	}
	s, err := parseSchema(apiVersion, body)
	if err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the cluster's OpenAPI document of %s makes no sense: %w", apiVersion, err)
	}
	r.operator.schemas.put(apiVersion, s)
	return s, nil
}

func (s *schemaCache) get(apiVersion string) *versionSchema {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byAPIVersion[apiVersion]
	if found != nil {
		found.expiry.Reset(s.ttl)
	}
	return found
}

// put keeps a schema until it was idle for long, or another one takes its room.
func (s *schemaCache) put(apiVersion string, entry *versionSchema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byAPIVersion == nil {
		s.byAPIVersion = map[string]*versionSchema{}
	}
	for other, old := range s.byAPIVersion {
		if len(s.byAPIVersion) < maxSchemas && other != apiVersion {
			continue
		}
		old.expiry.Stop()
		delete(s.byAPIVersion, other)
	}
	s.byAPIVersion[apiVersion] = entry
	entry.expiry = time.AfterFunc(s.ttl, func() { s.remove(apiVersion, entry) })
}

func (s *schemaCache) remove(apiVersion string, entry *versionSchema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byAPIVersion[apiVersion] == entry {
		delete(s.byAPIVersion, apiVersion)
	}
}

// openAPIDocument is the part of an OpenAPI document that is read.
type openAPIDocument struct {
	Paths map[string]struct {
		Patch *struct {
			Kind        groupVersionKind `json:"x-kubernetes-group-version-kind"`
			RequestBody struct {
				Content map[string]struct{}
			} `json:"requestBody"`
		}
	}
	Components struct {
		Schemas map[string]*openAPISchema
	}
}

type groupVersionKind struct{ Group, Version, Kind string }

func (k groupVersionKind) apiVersion() string {
	return vedette.Resource{Kind: vedette.Kind{Group: k.Group}, Version: k.Version}.APIVersion()
}

func parseSchema(apiVersion string, body []byte) (*versionSchema, error) {
	var d openAPIDocument
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, err
	}
	strategicKinds := d.strategicKinds(apiVersion)
	builder := &ruleBuilder{types: d.Components.Schemas, built: map[*openAPISchema]*mergeRules{}}
	s := &versionSchema{byKind: map[string]*mergeRules{}}
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

// strategicKinds are the kinds of a version that take a strategic merge patch.
func (d *openAPIDocument) strategicKinds(apiVersion string) map[string]bool {
	kinds := map[string]bool{}
	for _, path := range d.Paths {
		if path.Patch == nil || path.Patch.Kind.apiVersion() != apiVersion {
			continue
		}
		if _, found := path.Patch.RequestBody.Content[contentTypeStrategicPatch]; found {
			kinds[path.Patch.Kind.Kind] = true
		}
	}
	return kinds
}
