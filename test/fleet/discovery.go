package fleet

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

const aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discovery serves /api and /apis in the aggregated form, the only one that simulated clusters
// support.
func (c *Cluster) discovery(w http.ResponseWriter, r *http.Request, path string) {
	c.fleet.counts.gets.Add(1)
	if !strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList") {
		writeStatus(w, http.StatusNotAcceptable, "NotAcceptable", "simulated clusters support only aggregated discovery")
		return
	}
	w.Header().Set("ETag", c.etag)
	if r.Header.Get("If-None-Match") == c.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", aggregatedDiscovery)
	writeJSON(w, map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
		"metadata": map[string]any{}, "items": c.groups(path == "/api")})
}

// groups returns the core group, or all other groups.
func (c *Cluster) groups(core bool) []any {
	var names []string
	byName := map[string][]any{}
	for _, s := range c.registries {
		if (s.Kind.Group == "") != core {
			continue
		}
		if !slices.Contains(names, s.Kind.Group) {
			names = append(names, s.Kind.Group)
		}
		byName[s.Kind.Group] = append(byName[s.Kind.Group], s.discovery())
	}
	groups := []any{}
	for _, name := range names {
		groups = append(groups, map[string]any{"metadata": map[string]any{"name": name},
			"versions": []any{map[string]any{"version": "v1", "freshness": "Current", "resources": byName[name]}}})
	}
	return groups
}

func (s *registry) discovery() map[string]any {
	scope := "Cluster"
	if s.Namespaced {
		scope = "Namespaced"
	}
	return map[string]any{"resource": s.Plural, "singularResource": s.Singular, "shortNames": s.ShortNames, "scope": scope,
		"responseKind": map[string]string{"group": s.Kind.Group, "version": s.Version, "kind": s.Kind.Name},
		"verbs":        []string{"get", "list", "patch", "watch"}}
}

func writeJSON(w http.ResponseWriter, v any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

// writeStatus writes a Status object.
func writeStatus(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(statusJSON(code, reason, message))
}

func statusJSON(code int, reason, message string) []byte {
	raw, err := json.Marshal(map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{},
		"status": "Failure", "code": code, "reason": reason, "message": message})
	if err != nil {
		panic(err) // cannot happen: strings and a number always marshal
	}
	return raw
}
