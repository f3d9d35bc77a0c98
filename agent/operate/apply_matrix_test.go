//go:build linux

package operate_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// applier applies manifests, by the agent or by kubectl.
type applier struct {
	name  string
	apply func(b *testbed, objects []object)
}

var (
	kubectlClient = applier{"kubectl-csa", func(b *testbed, objects []object) { b.kubectlApply(objects) }}
	kubectlServer = applier{"kubectl-ssa", func(b *testbed, objects []object) { b.kubectlApply(objects, "--server-side") }}
	agentClient   = applier{"agent-csa", func(b *testbed, objects []object) { b.applyAll(vedette.StrategyClientSide, objects) }}
	agentServer   = applier{"agent-ssa", func(b *testbed, objects []object) { b.applyAll(vedette.StrategyServerSide, objects) }}
	appliers      = []applier{kubectlClient, kubectlServer, agentClient, agentServer}
)

func (b *testbed) applyAll(strategy vedette.Strategy, objects []object) {
	b.Helper()
	for _, o := range objects {
		b.apply(strategy, o)
	}
}

// fullDeployment is a Deployment with two of everything.
func fullDeployment(name, tag string) object {
	return deploymentManifest(name, []any{
		object{"name": "main", "image": "example.com/main:" + tag,
			"env":          []any{object{"name": "KEPT", "value": tag}, object{"name": "DROPPED", "value": "x"}},
			"ports":        []any{object{"name": "kept", "containerPort": 8080}, object{"name": "dropped", "containerPort": 9090}},
			"volumeMounts": []any{object{"name": "kept", "mountPath": "/kept"}, object{"name": "dropped", "mountPath": "/dropped"}}},
		object{"name": "sidecar", "image": "example.com/sidecar:1"},
	}, []any{object{"name": "kept", "emptyDir": object{}}, object{"name": "dropped", "emptyDir": object{}}})
}

// reducedDeployment is fullDeployment without a sidecar, an environment variable, a port, a mount
// and its volume.
func reducedDeployment(name, tag string) object {
	return deploymentManifest(name, []any{
		object{"name": "main", "image": "example.com/main:" + tag,
			"env":          []any{object{"name": "KEPT", "value": tag}},
			"ports":        []any{object{"name": "kept", "containerPort": 8080}},
			"volumeMounts": []any{object{"name": "kept", "mountPath": "/kept"}}},
	}, []any{object{"name": "kept", "emptyDir": object{}}})
}

func deploymentManifest(name string, containers, volumes []any) object {
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name},
		"spec": object{"replicas": 0, "selector": object{"matchLabels": object{"app": "web"}},
			"template": object{"metadata": object{"labels": object{"app": "web"}},
				"spec": object{"containers": containers, "volumes": volumes}}}}
}

// TestRemovedFieldsAreDeleted runs a matrix of histories with one and two writers. After each, the
// agent's apply must remove what the manifest dropped, and leave the object as kubectl's apply does.
func TestRemovedFieldsAreDeleted(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	finalAppliers := map[string][2]applier{"csa": {agentClient, kubectlClient}, "ssa": {agentServer, kubectlServer}}
	var histories [][]applier
	for _, first := range appliers {
		histories = append(histories, []applier{first})
		for _, second := range appliers {
			histories = append(histories, []applier{first, second})
		}
	}
	pairs := map[string][]applier{} // name without the last part, to history
	for final := range finalAppliers {
		for _, h := range histories {
			pairs[strings.Join(append(applierNames(h), final), ".")] = h
		}
	}
	pairNames := slices.Sorted(maps.Keys(pairs))
	for step, tag := range []string{"1", "2"} {
		for _, w := range appliers {
			var objects []object
			for _, name := range pairNames {
				if h := pairs[name]; step < len(h) && h[step].name == w.name {
					objects = append(objects, fullDeployment(name+".by-agent", tag), fullDeployment(name+".by-kubectl", tag))
				}
			}
			w.apply(b, objects)
		}
	}
	for final, by := range finalAppliers {
		var agents, kubectls []object
		for _, name := range pairNames {
			if strings.HasSuffix(name, "."+final) {
				agents = append(agents, reducedDeployment(name+".by-agent", "3"))
				kubectls = append(kubectls, reducedDeployment(name+".by-kubectl", "3"))
			}
		}
		by[0].apply(b, agents)
		by[1].apply(b, kubectls)
	}
	for _, name := range pairNames {
		t.Run(name, func(t *testing.T) { comparePair(t, b, name, pairs[name]) })
	}
}

func applierNames(h []applier) (n []string) {
	for _, w := range h {
		n = append(n, w.name)
	}
	return n
}

func comparePair(t *testing.T, b *testbed, name string, history []applier) {
	ours, theirs := b.live(apps, "deployments", name+".by-agent"), b.live(apps, "deployments", name+".by-kubectl")
	pod := dig(ours, "spec", "template", "spec")
	main := dig(pod, "containers", 0)
	for what, list := range map[string]any{"containers": dig(pod, "containers"), "volumes": dig(pod, "volumes"),
		"env": dig(main, "env"), "ports": dig(main, "ports"), "mounts": dig(main, "volumeMounts")} {
		if l, _ := list.([]any); len(l) != 1 {
			t.Errorf("got %d %s after the agent's apply: %v", len(l), what, l)
		}
	}
	if image := dig(main, "image"); image != "example.com/main:3" {
		t.Errorf("image: got %v", image)
	}
	if strings.HasSuffix(name, ".csa") && onlyServerSide(history) {
		// kubectl's client-side apply keeps removed fields here, because without the last-applied annotation
		// it does not know which fields were applied.
		return
	}
	if a, k := string(encode(t, ours["spec"])), string(encode(t, theirs["spec"])); a != k {
		t.Errorf("the agent left\n%s\nkubectl left\n%s", a, k)
	}
	if a, k := string(encode(t, managers(ours))), string(encode(t, managers(theirs))); a != k {
		t.Errorf("the agent left the managers\n%s\nkubectl left\n%s", a, k)
	}
	applied := func(o object) string {
		s, _ := dig(o, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration").(string)
		return strings.NewReplacer(name+".by-agent", "", name+".by-kubectl", "").Replace(s)
	}
	if a, k := applied(ours), applied(theirs); a != k {
		t.Errorf("the agent wrote the annotation\n%s\nkubectl wrote\n%s", a, k)
	}
}

func onlyServerSide(h []applier) bool {
	return !slices.ContainsFunc(h, func(w applier) bool { return strings.HasSuffix(w.name, "csa") })
}

// managers returns the managed fields without times and without those of controllers.
func managers(o object) map[string]any {
	all := map[string]any{}
	entries, _ := dig(o, "metadata", "managedFields").([]any)
	for _, e := range entries {
		name, operation := dig(e, "manager").(string), dig(e, "operation").(string)
		if strings.HasPrefix(name, "kubectl") {
			all[name+" "+operation] = dig(e, "fieldsV1")
		}
	}
	return all
}
