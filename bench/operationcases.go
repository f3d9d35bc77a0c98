package main

import (
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet/sample"
)

// fixture has the objects that operations change: a Deployment and a ConfigMap, different ones
// for each method and round.
type fixture struct{ workload, config testObject }

// testObject is an object with its original and its changed manifest.
type testObject struct {
	key           vedette.Key
	first, second []byte
	change        []byte // from one to the other, as a strategic merge patch
}

// operationCase is one operation in three forms: for Vedette, client-go and kubectl.
type operationCase struct {
	name         string
	body         func(*fixture) operationBody
	requests     func(*fixture) []apiRequest
	requestVerbs string // verbs of the requests
	// kubectl returns the arguments of kubectl and a manifest for --filename, which may be
	// nil.
	kubectl func(*fixture) ([]string, []byte)
}

// operationCases run in this order.
var operationCases = []operationCase{
	{"deploy a new Deployment",
		func(s *fixture) operationBody {
			return operationBody{"verb": "apply", "manifest": json.RawMessage(s.workload.first)}
		},
		func(s *fixture) []apiRequest { return append(s.workload.read(), s.workload.create()) }, "get, create",
		func(s *fixture) ([]string, []byte) { return []string{"apply"}, s.workload.first }},
	{"get",
		func(s *fixture) operationBody { return s.workload.operation("get") },
		func(s *fixture) []apiRequest { return s.workload.read() }, "get",
		func(s *fixture) ([]string, []byte) { return s.workload.args("get", "--output=json"), nil }},
	{"deploy, unchanged",
		func(s *fixture) operationBody {
			return operationBody{"verb": "apply", "manifest": json.RawMessage(s.workload.first)}
		},
		func(s *fixture) []apiRequest { return s.workload.read() }, "get",
		func(s *fixture) ([]string, []byte) { return []string{"apply"}, s.workload.first }},
	{"deploy, changed",
		func(s *fixture) operationBody {
			return operationBody{"verb": "apply", "manifest": json.RawMessage(s.workload.second)}
		},
		func(s *fixture) []apiRequest {
			return append(s.workload.read(), newPatchRequest(s.workload.key, "", "application/strategic-merge-patch+json", s.workload.change))
		}, "get, patch",
		func(s *fixture) ([]string, []byte) { return []string{"apply"}, s.workload.second }},
	{"patch",
		func(s *fixture) operationBody {
			return s.workload.operation("patch", "type", "merge", "patch", json.RawMessage(annotation))
		},
		func(s *fixture) []apiRequest {
			return []apiRequest{newPatchRequest(s.workload.key, "", "application/merge-patch+json", []byte(annotation))}
		}, "patch",
		func(s *fixture) ([]string, []byte) {
			return s.workload.args("patch", "--type=merge", "--patch="+annotation), nil
		}},
	{"scale",
		func(s *fixture) operationBody { return s.workload.operation("scale", "replicas", 7) },
		func(s *fixture) []apiRequest {
			return []apiRequest{newPatchRequest(s.workload.key, "scale", "application/merge-patch+json", []byte(`{"spec":{"replicas":7}}`))}
		}, "patch of /scale",
		func(s *fixture) ([]string, []byte) { return s.workload.args("scale", "--replicas=7"), nil }},
	{"delete, without waiting",
		func(s *fixture) operationBody { return s.workload.operation("delete", "noWait", true) },
		func(s *fixture) []apiRequest { return []apiRequest{newRequest(s.workload.key, "delete")} }, "delete",
		func(s *fixture) ([]string, []byte) { return s.workload.args("delete", "--wait=false"), nil }},
	{"deploy a new ConfigMap",
		func(s *fixture) operationBody {
			return operationBody{"verb": "apply", "manifest": json.RawMessage(s.config.first)}
		},
		func(s *fixture) []apiRequest { return []apiRequest{s.config.apply(s.config.first)} }, "server-side apply",
		func(s *fixture) ([]string, []byte) { return []string{"apply", "--server-side"}, s.config.first }},
	{"deploy a ConfigMap, changed",
		func(s *fixture) operationBody {
			return operationBody{"verb": "apply", "manifest": json.RawMessage(s.config.second)}
		},
		func(s *fixture) []apiRequest { return []apiRequest{s.config.apply(s.config.second)} }, "server-side apply",
		func(s *fixture) ([]string, []byte) { return []string{"apply", "--server-side"}, s.config.second }},
}

const annotation = `{"metadata":{"annotations":{"example.com/patched":"yes"}}}`

// operation returns an operation on an object. The arguments in more are names and values of
// further members.
func (d testObject) operation(verb string, extra ...any) operationBody {
	m := operationBody{"verb": verb, "kind": d.key.Kind.String(), "namespace": d.key.Namespace, "name": d.key.Name}
	for i := 0; i < len(extra); i += 2 {
		m[extra[i].(string)] = extra[i+1]
	}
	return m
}

func (d testObject) args(command string, flags ...string) []string {
	return append([]string{command, d.key.Kind.String(), d.key.Name, "--namespace=" + d.key.Namespace}, flags...)
}

func (d testObject) read() []apiRequest {
	c := newRequest(d.key, "get")
	c.MayMiss = true
	return []apiRequest{c}
}

func (d testObject) create() apiRequest {
	c := newRequest(d.key, "create")
	c.Body = d.first
	return c
}

func (d testObject) apply(manifest []byte) apiRequest {
	return newPatchRequest(d.key, "", "application/apply-patch+yaml", manifest)
}

// newFixtures returns the fixtures of a round, one for each method.
func newFixtures(c *cluster, round, ways int) ([]*fixture, error) {
	var all []*fixture
	for w := range ways {
		i := backgroundObjects + round*ways + w
		workload, err := newTestObject(c.sample, deployments, i, func(o map[string]any) map[string]any {
			pod := o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			container := pod["containers"].([]any)[0].(map[string]any)
			container["image"] = fmt.Sprintf("registry.example.com/changed:%d", round)
			return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": container["name"], "image": container["image"]}}}}}}
		})
		if err != nil {
			return nil, err
		}
		config, err := newTestObject(c.sample, configMaps, i, func(o map[string]any) map[string]any {
			o["data"].(map[string]any)["changed"] = fmt.Sprint(round)
			return nil
		})
		if err != nil {
			return nil, err
		}
		all = append(all, &fixture{workload, config})
	}
	return all, nil
}

// newTestObject returns the manifests of a sample object. The function changes the object and
// returns the change as a patch.
func newTestObject(c *sample.Cluster, kind vedette.Kind, i int, change func(map[string]any) map[string]any) (testObject, error) {
	d := testObject{key: c.Key(kind, i)}
	var err error
	d.first, _, err = c.Creatable(kind, i)
	if err != nil {
		return d, err
	}
	var o map[string]any
	if err := json.Unmarshal(d.first, &o); err != nil {
		return d, err
	}
	patch := change(o)
	d.second, err = json.Marshal(o)
	if err != nil {
		return d, err
	}
	d.change, err = json.Marshal(patch)
	return d, err
}
