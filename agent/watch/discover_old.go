package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/vedette-io/vedette"
)

const (
	// mostDiscovery bounds the documents that are read whole, and what is read of
	// aggregated discovery: the biggest clusters have two or three megabytes.
	mostDiscovery = 8 << 20
	// mostVersions bounds the versions of groups that are asked for one by one.
	mostVersions = 2000
)

// oldRoot is what an API server before 1.26 answers: APIVersions for /api and
// an APIGroupList for /apis.
type oldRoot struct {
	Kind     string
	Versions []string
	Groups   []struct {
		Name             string
		Versions         []struct{ Version string }
		PreferredVersion struct{ Version string }
	}
}

// discoverOneByOne reads each group and version by a request of its own.
func (c *Cluster) discoverOneByOne(ctx context.Context, path string, body io.Reader) ([]group, error) {
	var root oldRoot
	if err := decode(body, &root); err != nil {
		return nil, err
	}
	switch root.Kind {
	case "APIVersions":
		return []group{c.discoverGroup(ctx, "", path, root.Versions)}, nil
	case "APIGroupList":
	default:
		return nil, fmt.Errorf("%w: a document of kind %q where the API groups were due", errGarbage, root.Kind)
	}
	groups, asked := make([]group, 0, len(root.Groups)), 0
	for _, g := range root.Groups {
		if asked += max(1, len(g.Versions)); asked > mostVersions {
			return nil, fmt.Errorf("%w: more than %d versions of API groups", errGarbage, mostVersions)
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

// discoverGroup reads the versions of one group. A version that does not answer
// makes the group unknown, and the others count.
func (c *Cluster) discoverGroup(ctx context.Context, name, path string, versions []string) group {
	g := group{Name: name}
	for _, version := range versions {
		resources, err := c.discoverVersion(ctx, vedette.Kind{Group: name}, version, path+"/"+version)
		if err != nil {
			g.Unknown = true
			continue
		}
		g.Versions = append(g.Versions, groupVersion{Version: version, Resources: resources})
	}
	return g
}

// oldResources is an APIResourceList.
type oldResources struct {
	Kind      string
	Resources []struct {
		Name         string
		SingularName string
		Namespaced   bool
		Kind         string
		Verbs        []string
		ShortNames   []string
	}
}

func (c *Cluster) discoverVersion(ctx context.Context, kind vedette.Kind, version, path string) ([]vedette.Resource, error) {
	resp, err := c.get(ctx, c.limits(), request{path: path, accept: acceptJSON})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list oldResources
	if err := decode(resp.Body, &list); err != nil {
		return nil, err
	}
	var resources []vedette.Resource
	for _, r := range list.Resources {
		if strings.Contains(r.Name, "/") || !watchable(r.Verbs) {
			continue
		}
		kind.Name = r.Kind
		resources = append(resources, vedette.Resource{Kind: kind, Version: version, Plural: r.Name,
			Singular: r.SingularName, ShortNames: r.ShortNames, Namespaced: r.Namespaced})
	}
	return resources, nil
}

// decode reads one document whole.
func decode(r io.Reader, into any) error {
	body, err := io.ReadAll(atMost(r, mostDiscovery))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: %s", errGarbage, quote(body))
	}
	return nil
}
