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

// writer is one who applies manifests, in one of two ways.
type writer struct {
	name  string
	apply func(b *bench, objects []object)
}

var (
	kubectlClient = writer{"kubectl-csa", func(b *bench, objects []object) { b.kubectlApply(objects) }}
	kubectlServer = writer{"kubectl-ssa", func(b *bench, objects []object) { b.kubectlApply(objects, "--server-side") }}
	agentClient   = writer{"agent-csa", func(b *bench, objects []object) { b.applyAll(vedette.ClientSide, objects) }}
	agentServer   = writer{"agent-ssa", func(b *bench, objects []object) { b.applyAll(vedette.ServerSide, objects) }}
	writers       = []writer{kubectlClient, kubectlServer, agentClient, agentServer}
)

func (b *bench) applyAll(strategy vedette.Strategy, objects []object) {
	b.Helper()
	for _, o := range objects {
		b.apply(strategy, o)
	}
}

// whole is a Deployment with two of everything.
func whole(name, tag string) object {
	return crew(name, []any{
		object{"name": "main", "image": "example.com/main:" + tag,
			"env":          []any{object{"name": "KEPT", "value": tag}, object{"name": "DROPPED", "value": "x"}},
			"ports":        []any{object{"name": "kept", "containerPort": 8080}, object{"name": "dropped", "containerPort": 9090}},
			"volumeMounts": []any{object{"name": "kept", "mountPath": "/kept"}, object{"name": "dropped", "mountPath": "/dropped"}}},
		object{"name": "sidecar", "image": "example.com/sidecar:1"},
	}, []any{object{"name": "kept", "emptyDir": object{}}, object{"name": "dropped", "emptyDir": object{}}})
}

// less is the same without a sidecar, an environment variable, a port, a mount
// and its volume.
func less(name, tag string) object {
	return crew(name, []any{
		object{"name": "main", "image": "example.com/main:" + tag,
			"env":          []any{object{"name": "KEPT", "value": tag}},
			"ports":        []any{object{"name": "kept", "containerPort": 8080}},
			"volumeMounts": []any{object{"name": "kept", "mountPath": "/kept"}}},
	}, []any{object{"name": "kept", "emptyDir": object{}}})
}

func crew(name string, containers, volumes []any) object {
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name},
		"spec": object{"replicas": 0, "selector": object{"matchLabels": object{"app": "crew"}},
			"template": object{"metadata": object{"labels": object{"app": "crew"}},
				"spec": object{"containers": containers, "volumes": volumes}}}}
}

// TestWhatAManifestDropsDisappears is the matrix that the predecessor failed:
// after every history of one and two writers, the agent's apply drops what the
// manifest dropped, and leaves the object as kubectl's own apply does.
func TestWhatAManifestDropsDisappears(t *testing.T) {
	b := newBench(t, operate.Config{})
	finals := map[string][2]writer{"csa": {agentClient, kubectlClient}, "ssa": {agentServer, kubectlServer}}
	var histories [][]writer
	for _, first := range writers {
		histories = append(histories, []writer{first})
		for _, second := range writers {
			histories = append(histories, []writer{first, second})
		}
	}
	twins := map[string][]writer{} // name without the last part, to history
	for final := range finals {
		for _, h := range histories {
			twins[strings.Join(append(names(h), final), ".")] = h
		}
	}
	each := slices.Sorted(maps.Keys(twins))
	for step, tag := range []string{"1", "2"} {
		for _, w := range writers {
			var objects []object
			for _, name := range each {
				if h := twins[name]; step < len(h) && h[step].name == w.name {
					objects = append(objects, whole(name+".by-agent", tag), whole(name+".by-kubectl", tag))
				}
			}
			w.apply(b, objects)
		}
	}
	for final, by := range finals {
		var agents, kubectls []object
		for _, name := range each {
			if strings.HasSuffix(name, "."+final) {
				agents = append(agents, less(name+".by-agent", "3"))
				kubectls = append(kubectls, less(name+".by-kubectl", "3"))
			}
		}
		by[0].apply(b, agents)
		by[1].apply(b, kubectls)
	}
	for _, name := range each {
		t.Run(name, func(t *testing.T) { compareTwins(t, b, name, twins[name]) })
	}
}

func names(h []writer) (n []string) {
	for _, w := range h {
		n = append(n, w.name)
	}
	return n
}

func compareTwins(t *testing.T, b *bench, name string, history []writer) {
	ours, theirs := b.live(apps, "deployments", name+".by-agent"), b.live(apps, "deployments", name+".by-kubectl")
	pod := dig(ours, "spec", "template", "spec")
	main := dig(pod, "containers", 0)
	for what, list := range map[string]any{"containers": dig(pod, "containers"), "volumes": dig(pod, "volumes"),
		"env": dig(main, "env"), "ports": dig(main, "ports"), "mounts": dig(main, "volumeMounts")} {
		if l, _ := list.([]any); len(l) != 1 {
			t.Errorf("the agent left %d %s: %v", len(l), what, l)
		}
	}
	if image := dig(main, "image"); image != "example.com/main:3" {
		t.Errorf("the image is %v", image)
	}
	if strings.HasSuffix(name, ".csa") && onlyServerSide(history) {
		return // kubectl's client-side apply leaves it all behind: nothing tells it what was applied
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

func onlyServerSide(h []writer) bool {
	return !slices.ContainsFunc(h, func(w writer) bool { return strings.HasSuffix(w.name, "csa") })
}

// managers are the managed fields, without times and those of controllers.
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
