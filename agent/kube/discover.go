package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// Catalogue lists the kinds of an API server.
type Catalogue struct {
	Resources []vedette.Resource // that can be listed and watched, by group and kind, one version of each
	// Served are all kinds, in the order of the API server: by the priority of their groups, the core group first.
	Served []vedette.ServedKind
	// UnknownGroups are the API groups whose own API server does not respond, or whose
	// part of the discovery could not be read.
	UnknownGroups []string
}

// discoveryTimeout bounds discovery and identification, which take about a hundred
// requests, one after the other, with API servers before 1.26.
const discoveryTimeout = 5 * time.Minute

var errDiscoveryTimeout = errors.New("discovery took longer than 5 minutes")

const (
	acceptGroups   = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
	groupDiscovery = "APIGroupDiscoveryList"
)

// discoveryCache keeps the last responses of /api and /apis, so that the next discovery
// costs the API server only the comparison of an ETag. Guarded by Cluster.mu.
type discoveryCache map[string]*cachedDiscovery

type cachedDiscovery struct {
	etag   string
	groups []group
}

type group struct {
	Name     string
	Versions []groupVersion // preferred version first
	Unknown  bool
}

type groupVersion struct {
	Version string
	Kinds   []vedette.ServedKind // without their other versions
	Stale   bool
}

// Discover returns the kinds that the API server serves. A group that cannot be read is
// listed in UnknownGroups and does not affect other groups.
func (c *Cluster) Discover(ctx context.Context) (Catalogue, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, discoveryTimeout, errDiscoveryTimeout)
	defer cancel()
	var groups []group
	for _, path := range []string{"/api", "/apis"} {
		g, err := c.discoverRoot(ctx, path)
		if err != nil {
			return Catalogue{}, fmt.Errorf("discover %s: %w", path, c.Explain(causeOf(ctx, err)))
		}
		groups = append(groups, g...)
	}
	cat := newCatalogue(groups)
	if err := limitKinds(len(cat.Served)); err != nil {
		return Catalogue{}, fmt.Errorf("discover kinds: %w", c.Explain(err))
	}
	return cat, nil
}

// maxKinds bounds the kinds of a cluster, each of which may become a feed. The largest
// clusters have about 3,000.
const maxKinds = 10_000

func limitKinds(n int) error {
	if n > maxKinds {
		return fmt.Errorf("%w: more than %d kinds", jsonstream.ErrMalformed, maxKinds)
	}
	return nil
}

// causeOf returns the cause of ctx if that explains more than err.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errDiscoveryTimeout) {
		return cause
	}
	return err
}

// discoverRoot reads /api or /apis. API servers of 1.26 and later return everything in
// one document; older ones need a request per group and version.
func (c *Cluster) discoverRoot(ctx context.Context, path string) ([]group, error) {
	c.mu.Lock()
	last := c.discoveryCache[path]
	c.mu.Unlock()
	header := http.Header{}
	if last != nil && last.etag != "" {
		header.Set("If-None-Match", last.etag)
	}
	resp, err := c.Get(ctx, c.Timeouts(), GetRequest{Path: path, Accept: acceptGroups, Header: header})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && last != nil {
		return last.groups, nil
	}
	if !strings.Contains(resp.Header.Get("Content-Type"), groupDiscovery) {
		return c.discoverLegacy(ctx, path, resp.Body)
	}
	groups, err := readGroups(resp.Body, c.ReadPermit(ctx, resp.Body, documentTimeout))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.discoveryCache == nil {
		c.discoveryCache = discoveryCache{}
	}
	c.discoveryCache[path] = &cachedDiscovery{etag: resp.Header.Get("ETag"), groups: groups}
	return groups, nil
}

// aggregatedGroup is the part of apidiscovery.k8s.io's APIGroupDiscovery that this
// package reads. It is the same in v2 and v2beta1.
type aggregatedGroup struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Versions []struct {
		Version   string `json:"version"`
		Freshness string `json:"freshness"`
		Resources []struct {
			Resource     string `json:"resource"`
			ResponseKind *struct {
				Kind string `json:"kind"`
			} `json:"responseKind"`
			Scope            string   `json:"scope"`
			SingularResource string   `json:"singularResource"`
			Verbs            []string `json:"verbs"`
			ShortNames       []string `json:"shortNames"`
			Categories       []string `json:"categories"`
		} `json:"resources"`
	} `json:"versions"`
}

// readGroups decodes one group at a time, because the whole document exceeds two
// megabytes in clusters with many operators. A group that cannot be decoded is unknown.
func readGroups(r io.Reader, permit jsonstream.Permit) ([]group, error) {
	var groups []group
	kinds, lists := 0, sharedLists{}
	s := jsonstream.NewSplitter(limitReader(r, maxDiscoveryBytes), new(jsonstream.BufferPool),
		jsonstream.Options{Permit: permit, FreeBuffer: freeDocumentBuffer})
	defer s.Close()
	_, err := s.List(nil, func(raw []byte) error {
		var a aggregatedGroup
		if err := exactjson.Unmarshal(raw, &a, exactjson.Limits{Bytes: maxDecodedBytes}); err != nil && a.Metadata.Name == "" {
			return fmt.Errorf("%w: %w", jsonstream.ErrMalformed, err)
		} else if err != nil {
			groups = append(groups, group{Name: a.Metadata.Name, Unknown: true})
			return nil
		}
		g := a.group(lists)
		groups = append(groups, g)
		for _, v := range g.Versions {
			kinds += 1 + len(v.Kinds)
		}
		return limitKinds(max(kinds/2, len(groups)))
	})
	if errors.Is(err, jsonstream.ErrNoVersion) { // a discovery document has no resourceVersion
		err = nil
	}
	return groups, err
}

// sharedLists makes equal lists share their memory: hundreds of kinds have the same verbs.
type sharedLists map[string][]string

func (s sharedLists) share(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	key := strings.Join(list, "\x00")
	if s[key] == nil {
		s[key] = list
	}
	return s[key]
}

func (a aggregatedGroup) group(lists sharedLists) group {
	g := group{Name: a.Metadata.Name}
	for _, v := range a.Versions {
		gv := groupVersion{Version: v.Version, Stale: v.Freshness == "Stale"}
		for _, r := range v.Resources {
			if r.ResponseKind == nil {
				continue
			}
			resource := vedette.Resource{
				Kind: vedette.Kind{Group: g.Name, Name: r.ResponseKind.Kind}, Version: v.Version,
				Plural: r.Resource, Singular: r.SingularResource, ShortNames: r.ShortNames,
				Namespaced: r.Scope == "Namespaced",
			}
			gv.Kinds = append(gv.Kinds,
				vedette.ServedKind{Resource: resource, Categories: lists.share(r.Categories), Verbs: lists.share(r.Verbs)})
		}
		g.Versions = append(g.Versions, gv)
	}
	return g
}

func watchable(verbs []string) bool {
	return slices.Contains(verbs, "list") && slices.Contains(verbs, "watch")
}

// newCatalogue chooses one version of each kind: the first one, in the order of the
// group, that serves it.
func newCatalogue(groups []group) Catalogue {
	var cat Catalogue
	positions := map[vedette.Kind]int{}
	for _, g := range groups {
		unknown := g.Unknown
		for _, v := range g.Versions {
			unknown = unknown || v.Stale
			for _, k := range v.Kinds {
				if !hasValidNames(k.Resource) {
					continue
				}
				at, seen := positions[k.Kind]
				if !seen {
					at = len(cat.Served)
					positions[k.Kind] = at
					cat.Served = append(cat.Served, k)
				}
				cat.Served[at].Versions = append(cat.Served[at].Versions, v.Version)
			}
		}
		if unknown {
			cat.UnknownGroups = append(cat.UnknownGroups, g.Name)
		}
	}
	cat.Resources = watchableOf(groups)
	slices.Sort(cat.UnknownGroups)
	return cat
}

func hasValidNames(r vedette.Resource) bool {
	return r.Kind.Name != "" && r.Plural != "" && max(len(r.Kind.Group), len(r.Kind.Name), len(r.Plural), len(r.Version)) <= maxNameLength
}

// watchableOf returns the kinds that can be listed and watched. The version is the first one in which they can.
func watchableOf(groups []group) (resources []vedette.Resource) {
	seen := map[vedette.Kind]bool{}
	for _, g := range groups {
		for _, v := range g.Versions {
			for _, k := range v.Kinds {
				if !seen[k.Kind] && watchable(k.Verbs) && hasValidNames(k.Resource) {
					seen[k.Kind] = true
					resources = append(resources, k.Resource)
				}
			}
		}
	}
	slices.SortFunc(resources, func(a, b vedette.Resource) int {
		return strings.Compare(a.Kind.Group+"/"+a.Kind.Name, b.Kind.Group+"/"+b.Kind.Name)
	})
	return resources
}
