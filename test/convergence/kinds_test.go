package convergence

import (
	"fmt"
	"maps"
	"math/rand/v2"

	"github.com/vedette-io/vedette/test/controlplane"
)

type object = controlplane.Object

// namespaces exist from the start, except the last one, which the workload creates.
var namespaces = []string{"conv-0", "conv-1", "conv-2"}

// kind is a kind that accounts cache.
type kind struct {
	group, version, name, plural string
	namespaced                   bool
	spec                         func(name string) object // returns what an object needs besides metadata; nil for nothing
}

// similarNames are names of ClusterRoles that differ by case, by spaces and by Unicode normalization
// only. Each is another object for Kubernetes, which allows them for the kinds of RBAC.
var similarNames = []string{"pad", "pad ", "pad  ", " pad", "PAD", "Pad", "p\u00e1d", "pa\u0301d", "pad\u00a0", "stra\u00dfe", "strasse"}

func (k kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

// groupKind returns the kind as in the database.
func (k kind) groupKind() string { return k.name + "." + k.group }

// list returns the path of the objects of a kind; of all namespaces if namespace is "".
func (k kind) list(namespace string) string {
	path := "/api/" + k.version
	if k.group != "" {
		path = "/apis/" + k.apiVersion()
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.plural
}

const customGroup = "conv.example.com"

var (
	crdKind   = kind{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false, nil}
	nsKind    = kind{"", "v1", "Namespace", "namespaces", false, nil}
	configMap = kind{"", "v1", "ConfigMap", "configmaps", true, nil}

	// builtIn are always served.
	builtIn = []kind{
		nsKind, crdKind, configMap,
		{"", "v1", "Secret", "secrets", true, nil},
		{"", "v1", "Pod", "pods", true, func(name string) object { return object{"spec": pod(name)} }},
		{"", "v1", "Service", "services", true, func(string) object {
			return object{"spec": object{"selector": object{"app": "x"}, "ports": []object{{"port": 80}}}}
		}},
		{"apps", "v1", "Deployment", "deployments", true, replicated},
		{"apps", "v1", "ReplicaSet", "replicasets", true, replicated},
		{"batch", "v1", "Job", "jobs", true, func(name string) object {
			spec := pod(name)
			spec["restartPolicy"] = "Never"
			return object{"spec": object{"template": object{"spec": spec}}}
		}},
		{"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false, func(string) object {
			return object{"rules": []object{{"apiGroups": []string{""}, "resources": []string{"pods"}, "verbs": []string{"get"}}}}
		}},
		{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true, func(string) object {
			return object{"spec": object{"podSelector": object{}}}
		}},
	}
	// custom are served while their definition exists.
	custom = []kind{
		{customGroup, "v1", "Widget", "widgets", true, nil},
		{customGroup, "v1", "Gadget", "gadgets", true, nil},
	}
)

func replicated(name string) object {
	return object{"spec": object{
		"replicas": 1, "selector": object{"matchLabels": object{"app": name}},
		"template": object{"metadata": object{"labels": object{"app": name}}, "spec": pod(name)},
	}}
}

func pod(name string) object {
	return object{"containers": []object{{"name": "main", "image": "registry.example.com/" + name + ":1"}}}
}

func configuredKinds() []string {
	var names []string
	for _, k := range append(append([]kind{}, builtIn...), custom...) {
		names = append(names, k.name)
	}
	return names
}

// make returns an object of a kind, sometimes a large one.
func (k kind) make(rng *rand.Rand, name string) object {
	labels := object{"colour": colours[rng.IntN(len(colours))]}
	if k.namespaced {
		labels["app"] = name
	}
	o := object{"apiVersion": k.apiVersion(), "kind": k.name, "metadata": object{"name": name, "labels": labels}}
	if k.spec != nil {
		maps.Copy(o, k.spec(name))
	}
	if k.name == configMap.name && rng.IntN(10) == 0 {
		o["data"] = object{"big": filler(rng, 200<<10)}
	}
	return o
}

var colours = []string{"red", "green", "blue", "white"}

// filler returns text that does not compress well.
func filler(rng *rand.Rand, size int) string {
	text := make([]byte, size)
	for i := range text {
		text[i] = byte('!' + rng.IntN(90))
	}
	return string(text)
}

// definition returns the CustomResourceDefinition of a custom kind.
func definition(k kind) object {
	return object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": k.plural + "." + k.group},
		"spec": object{
			"group": k.group, "scope": "Namespaced",
			"names": object{"kind": k.name, "plural": k.plural, "singular": fmt.Sprintf("%.6s", k.plural), "listKind": k.name + "List"},
			"versions": []object{{"name": k.version, "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		}}
}
