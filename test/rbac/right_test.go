package rbac

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// right is one verb of one rule.
type right struct {
	namespace string // empty in the whole cluster
	group     string
	resource  string // with its subresource
	name      string // empty for all objects
	verb      string
}

func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	if r.name != "" {
		text += " " + r.name
	}
	if r.namespace != "" {
		text += " in namespace " + r.namespace
	}
	return text
}

// parseRights returns the rights in the manifests that "vedette-agent rbac" prints.
func parseRights(t *testing.T, manifests []byte) (rights []right) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(manifests))
	for {
		var document struct {
			Kind     string
			Metadata struct{ Namespace string }
			Rules    []struct {
				Groups    []string `yaml:"apiGroups"`
				Resources []string
				Names     []string `yaml:"resourceNames"`
				Verbs     []string
			}
		}
		if err := decoder.Decode(&document); err != nil {
			break
		}
		for _, rule := range document.Rules {
			if len(rule.Names) == 0 {
				rule.Names = []string{""}
			}
			for _, resource := range rule.Resources {
				for _, name := range rule.Names {
					for _, verb := range rule.Verbs {
						rights = append(rights, right{document.Metadata.Namespace, rule.Groups[0], resource, name, verb})
					}
				}
			}
		}
	}
	if len(rights) == 0 {
		t.Fatalf("no rights in\n%s", manifests)
	}
	return rights
}

// grant gives a user rights, each of which is a rule.
func grant(t *testing.T, user string, rights []right) {
	t.Helper()
	const api = "/apis/rbac.authorization.k8s.io/v1"
	rules := map[string][]any{}
	for _, r := range rights {
		rule := object{"apiGroups": []string{r.group}, "resources": []string{r.resource}, "verbs": []string{r.verb}}
		if r.name != "" {
			rule["resourceNames"] = []string{r.name}
		}
		rules[r.namespace] = append(rules[r.namespace], rule)
	}
	for namespace, list := range rules {
		kind, path := "ClusterRole", api+"/clusterroles"
		if namespace != "" {
			kind, path = "Role", api+"/namespaces/"+namespace+"/roles"
		}
		meta := object{"name": user}
		must(t, plane.Create(t.Context(), path, object{"metadata": meta, "rules": list}))
		must(t, plane.Create(t.Context(), strings.TrimSuffix(path, "s")+"bindings", object{"metadata": meta,
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user},
			"subjects": []any{object{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}}}))
	}
}

// without returns the rights but one.
func without(rights []right, missing right) []right {
	return slices.DeleteFunc(slices.Clone(rights), func(r right) bool { return r == missing })
}

// request is one line of the API server's audit log.
type request struct {
	User      struct{ Username string }
	Verb      string
	ObjectRef struct{ Resource, Subresource, APIGroup, Namespace, Name string }
	Response  struct{ Code int } `json:"responseStatus"`
}

func (r request) resource() string {
	return strings.TrimSuffix(r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
}

// needs reports whether a request is one that a right allows.
func (r request) needs(right right) bool {
	return r.Verb == right.verb && r.resource() == right.resource && r.ObjectRef.APIGroup == right.group &&
		(right.name == "" || right.name == r.ObjectRef.Name) && (right.namespace == "" || right.namespace == r.ObjectRef.Namespace)
}

func (r request) String() string {
	return fmt.Sprintf("%s %s.%s %s/%s: %d", r.Verb, r.resource(), r.ObjectRef.APIGroup, r.ObjectRef.Namespace, r.ObjectRef.Name, r.Response.Code)
}
