package main

import (
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet/sample"
)

// subject is what deeds are done to: a Deployment and a ConfigMap, which each way
// has of its own in each round.
type subject struct{ workload, config desired }

// desired is an object's name, the manifest that it is made from and the one that
// it is changed to.
type desired struct {
	key           vedette.Key
	first, second []byte
	change        []byte // from one to the other, as a strategic merge patch
}

// deed is one thing to do, said in three ways.
type deed struct {
	name      string
	operation func(*subject) members
	calls     func(*subject) []call
	directly  string // what the calls are
	// kubectl returns its arguments, and a manifest that --filename is added for;
	// nil for none.
	kubectl func(*subject) ([]string, []byte)
}

// deeds are done in this order.
var deeds = []deed{
	{"deploy a new Deployment",
		func(s *subject) members {
			return members{"verb": "apply", "manifest": json.RawMessage(s.workload.first)}
		},
		func(s *subject) []call { return append(s.workload.read(), s.workload.create()) }, "get, create",
		func(s *subject) ([]string, []byte) { return []string{"apply"}, s.workload.first }},
	{"get",
		func(s *subject) members { return s.workload.aim("get") },
		func(s *subject) []call { return s.workload.read() }, "get",
		func(s *subject) ([]string, []byte) { return s.workload.args("get", "--output=json"), nil }},
	{"deploy, unchanged",
		func(s *subject) members {
			return members{"verb": "apply", "manifest": json.RawMessage(s.workload.first)}
		},
		func(s *subject) []call { return s.workload.read() }, "get",
		func(s *subject) ([]string, []byte) { return []string{"apply"}, s.workload.first }},
	{"deploy, changed",
		func(s *subject) members {
			return members{"verb": "apply", "manifest": json.RawMessage(s.workload.second)}
		},
		func(s *subject) []call {
			return append(s.workload.read(), patchOf(s.workload.key, "", "application/strategic-merge-patch+json", s.workload.change))
		}, "get, patch",
		func(s *subject) ([]string, []byte) { return []string{"apply"}, s.workload.second }},
	{"patch",
		func(s *subject) members {
			return s.workload.aim("patch", "type", "merge", "patch", json.RawMessage(annotation))
		},
		func(s *subject) []call {
			return []call{patchOf(s.workload.key, "", "application/merge-patch+json", []byte(annotation))}
		}, "patch",
		func(s *subject) ([]string, []byte) {
			return s.workload.args("patch", "--type=merge", "--patch="+annotation), nil
		}},
	{"scale",
		func(s *subject) members { return s.workload.aim("scale", "replicas", 7) },
		func(s *subject) []call {
			return []call{patchOf(s.workload.key, "scale", "application/merge-patch+json", []byte(`{"spec":{"replicas":7}}`))}
		}, "patch of /scale",
		func(s *subject) ([]string, []byte) { return s.workload.args("scale", "--replicas=7"), nil }},
	{"delete, without waiting",
		func(s *subject) members { return s.workload.aim("delete", "noWait", true) },
		func(s *subject) []call { return []call{callOn(s.workload.key, "delete")} }, "delete",
		func(s *subject) ([]string, []byte) { return s.workload.args("delete", "--wait=false"), nil }},
	{"deploy a new ConfigMap",
		func(s *subject) members { return members{"verb": "apply", "manifest": json.RawMessage(s.config.first)} },
		func(s *subject) []call { return []call{s.config.apply(s.config.first)} }, "server-side apply",
		func(s *subject) ([]string, []byte) { return []string{"apply", "--server-side"}, s.config.first }},
	{"deploy a ConfigMap, changed",
		func(s *subject) members {
			return members{"verb": "apply", "manifest": json.RawMessage(s.config.second)}
		},
		func(s *subject) []call { return []call{s.config.apply(s.config.second)} }, "server-side apply",
		func(s *subject) ([]string, []byte) { return []string{"apply", "--server-side"}, s.config.second }},
}

const annotation = `{"metadata":{"annotations":{"example.com/patched":"yes"}}}`

// aim is an operation on an object; more are names and values of members.
func (d desired) aim(verb string, more ...any) members {
	m := members{"verb": verb, "kind": d.key.Kind.String(), "namespace": d.key.Namespace, "name": d.key.Name}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

func (d desired) args(command string, flags ...string) []string {
	return append([]string{command, d.key.Kind.String(), d.key.Name, "--namespace=" + d.key.Namespace}, flags...)
}

func (d desired) read() []call {
	c := callOn(d.key, "get")
	c.MayMiss = true
	return []call{c}
}

func (d desired) create() call {
	c := callOn(d.key, "create")
	c.Body = d.first
	return c
}

func (d desired) apply(manifest []byte) call {
	return patchOf(d.key, "", "application/apply-patch+yaml", manifest)
}

// subjectsOf makes the subjects of a round, one for each way.
func subjectsOf(c *cluster, round, ways int) ([]*subject, error) {
	var all []*subject
	for w := range ways {
		i := filling + round*ways + w
		workload, err := desire(c.sample, deployments, i, func(o map[string]any) map[string]any {
			pod := o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			container := pod["containers"].([]any)[0].(map[string]any)
			container["image"] = fmt.Sprintf("registry.example.com/changed:%d", round)
			return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": container["name"], "image": container["image"]}}}}}}
		})
		if err != nil {
			return nil, err
		}
		config, err := desire(c.sample, configMaps, i, func(o map[string]any) map[string]any {
			o["data"].(map[string]any)["changed"] = fmt.Sprint(round)
			return nil
		})
		if err != nil {
			return nil, err
		}
		all = append(all, &subject{workload, config})
	}
	return all, nil
}

// desire makes manifests of a sample object. The function changes the object and
// returns what it changed, as a patch.
func desire(c *sample.Cluster, kind vedette.Kind, i int, change func(map[string]any) map[string]any) (desired, error) {
	d := desired{key: c.Key(kind, i)}
	var err error
	if d.first, _, err = c.Creatable(kind, i); err != nil {
		return d, err
	}
	var o map[string]any
	if err := json.Unmarshal(d.first, &o); err != nil {
		return d, err
	}
	patch := change(o)
	if d.second, err = json.Marshal(o); err != nil {
		return d, err
	}
	d.change, err = json.Marshal(patch)
	return d, err
}
