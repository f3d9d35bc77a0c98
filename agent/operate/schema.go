package operate

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/vedette-io/vedette"
)

// schemas keep the merge rules of the groups that were applied client-side
// lately. Documents of big groups take long to read, and their rules some hundred
// kilobytes, so that none are kept for longer than they are likely to be of use.
type schemas struct {
	idle time.Duration
	mu   sync.Mutex
	of   map[string]*schema // by apiVersion
}

// schema is what an OpenAPI document tells of the kinds of one version.
type schema struct {
	strategic map[string]*rules // of the kinds that take a strategic merge patch
	forget    *time.Timer
}

// mostSchemas bounds how many are kept.
const mostSchemas = 4

// patchMeta returns the merge rules of a kind, nil for one that has none, as
// custom kinds.
func (o *Operator) patchMeta(ctx context.Context, r vedette.Resource) (strategicpatch.LookupPatchMeta, error) {
	s, err := o.schema(ctx, r.APIVersion())
	switch {
	case missing(err) && !vedette.IsNativeGroup(r.Kind.Group):
		return nil, nil // an aggregated API that describes nothing has no strategic merge either
	case missing(err):
		return nil, vedette.Errorf(vedette.Unavailable, "the cluster does not describe %s by OpenAPI v3, which a client-side apply needs: apply it server-side", r.APIVersion())
	case err != nil:
		return nil, err
	case s.strategic[r.Kind.Name] == nil:
		return nil, nil
	}
	return s.strategic[r.Kind.Name], nil
}

func (o *Operator) schema(ctx context.Context, apiVersion string) (*schema, error) {
	if s := o.schemas.get(apiVersion); s != nil {
		return s, nil
	}
	body, _, err := o.send(ctx, call{path: "/openapi/v3" + versionPath(apiVersion)})
	if err != nil {
		return nil, err
	}
	s, err := parseSchema(apiVersion, body)
	if err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the cluster's OpenAPI document of %s makes no sense: %w", apiVersion, err)
	}
	o.schemas.put(apiVersion, s)
	return s, nil
}

func (s *schemas) get(apiVersion string) *schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.of[apiVersion]
	if found != nil {
		found.forget.Reset(s.idle)
	}
	return found
}

// put keeps a schema until it was idle for long, or another one takes its room.
func (s *schemas) put(apiVersion string, added *schema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]*schema{}
	}
	for other, old := range s.of {
		if len(s.of) < mostSchemas && other != apiVersion {
			continue
		}
		old.forget.Stop()
		delete(s.of, other)
	}
	s.of[apiVersion] = added
	added.forget = time.AfterFunc(s.idle, func() { s.drop(apiVersion, added) })
}

func (s *schemas) drop(apiVersion string, old *schema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[apiVersion] == old {
		delete(s.of, apiVersion)
	}
}

// document is the part of an OpenAPI document that is read.
type document struct {
	Paths map[string]struct {
		Patch *struct {
			Kind        kindOf `json:"x-kubernetes-group-version-kind"`
			RequestBody struct {
				Content map[string]struct{}
			} `json:"requestBody"`
		}
	}
	Components struct {
		Schemas map[string]*description
	}
}

type kindOf struct{ Group, Version, Kind string }

func (k kindOf) apiVersion() string {
	return vedette.Resource{Kind: vedette.Kind{Group: k.Group}, Version: k.Version}.APIVersion()
}

func parseSchema(apiVersion string, body []byte) (*schema, error) {
	var d document
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, err
	}
	takes := d.strategic(apiVersion)
	book := &rulebook{types: d.Components.Schemas, made: map[*description]*rules{}}
	s := &schema{strategic: map[string]*rules{}}
	for _, component := range d.Components.Schemas {
		if component == nil {
			continue
		}
		for _, k := range component.Kinds {
			if k.apiVersion() == apiVersion && takes[k.Kind] {
				s.strategic[k.Kind] = book.of(component)
			}
		}
	}
	return s, nil
}

// strategic are the kinds of a version that take a strategic merge patch.
func (d *document) strategic(apiVersion string) map[string]bool {
	takes := map[string]bool{}
	for _, path := range d.Paths {
		if path.Patch == nil || path.Patch.Kind.apiVersion() != apiVersion {
			continue
		}
		if _, does := path.Patch.RequestBody.Content[typeStrategic]; does {
			takes[path.Patch.Kind.Kind] = true
		}
	}
	return takes
}
