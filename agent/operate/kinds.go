package operate

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate/manifest"
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
	if resource, found := findResource(v.resources, kind); ok && found && time.Since(v.fetchedAt) < kindsTTL {
		return resource, nil
	}
	resources, err := r.fetchResources(ctx, apiVersion)
	if err != nil {
		return vedette.Resource{}, err
	}
	if resource, found := findResource(resources, kind); found {
		return resource, nil
	}
	return vedette.Resource{}, kindNotServedf(
		"the cluster serves no kind %q in apiVersion %s: check its spelling, or create its CustomResourceDefinition first", kind, apiVersion)
}

func findResource(resources []vedette.Resource, kind string) (vedette.Resource, bool) {
	i := slices.IndexFunc(resources, func(r vedette.Resource) bool { return r.Matches(kind) })
	if i < 0 {
		return vedette.Resource{}, false
	}
	return resources[i], true
}

// fetchResources requests all kinds of one version of a group, including those that can't be
// watched.
func (r *run) fetchResources(ctx context.Context, apiVersion string) ([]vedette.Resource, error) {
	body, _, err := r.send(ctx, request{path: groupVersionPath(apiVersion)})
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
	if r.operator.kinds.versions == nil {
		r.operator.kinds.versions = map[string]cachedVersion{}
	}
	r.operator.kinds.versions[apiVersion] = cachedVersion{resources, time.Now()}
	return resources, nil
}

// parseResourceList reads a metav1.APIResourceList.
func parseResourceList(apiVersion string, body []byte) ([]vedette.Resource, error) {
	var list kube.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
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
	switch {
	case len(native) > 0:
		return native[0], nil
	case len(others) == 1:
		return others[0], nil
	case len(others) > 1:
		return vedette.Resource{}, vedette.Errorf(vedette.Invalid, "the name %q is ambiguous: the cluster serves %s and %s; write one of them",
			name, others[0].Kind, others[1].Kind)
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
