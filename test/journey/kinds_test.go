package journey

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
)

// TestKindsThatNoAgentReports names kinds that the agent does not report, and objects of them, in a real cluster.
func TestKindsThatNoAgentReports(t *testing.T) {
	type object = map[string]any
	h := start(t, agent.Account{Name: "one"}, redact.Config{})
	h.awaitLive(12)
	v := buildCLI(t, "http://"+h.srv.REST().String())
	create := func(path string, o object) {
		t.Helper()
		if err := plane.Create(t.Context(), path, o); err != nil {
			t.Fatal(err)
		}
	}
	create("/api/v1/namespaces", object{"metadata": object{"name": "kinds"}})
	create("/apis/rbac.authorization.k8s.io/v1/namespaces/kinds/roles", object{"metadata": object{"name": "reader"}, "rules": []any{}})
	const role = "one/Role.rbac.authorization.k8s.io/kinds/reader"
	for _, command := range []string{"get role reader -n kinds", "get role/reader", "get roles -n kinds", "get ROLE.rbac.authorization.k8s.io reader -n kinds",
		"get roles.v1.rbac.authorization.k8s.io reader", "get " + role} {
		v.wantOutput(role, "", command+" -o name")
	}
	for command, want := range map[string]string{
		"get role none -n kinds":                            `role "none" not found`,
		"get one/Role.rbac.authorization.k8s.io/kinds/none": `"none" not found in one`,
		"get pod none -n kinds":                             `pod "none" not found`,
		"get rolez":                                         "did you mean roles?",
		"get roles --watch":                                 "no agent reports Role.rbac.authorization.k8s.io",
	} {
		if code, out := v.run("", command); code != 1 || !strings.Contains(out, want) {
			t.Errorf("%s: got %d %s, want 1 and %q", command, code, out, want)
		}
	}
	for command, want := range map[string]string{
		"get apiservices -o name":                     "one/APIService.apiregistration.k8s.io/_/v1.apps",
		"get csinodes":                                "",
		"get cs -o name":                              "one/ComponentStatus/_/etcd-0", // can be listed, and not watched
		"get all -n kube-system":                      "",
		"get all -n default -o name":                  "one/Service/default/kubernetes",
		"api-resources -o name":                       "csinodes.storage.k8s.io",
		"api-resources --verbs create --sort-by name": "selfsubjectreviews",
	} {
		if code, out := v.run("", command); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: got %d %s, want 0 and %q", command, code, out, want)
		}
	}
	if code, out := v.run("", "get gizmos"); code != 1 || !strings.Contains(out, "no cluster serves a kind") {
		t.Errorf("a kind that does not exist yet: got %d %s", code, out)
	}
	create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object{"metadata": object{"name": "gizmos.example.com"},
		"spec": object{"group": "example.com", "scope": "Namespaced",
			"names": object{"kind": "Gizmo", "plural": "gizmos", "shortNames": []any{"gz", "po"}, "categories": []any{"all"}},
			"versions": []any{object{"name": "v1", "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}})
	h.await("the new kind", func() bool {
		code, out := v.run("", "get gizmos -n kinds")
		return code == 0 && strings.Contains(out, "No resources found")
	})
	create("/apis/example.com/v1/namespaces/kinds/gizmos", object{"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": object{"name": "g"}})
	for _, command := range []string{"get gz g", "get gizmo.example.com/g -n kinds", "get gizmos.v1.example.com", "get all -n kinds", "get po.example.com"} {
		v.wantOutput("one/Gizmo.example.com/kinds/g", "", command+" -o name")
	}
	if code, out := v.run("", "get po -n kinds"); code != 0 || !strings.Contains(out, "No resources found") {
		t.Errorf("a short name of Kubernetes that a custom kind has, too: got %d %s, want pods", code, out)
	}
	v.wantOutput(`gizmo.example.com "g" deleted from kinds namespace`, "", "delete all --all -n kinds")
	h.stopAgent()
	h.await("the end of the agent", func() bool {
		code, out := v.run("", "get pod none -n kinds")
		return code == 1 && strings.Contains(out, `pod "none" was not found, but it may exist: one: no agent is connected`)
	})
	var answer struct{ Error struct{ Message string } }
	if h.get("/vedette/v1/objects/one/pods/kinds/none", &answer) {
		t.Error("an object of which nothing is known was found")
	}
}
