package apistub

import (
	"encoding/json"
	"net/http"

	"github.com/vedette-io/vedette"
)

const aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

type groupDiscovery struct {
	Metadata map[string]string   `json:"metadata"`
	Versions []*versionDiscovery `json:"versions"`
}

type versionDiscovery struct {
	Version   string           `json:"version"`
	Freshness string           `json:"freshness"`
	Resources []map[string]any `json:"resources"`
}

// discover serves /api and /apis in the aggregated form, which API servers have since 1.26.
func (c *Cluster) discover(w http.ResponseWriter, isCore bool) {
	groups := []*groupDiscovery{}
	byName := map[string]*groupDiscovery{}
	for _, r := range c.resources {
		if (r.Kind.Group == "") != isCore {
			continue
		}
		if byName[r.Kind.Group] == nil {
			byName[r.Kind.Group] = &groupDiscovery{Metadata: map[string]string{"name": r.Kind.Group}}
			groups = append(groups, byName[r.Kind.Group])
		}
		v := byName[r.Kind.Group].version(r.Version)
		v.Resources = append(v.Resources, discoveryOf(r))
	}
	w.Header().Set("Content-Type", aggregatedDiscovery)
	writeJSON(w, map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": map[string]any{},
		"items": groups})
}

// discoverVersion serves /api/v1 or /apis/GROUP/VERSION: the resources of one version.
func (c *Cluster) discoverVersion(w http.ResponseWriter, group, version string) {
	resources := []map[string]any{}
	for _, r := range c.resources {
		if r.Kind.Group == group && r.Version == version {
			resources = append(resources, map[string]any{"name": r.Plural, "singularName": r.Singular, "shortNames": r.ShortNames,
				"namespaced": r.Namespaced, "kind": r.Kind.Name, "verbs": verbsOf(r)})
		}
	}
	if len(resources) == 0 {
		writeNotFound(w)
		return
	}
	writeJSON(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion(group, version),
		"resources": resources})
}

func groupVersion(group, version string) string {
	return vedette.Resource{Kind: vedette.Kind{Group: group}, Version: version}.APIVersion()
}

func (g *groupDiscovery) version(name string) *versionDiscovery {
	for _, v := range g.Versions {
		if v.Version == name {
			return v
		}
	}
	v := &versionDiscovery{Version: name, Freshness: "Current"}
	g.Versions = append(g.Versions, v)
	return v
}

func discoveryOf(r vedette.Resource) map[string]any {
	scope := "Cluster"
	if r.Namespaced {
		scope = "Namespaced"
	}
	return map[string]any{"resource": r.Plural, "singularResource": r.Singular, "shortNames": r.ShortNames, "scope": scope, "verbs": verbsOf(r),
		"responseKind": map[string]string{"group": r.Kind.Group, "version": r.Version, "kind": r.Kind.Name}}
}

func verbsOf(r vedette.Resource) []string {
	switch r.Kind.Name {
	case "Binding":
		return []string{"create"}
	case "ComponentStatus":
		return []string{"get", "list"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

func writeJSON(w http.ResponseWriter, v any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

func writeNotFound(w http.ResponseWriter) {
	writeStatus(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
}

// writeStatus writes a Status object.
func writeStatus(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	writeJSON(w, map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"code": code, "reason": reason, "message": message})
}
