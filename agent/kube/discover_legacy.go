package kube

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
)

const (
	// maxDiscoveryBytes bounds a discovery document. The largest clusters have two or three
	// megabytes.
	maxDiscoveryBytes = 8 << 20
	// maxGroupVersions bounds the versions of groups, each of which takes a request.
	maxGroupVersions = 2000
)

// legacyRoot is the response of an API server before 1.26: APIVersions for /api and an
// APIGroupList for /apis.
type legacyRoot struct {
	Kind     string   `json:"kind"`
	Versions []string `json:"versions"`
	Groups   []struct {
		Name     string `json:"name"`
		Versions []struct {
			Version string `json:"version"`
		} `json:"versions"`
		PreferredVersion struct {
			Version string `json:"version"`
		} `json:"preferredVersion"`
	} `json:"groups"`
}

// discoverLegacy reads each group and version with a request of its own.
func (c *Cluster) discoverLegacy(ctx context.Context, path string, body io.Reader) ([]group, error) {
	var root legacyRoot
	if err := c.readDocument(ctx, body, &root); err != nil {
		return nil, err
	}
	switch root.Kind {
	case "APIVersions":
		return []group{c.discoverGroup(ctx, "", path, root.Versions)}, nil
	case "APIGroupList":
	default:
		return nil, fmt.Errorf("%w: got kind %q, want APIVersions or APIGroupList", jsonstream.ErrMalformed, root.Kind)
	}
	groups, requests := make([]group, 0, len(root.Groups)), 0
	for _, g := range root.Groups {
		requests += max(1, len(g.Versions))
		if requests > maxGroupVersions {
			return nil, fmt.Errorf("%w: more than %d versions of API groups", jsonstream.ErrMalformed, maxGroupVersions)
		}
		versions := []string{g.PreferredVersion.Version}
		for _, v := range g.Versions {
			if v.Version != g.PreferredVersion.Version {
				versions = append(versions, v.Version)
			}
		}
		groups = append(groups, c.discoverGroup(ctx, g.Name, path+"/"+g.Name, versions))
	}
	return groups, nil
}

// discoverGroup reads the versions of one group. If one version cannot be read, the group
// is unknown, and its other versions are used.
func (c *Cluster) discoverGroup(ctx context.Context, name, path string, versions []string) group {
	g := group{Name: name}
	for _, version := range versions {
		kinds, err := c.discoverVersion(ctx, name, version, path+"/"+version)
		if err != nil {
			g.Unknown = true
			continue
		}
		g.Versions = append(g.Versions, groupVersion{Version: version, Kinds: kinds})
	}
	return g
}

func (c *Cluster) discoverVersion(ctx context.Context, group, version, path string) ([]vedette.ServedKind, error) {
	resp, err := c.Get(ctx, c.Timeouts(), GetRequest{Path: path, Accept: AcceptJSON})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list APIResourceList
	if err := c.readDocument(ctx, resp.Body, &list); err != nil {
		return nil, err
	}
	return list.Kinds(group, version), nil
}

// APIResourceList is the part of a metav1.APIResourceList that this agent reads.
type APIResourceList struct {
	Resources []struct {
		Name         string   `json:"name"`
		SingularName string   `json:"singularName"`
		Namespaced   bool     `json:"namespaced"`
		Kind         string   `json:"kind"`
		Verbs        []string `json:"verbs"`
		ShortNames   []string `json:"shortNames"`
		Categories   []string `json:"categories"`
	} `json:"resources"`
}

// Kinds returns the kinds of the list, without subresources.
func (l APIResourceList) Kinds(group, version string) []vedette.ServedKind {
	var kinds []vedette.ServedKind
	for _, r := range l.Resources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		resource := vedette.Resource{Kind: vedette.Kind{Group: group, Name: r.Kind}, Version: version,
			Plural: r.Name, Singular: r.SingularName, ShortNames: r.ShortNames, Namespaced: r.Namespaced}
		kinds = append(kinds, vedette.ServedKind{Resource: resource, Categories: r.Categories, Verbs: r.Verbs})
	}
	return kinds
}
