package operate

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// schemaCache keeps the merge rules of the groups of recent client-side applies. Large documents
// take long to read, but their rules take some hundred kilobytes, so they are kept only for a
// while after their last use.
type schemaCache struct {
	mu           sync.Mutex
	byAPIVersion map[string]*cachedSchema
}

// cachedSchema is the schema of one version of a group.
type cachedSchema struct {
	*apply.Schema
	expiry *time.Timer
}

const (
	schemaTTL  = 2 * time.Minute // since the last use
	maxSchemas = 4
)

// lookupPatchMeta returns the merge rules of a kind, nil for a kind without a strategic merge
// patch, for example a custom kind.
func (r *run) lookupPatchMeta(ctx context.Context, resource vedette.Resource) (strategicpatch.LookupPatchMeta, error) {
	s, err := r.fetchSchema(ctx, resource.APIVersion())
	switch {
	case request.IsPathNotFound(err) && !vedette.IsNativeGroup(resource.Kind.Group):
		return nil, nil // an aggregated API without a description has no strategic merge patch either
	case request.IsPathNotFound(err):
		return nil, vedette.Errorf(vedette.Unavailable,
			"the cluster serves no OpenAPI v3 document of %s, which a client-side apply needs: apply it server-side", resource.APIVersion())
	case err != nil:
		return nil, err
	}
	return s.Rules(resource.Kind.Name), nil
}

func (r *run) fetchSchema(ctx context.Context, apiVersion string) (*cachedSchema, error) {
	if s := r.operator.schemas.get(apiVersion); s != nil {
		return s, nil
	}
	body, _, err := r.Send(ctx, request.Request{Path: "/openapi/v3" + request.GroupVersionPath(apiVersion), Decoding: request.DecodedAsTypes})
	if err != nil {
		return nil, err
	}
	schema, err := apply.ParseSchema(apiVersion, body)
	if err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the cluster's OpenAPI document of %s is invalid: %w", apiVersion, err)
	}
	s := &cachedSchema{Schema: schema}
	r.operator.schemas.put(apiVersion, s)
	return s, nil
}

func (s *schemaCache) get(apiVersion string) *cachedSchema {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byAPIVersion[apiVersion]
	if found != nil {
		found.expiry.Reset(schemaTTL)
	}
	return found
}

// put keeps a schema until it was not used for schemaTTL, or is replaced by another one.
func (s *schemaCache) put(apiVersion string, entry *cachedSchema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byAPIVersion == nil {
		s.byAPIVersion = map[string]*cachedSchema{}
	}
	for other, old := range s.byAPIVersion {
		if len(s.byAPIVersion) < maxSchemas && other != apiVersion {
			continue
		}
		old.expiry.Stop()
		delete(s.byAPIVersion, other)
	}
	s.byAPIVersion[apiVersion] = entry
	entry.expiry = time.AfterFunc(schemaTTL, func() { s.remove(apiVersion, entry) })
}

func (s *schemaCache) remove(apiVersion string, entry *cachedSchema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byAPIVersion[apiVersion] == entry {
		delete(s.byAPIVersion, apiVersion)
	}
}
