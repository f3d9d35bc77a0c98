package manifest

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// trait is what Clouddriver knows of a kind by itself.
type trait struct {
	written  string // as Clouddriver writes the kind
	alias    string // which it reads for the kind
	sort     string // what it takes objects of the kind for, its spinnakerKind
	priority int    // of its deployment, smaller ones first

	versioned bool     // each change is an object of its own unless something else is said
	places    []finder // where artifacts may stand
	scales    bool     // has replicas that can be taken over
	traffic   bool     // can stand behind a load balancer
}

// Unclassified is what Clouddriver takes kinds for that it does not know.
const Unclassified = "unclassified"

const (
	undeployable = -1
	unregistered = 1000 // the priority of kinds that are not in the table
)

var traits = func() map[string]trait {
	const configs, groups, balancers = "configs", "serverGroups", "loadBalancers"
	all := map[string]trait{}
	for _, t := range []trait{
		{written: "namespace", alias: "ns", sort: Unclassified, priority: 0},
		{written: "role", sort: Unclassified, priority: 20},
		{written: "clusterRole", sort: Unclassified, priority: 20},
		{written: "roleBinding", sort: Unclassified, priority: 30},
		{written: "clusterRoleBinding", sort: Unclassified, priority: 30},
		{written: "customResourceDefinition", alias: "crd", sort: Unclassified, priority: 30},
		{written: "serviceAccount", alias: "sa", sort: Unclassified, priority: 40},
		{written: "storageClass", alias: "sc", sort: Unclassified, priority: 40},
		{written: "persistentVolume", alias: "pv", sort: configs, priority: 40},
		{written: "mutatingWebhookConfiguration", sort: Unclassified, priority: 40},
		{written: "validatingWebhookConfiguration", sort: Unclassified, priority: 40},
		{written: "configMap", alias: "cm", sort: configs, priority: 50, versioned: true},
		{written: "secret", sort: configs, priority: 50, versioned: true},
		{written: "persistentVolumeClaim", alias: "pvc", sort: configs, priority: 50},
		{written: "service", alias: "svc", sort: balancers, priority: 70},
		{written: "ingress", sort: balancers, priority: 70},
		{written: "networkPolicy", alias: "netpol", sort: "securityGroups", priority: 70},
		{written: "apiService", sort: Unclassified, priority: 80},
		{written: "limitRange", sort: Unclassified, priority: 90},
		{written: "podPreset", sort: Unclassified, priority: 90},
		{written: "podSecurityPolicy", sort: Unclassified, priority: 90},
		{written: "podDisruptionBudget", sort: Unclassified, priority: 90},
		{written: "deployment", alias: "deploy", sort: "serverGroupManagers", priority: 100, places: ofTemplates, scales: true, traffic: true},
		{written: "replicaSet", alias: "rs", sort: groups, priority: 100, places: ofTemplates, scales: true, traffic: true, versioned: true},
		{written: "statefulSet", sort: groups, priority: 100, places: ofTemplates, scales: true, traffic: true},
		{written: "daemonSet", alias: "ds", sort: groups, priority: 100, places: ofTemplates, traffic: true},
		{written: "job", sort: groups, priority: 100, places: ofTemplates, traffic: true},
		{written: "cronJob", sort: groups, priority: 100, places: ofTemplates, traffic: true},
		{written: "pod", alias: "po", sort: "instances", priority: 100, places: ofPods, traffic: true, versioned: true},
		{written: "horizontalpodautoscaler", alias: "hpa", sort: Unclassified, priority: 110, places: ofAutoscalers},
		{written: "controllerRevision", sort: Unclassified, priority: undeployable},
		{written: "event", sort: Unclassified, priority: undeployable},
	} {
		all[strings.ToLower(t.written)] = t
		if t.alias != "" {
			all[t.alias] = t
		}
	}
	return all
}()

// traitOf returns what is known of a kind, nothing of custom ones.
func traitOf(kind vedette.Kind) (trait, bool) {
	if !vedette.IsNativeGroup(kind.Group) {
		return trait{}, false
	}
	t, ok := traits[strings.ToLower(kind.Name)]
	return t, ok
}

// KindOf returns the kind that an apiVersion and a kind make.
func KindOf(apiVersion, kind string) vedette.Kind {
	group, _, qualified := strings.Cut(apiVersion, "/")
	if !qualified {
		group = ""
	}
	return vedette.Kind{Group: group, Name: kind}
}

// KindName writes a kind as Clouddriver does: its own in their form, others of
// Kubernetes by name alone, custom ones with their group.
func KindName(kind vedette.Kind) string {
	if !vedette.IsNativeGroup(kind.Group) {
		return kind.String()
	}
	if t, ok := traitOf(kind); ok {
		return t.written
	}
	return kind.Name
}

// SpinnakerKinds returns the kinds that Clouddriver knows by itself, as it
// writes them, and what it takes each for: "pod" for "instances". The map is the
// caller's.
func SpinnakerKinds() map[string]string {
	all := map[string]string{}
	for _, t := range traits {
		all[t.written] = t.sort
	}
	return all
}

// SplitName reads the full name that FullName writes, "replicaSet web-v003".
func SplitName(name string) (kind, object string, err error) {
	kind, object, ok := strings.Cut(strings.TrimSpace(name), " ")
	object = strings.TrimSpace(object)
	if !ok || object == "" || strings.ContainsAny(object, " /") {
		return "", "", vedette.Errorf(vedette.Invalid, "Expected a full resource name of the form <kind> <name>, got: %.300s", name)
	}
	return kind, object, nil
}
