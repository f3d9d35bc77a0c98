package request

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
)

// kindCache caches the kinds of the cluster. A kind that is not found is discovered again, because
// it may have been created since. A kind that was found is discovered again when the entry is old,
// or when its path returns 404.
type kindCache struct {
	mu        sync.Mutex
	catalogue cachedCatalogue
	versions  map[string]cachedVersion // by apiVersion
}

type cachedCatalogue struct {
	kinds         []vedette.ServedKind // in the order of the cluster
	unknownGroups []string
	fetchedAt     time.Time
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

// ResolveResource returns the resource that a target names.
func (s *Sender) ResolveResource(ctx context.Context, t vedette.Target) (vedette.Resource, error) {
	if t.Kind == "" {
		return vedette.Resource{}, vedette.Errorf(vedette.Invalid, "the operation names no kind")
	}
	if t.APIVersion != "" {
		return s.resolveInVersion(ctx, t.APIVersion, t.Kind)
	}
	return s.resolveByName(ctx, t.Kind)
}

// resolveInVersion returns a kind of one version of a group, as in a manifest.
func (s *Sender) resolveInVersion(ctx context.Context, apiVersion, kind string) (vedette.Resource, error) {
	if parts := strings.Split(apiVersion, "/"); len(parts) > 2 || slices.ContainsFunc(parts, func(part string) bool {
		return part == "" || !manifest.IsPathSegment(part)
	}) {
		return vedette.Resource{}, vedette.Errorf(vedette.Invalid, "%q is not an apiVersion", apiVersion)
	}
	s.kinds.mu.Lock()
	v, ok := s.kinds.versions[apiVersion]
	s.kinds.mu.Unlock()
	if ok && time.Since(v.fetchedAt) < kindsTTL {
		if resource, err := findResource(v.resources, apiVersion, kind); err == nil {
			return resource, nil
		}
	}
	resources, err := s.fetchResources(ctx, apiVersion)
	if err != nil {
		return vedette.Resource{}, err
	}
	return findResource(resources, apiVersion, kind)
}

// findResource returns the resource of one version that a kind means.
func findResource(resources []vedette.Resource, apiVersion, kind string) (vedette.Resource, error) {
	found := vedette.FindKinds(resources, kind, func(r vedette.Resource) (vedette.Resource, []string) { return r, nil }).Kinds
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
func (s *Sender) fetchResources(ctx context.Context, apiVersion string) ([]vedette.Resource, error) {
	body, _, err := s.Send(ctx, Request{Path: GroupVersionPath(apiVersion), Decoding: DecodedAsTypes})
	switch {
	case IsPathNotFound(err):
		return nil, s.confirmVersionMissing(ctx, apiVersion, err)
	case StatusCode(err) == http.StatusServiceUnavailable:
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
	s.kinds.mu.Lock()
	defer s.kinds.mu.Unlock()
	if len(body) > maxCachedVersionBytes {
		return resources, nil
	}
	if s.kinds.versions == nil || len(s.kinds.versions) >= maxCachedVersions {
		s.kinds.versions = map[string]cachedVersion{}
	}
	s.kinds.versions[apiVersion] = cachedVersion{resources, time.Now()}
	return resources, nil
}

// confirmVersionMissing returns a kindNotServedError if the cluster's list of versions lacks one that was answered with the 404 err,
// and err otherwise: a proxy may have answered.
func (s *Sender) confirmVersionMissing(ctx context.Context, apiVersion string, err error) error {
	path, _, _ := strings.Cut(strings.TrimPrefix(GroupVersionPath(apiVersion), "/"), "/")
	body, _, listErr := s.Send(ctx, Request{Path: "/" + path, Decoding: DecodedAsTypes})
	if listErr != nil {
		return listErr
	}
	var list struct {
		Kind     string   `json:"kind"`
		Versions []string `json:"versions"` // of the core group
		Groups   []struct {
			Versions []struct {
				GroupVersion string `json:"groupVersion"`
			} `json:"versions"`
		} `json:"groups"`
	}
	decodeErr := manifest.Decode(body, &list)
	if decodeErr != nil || list.Kind != "APIVersions" && list.Kind != "APIGroupList" {
		return err
	}
	served := list.Versions
	for _, group := range list.Groups {
		for _, v := range group.Versions {
			served = append(served, v.GroupVersion)
		}
	}
	if slices.Contains(served, apiVersion) {
		return err
	}
	return kindNotServedf("the cluster does not serve apiVersion %s", apiVersion)
}

// parseResourceList reads a metav1.APIResourceList.
func parseResourceList(apiVersion string, body []byte) ([]vedette.Resource, error) {
	var list kube.APIResourceList
	if err := manifest.Decode(body, &list); err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the cluster's list of the kinds of %s is invalid: %w", apiVersion, err)
	}
	group, v, found := strings.Cut(apiVersion, "/")
	if !found {
		group, v = "", apiVersion
	}
	var resources []vedette.Resource
	for _, k := range list.Kinds(group, v) {
		resources = append(resources, k.Resource)
	}
	return resources, nil
}

// resolveByName returns a kind by a name that a user wrote, for example "deploy".
func (s *Sender) resolveByName(ctx context.Context, name string) (vedette.Resource, error) {
	guess := !s.Operation.Changes()
	s.kinds.mu.Lock()
	cat := s.kinds.catalogue
	s.kinds.mu.Unlock()
	if time.Since(cat.fetchedAt) < kindsTTL {
		if resource, err := cat.choose(name, guess); err == nil {
			return resource, nil
		}
	}
	discovered, err := s.cluster.Discover(ctx)
	if err != nil {
		return vedette.Resource{}, err
	}
	cat = cachedCatalogue{discovered.Served, discovered.UnknownGroups, time.Now()}
	s.kinds.mu.Lock()
	s.kinds.catalogue = cat
	s.kinds.mu.Unlock()
	return cat.choose(name, guess)
}

// choose returns the kind that a name means. If several groups have the name, a read takes the first one, as kubectl does.
// A change does not, because the order may change with each group that is added to the cluster.
func (c cachedCatalogue) choose(name string, guess bool) (vedette.Resource, error) {
	match := vedette.FindKinds(c.kinds, name, func(k vedette.ServedKind) (vedette.Resource, []string) { return k.Resource, k.Versions })
	switch {
	case len(match.Kinds) == 1, guess && len(match.Kinds) > 1 && match.Kinds[0].Kind.Group != match.Kinds[1].Kind.Group:
		resource := match.Kinds[0].Resource
		if match.Version != "" {
			resource.Version = match.Version
		}
		return resource, nil
	case len(match.Kinds) > 1:
		return vedette.Resource{}, ambiguousKind(name, match.Kinds[0].Resource, match.Kinds[1].Resource)
	case len(c.unknownGroups) > 0:
		return vedette.Resource{}, vedette.Errorf(vedette.Unavailable,
			"the cluster serves no kind %q in the groups that answer; the API servers of %s are unavailable", name,
			strings.Join(c.unknownGroups, ", "))
	}
	return vedette.Resource{}, kindNotServedf("the cluster serves no kind %q: check its spelling, or create its CustomResourceDefinition first",
		name)
}

// Discover returns what the cluster serves. It invalidates the cache, because a user who discovers
// expects that later operations find the same kinds.
func (s *Sender) Discover(ctx context.Context) (kube.Catalogue, error) {
	cat, err := s.cluster.Discover(ctx)
	if err == nil {
		s.kinds.invalidate()
	}
	return cat, err
}

// invalidate makes the next operations discover kinds again.
func (c *kindCache) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catalogue, c.versions = cachedCatalogue{}, nil
}

// GroupVersionPath returns the URL path of one version of a group.
func GroupVersionPath(apiVersion string) string {
	if strings.Contains(apiVersion, "/") {
		return "/apis/" + apiVersion
	}
	return "/api/" + apiVersion
}
