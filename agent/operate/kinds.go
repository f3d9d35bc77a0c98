package operate

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// kindCache caches the kinds of the cluster. A kind that is not found is discovered again, because
// it may have been created since. A kind that was found is discovered again when the entry is old,
// or when its path returns 404.
type kindCache struct {
	mu        sync.Mutex
	catalogue kube.Catalogue
	versions  map[string]cachedVersion // by apiVersion
}

type cachedVersion struct {
	resources []vedette.Resource
	fetchedAt time.Time
}

const kindsTTL = 10 * time.Minute

// The limits of the kinds that are kept: of how many versions of groups, and of the bytes of one. The core
// group has 15 KB.
const (
	maxCachedVersions     = 100
	maxCachedVersionBytes = 64 << 10
)

// resolveResource returns the resource that a target names.
func (r *run) resolveResource(ctx context.Context, t vedette.Target) (vedette.Resource, error) {
	if t.Kind == "" {
		return vedette.Resource{}, vedette.Errorf(vedette.Invalid, "the operation names no kind")
	}
	if t.APIVersion != "" {
		return r.resolveInVersion(ctx, t.APIVersion, t.Kind)
	}
	return r.resolveByName(ctx, t.Kind)
}

// resolveInVersion returns a kind of one version of a group, as in a manifest.
func (r *run) resolveInVersion(ctx context.Context, apiVersion, kind string) (vedette.Resource, error) {
	if parts := strings.Split(apiVersion, "/"); len(parts) > 2 || slices.ContainsFunc(parts, func(part string) bool {
		return part == "" || !manifest.IsPathSegment(part)
	}) {
		return vedette.Resource{}, vedette.Errorf(vedette.Invalid, "%q is not an apiVersion", apiVersion)
	}
	r.operator.kinds.mu.Lock()
	v, ok := r.operator.kinds.versions[apiVersion]
	r.operator.kinds.mu.Unlock()
	if ok && time.Since(v.fetchedAt) < kindsTTL {
		if resource, err := findResource(v.resources, apiVersion, kind); err == nil {
			return resource, nil
		}
	}
	resources, err := r.fetchResources(ctx, apiVersion)
	if err != nil {
		return vedette.Resource{}, err
	}
	return findResource(resources, apiVersion, kind)
}

// findResource returns the resource of one version that a kind means.
func findResource(resources []vedette.Resource, apiVersion, kind string) (vedette.Resource, error) {
	var found []vedette.Resource
	for _, r := range resources {
		if r.Matches(kind) {
			found = append(found, r)
		}
	}
	found = vedette.PreferExact(found, kind)
	for _, r := range found {
		if r.Kind != found[0].Kind {
			return vedette.Resource{}, ambiguousKind(kind, found[0], r)
		}
	}
	if len(found) == 0 {
		return vedette.Resource{}, kindNotServedf(
			"the cluster serves no kind %q in apiVersion %s: check its spelling, or create its CustomResourceDefinition first", kind, apiVersion)
	}
	return found[0], nil
}

func ambiguousKind(name string, one, other vedette.Resource) error {
	return vedette.Errorf(vedette.Invalid, "the name %q is ambiguous: the cluster serves %s and %s; write one of them", name, one.Kind, other.Kind)
}

// fetchResources requests all kinds of one version of a group, including those that can't be
// watched.
func (r *run) fetchResources(ctx context.Context, apiVersion string) ([]vedette.Resource, error) {
	body, _, err := r.send(ctx, request{path: groupVersionPath(apiVersion), decoding: decodedAsTypes})
	switch statusCode(err) {
	case 0:
	case http.StatusNotFound:
		return nil, kindNotServedf("the cluster does not serve apiVersion %s", apiVersion)
	case http.StatusServiceUnavailable:
		return nil, vedette.Errorf(vedette.Unavailable, "the API server of apiVersion %s is unavailable: check its APIService (%v)", apiVersion,
			err)
	}
	if err != nil {
		return nil, err
	}
	resources, err := parseResourceList(apiVersion, body)
	if err != nil {
		return nil, err
	}
	r.operator.kinds.mu.Lock()
	defer r.operator.kinds.mu.Unlock()
	if len(body) > maxCachedVersionBytes {
		return resources, nil
	}
	if r.operator.kinds.versions == nil || len(r.operator.kinds.versions) >= maxCachedVersions {
		r.operator.kinds.versions = map[string]cachedVersion{}
	}
	r.operator.kinds.versions[apiVersion] = cachedVersion{resources, time.Now()}
	return resources, nil
}

// parseResourceList reads a metav1.APIResourceList.
func parseResourceList(apiVersion string, body []byte) ([]vedette.Resource, error) {
	var list kube.APIResourceList
	if err := exactjson.Unmarshal(body, &list, countedAlready); err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the cluster's list of the kinds of %s is invalid: %w", apiVersion, err)
	}
	group, v, found := strings.Cut(apiVersion, "/")
	if !found {
		group, v = "", apiVersion
	}
	return list.Kinds(group, v, func([]string) bool { return true }), nil
}

// resolveByName returns a kind by a name that a user wrote, for example "deploy".
func (r *run) resolveByName(ctx context.Context, name string) (vedette.Resource, error) {
	r.operator.kinds.mu.Lock()
	cat := r.operator.kinds.catalogue
	r.operator.kinds.mu.Unlock()
	if resource, err := chooseResource(cat, name); err == nil {
		return resource, nil
	}
	cat, err := r.operator.cluster.Discover(ctx)
	if err != nil {
		return vedette.Resource{}, err
	}
	r.operator.kinds.mu.Lock()
	r.operator.kinds.catalogue = cat
	r.operator.kinds.mu.Unlock()
	return chooseResource(cat, name)
}

// chooseResource returns the kind that a name means. Kubernetes' own groups take precedence, and
// among them the core group, because users who write "event" or "ingress" mean those.
func chooseResource(cat kube.Catalogue, name string) (vedette.Resource, error) {
	var native, others []vedette.Resource
	for _, r := range cat.Resources { // sorted by group, the core group first
		switch {
		case !r.Matches(name):
		case vedette.IsNativeGroup(r.Kind.Group):
			native = append(native, r)
		default:
			others = append(others, r)
		}
	}
	others = vedette.PreferExact(others, name)
	switch {
	case len(native) > 0:
		return native[0], nil
	case len(others) == 1:
		return others[0], nil
	case len(others) > 1:
		return vedette.Resource{}, ambiguousKind(name, others[0], others[1])
	case len(cat.UnknownGroups) > 0:
		return vedette.Resource{}, vedette.Errorf(vedette.Unavailable,
			"the cluster serves no kind %q in the groups that answer; the API servers of %s are unavailable", name,
			strings.Join(cat.UnknownGroups, ", "))
	}
	return vedette.Resource{}, kindNotServedf("the cluster serves no kind %q: check its spelling, or create its CustomResourceDefinition first",
		name)
}

// invalidate makes the next operations discover kinds again.
func (c *kindCache) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catalogue, c.versions = kube.Catalogue{}, nil
}

func groupVersionPath(apiVersion string) string {
	if strings.Contains(apiVersion, "/") {
		return "/apis/" + apiVersion
	}
	return "/api/" + apiVersion
}
