package apistub

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
)

// Cluster is the API server of a recorded cluster. It is safe for concurrent use.
type Cluster struct {
	resources []vedette.Resource
	objects   map[vedette.Kind][]*object // by namespace and name
	revision  uint64                     // the newest resourceVersion of an object
}

// New returns the API server of a cluster with these objects. Each has a kind and an apiVersion, and
// all have different names.
func New(objects []json.RawMessage) (*Cluster, error) {
	c := &Cluster{resources: parseNativeResources(), objects: map[vedette.Kind][]*object{}}
	parsed := make([]*object, 0, len(objects))
	for i, raw := range objects {
		o, err := parseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
		if o.kind == "CustomResourceDefinition" {
			custom, err := customResources(raw)
			if err != nil {
				return nil, fmt.Errorf("object %d: %w", i, err)
			}
			c.resources = append(c.resources, custom...)
		}
		parsed = append(parsed, o)
	}
	for i, o := range parsed {
		if err := c.add(o); err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
	}
	for kind := range maps.Keys(c.objects) {
		slices.SortFunc(c.objects[kind], func(a, b *object) int {
			return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
		})
	}
	return c, nil
}

// Names returns the names of all objects of a kind, by namespace and name.
func (c *Cluster) Names(kind vedette.Kind) []string {
	var names []string
	for _, o := range c.objects[kind] {
		names = append(names, o.name)
	}
	return names
}

func (c *Cluster) add(o *object) error {
	index := slices.IndexFunc(c.resources, o.isOf)
	if index < 0 {
		return fmt.Errorf("%s %s: the kind is neither one of Kubernetes nor defined by a recorded CustomResourceDefinition", o.kind, o.name)
	}
	r := c.resources[index]
	if r.Namespaced != (o.namespace != "") {
		return fmt.Errorf("%s %s: got namespace %q, want one only for namespaced kinds", o.kind, o.name, o.namespace)
	}
	// Some built-in objects, such as ComponentStatus, have no version.
	if version, err := strconv.ParseUint(o.Get("metadata.resourceVersion"), 10, 64); err == nil {
		c.revision = max(c.revision, version)
	}
	c.objects[r.Kind] = append(c.objects[r.Kind], o)
	return nil
}

// ServeHTTP answers requests to the API server.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case r.Method != http.MethodGet:
		writeStatus(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "recorded objects cannot be changed")
	case path == "/version":
		writeJSON(w, map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
	case path == "/readyz", path == "/livez", path == "/healthz":
		_, _ = w.Write([]byte("ok"))
	case path == "/api", path == "/apis":
		c.discover(w, path == "/api")
	default:
		c.serveResource(w, r, strings.Split(strings.Trim(path, "/"), "/"))
	}
}

// serveResource serves /api/v1/… and /apis/GROUP/VERSION/….
func (c *Cluster) serveResource(w http.ResponseWriter, r *http.Request, path []string) {
	group := ""
	if path[0] == "apis" && len(path) > 1 {
		group, path = path[1], path[1:]
	}
	switch len(path) {
	case 0, 1:
		writeNotFound(w)
		return
	case 2:
		c.discoverVersion(w, group, path[1])
		return
	}
	version := path[1]
	namespace := ""
	path = path[2:]
	if path[0] == "namespaces" && len(path) > 2 {
		namespace, path = path[1], path[2:]
	}
	for _, resource := range c.resources {
		if resource.Kind.Group == group && resource.Version == version && resource.Plural == path[0] {
			c.serveObjects(w, r, request{Resource: resource, namespace: namespace, path: path[1:]})
			return
		}
	}
	writeNotFound(w)
}
