package manifest

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// kindInfo is what Clouddriver knows of a kind by itself.
type kindInfo struct {
	name          string // as Clouddriver writes the kind
	alias         string // which it reads for the kind
	spinnakerKind string // what it takes objects of the kind for, its spinnakerKind
	priority      int    // of its deployment, smaller ones first

	versioned       bool          // each change is an object of its own unless something else is said
	finders         []fieldFinder // where artifacts may stand
	scalable        bool          // has replicas that can be taken over
	receivesTraffic bool          // can stand behind a load balancer
}

// Unclassified is what Clouddriver takes kinds for that it does not know.
const Unclassified = "unclassified"

const (
	undeployablePriority = -1
	unregisteredPriority = 1000 // the priority of kinds that are not in the table
)

var kindInfos = func() map[string]kindInfo {
	const configs, groups, balancers = "configs", "serverGroups", "loadBalancers"
	all := map[string]kindInfo{}
	for _, t := range []kindInfo{
		{name: "namespace", alias: "ns", spinnakerKind: Unclassified, priority: 0},
		{name: "role", spinnakerKind: Unclassified, priority: 20},
		{name: "clusterRole", spinnakerKind: Unclassified, priority: 20},
		{name: "roleBinding", spinnakerKind: Unclassified, priority: 30},
		{name: "clusterRoleBinding", spinnakerKind: Unclassified, priority: 30},
		{name: "customResourceDefinition", alias: "crd", spinnakerKind: Unclassified, priority: 30},
		{name: "serviceAccount", alias: "sa", spinnakerKind: Unclassified, priority: 40},
		{name: "storageClass", alias: "sc", spinnakerKind: Unclassified, priority: 40},
		{name: "persistentVolume", alias: "pv", spinnakerKind: configs, priority: 40},
		{name: "mutatingWebhookConfiguration", spinnakerKind: Unclassified, priority: 40},
		{name: "validatingWebhookConfiguration", spinnakerKind: Unclassified, priority: 40},
		{name: "configMap", alias: "cm", spinnakerKind: configs, priority: 50, versioned: true},
		{name: "secret", spinnakerKind: configs, priority: 50, versioned: true},
		{name: "persistentVolumeClaim", alias: "pvc", spinnakerKind: configs, priority: 50},
		{name: "service", alias: "svc", spinnakerKind: balancers, priority: 70},
		{name: "ingress", spinnakerKind: balancers, priority: 70},
		{name: "networkPolicy", alias: "netpol", spinnakerKind: "securityGroups", priority: 70},
		{name: "apiService", spinnakerKind: Unclassified, priority: 80},
		{name: "limitRange", spinnakerKind: Unclassified, priority: 90},
		{name: "podPreset", spinnakerKind: Unclassified, priority: 90},
		{name: "podSecurityPolicy", spinnakerKind: Unclassified, priority: 90},
		{name: "podDisruptionBudget", spinnakerKind: Unclassified, priority: 90},
		{name: "deployment", alias: "deploy", spinnakerKind: "serverGroupManagers", priority: 100, finders: templateFinders, scalable: true, receivesTraffic: true},
		{name: "replicaSet", alias: "rs", spinnakerKind: groups, priority: 100, finders: templateFinders, scalable: true, receivesTraffic: true, versioned: true},
		{name: "statefulSet", spinnakerKind: groups, priority: 100, finders: templateFinders, scalable: true, receivesTraffic: true},
		{name: "daemonSet", alias: "ds", spinnakerKind: groups, priority: 100, finders: templateFinders, receivesTraffic: true},
		{name: "job", spinnakerKind: groups, priority: 100, finders: templateFinders, receivesTraffic: true},
		{name: "cronJob", spinnakerKind: groups, priority: 100, finders: templateFinders, receivesTraffic: true},
		{name: "pod", alias: "po", spinnakerKind: "instances", priority: 100, finders: podFinders, receivesTraffic: true, versioned: true},
		{name: "horizontalpodautoscaler", alias: "hpa", spinnakerKind: Unclassified, priority: 110, finders: autoscalerFinders},
		{name: "controllerRevision", spinnakerKind: Unclassified, priority: undeployablePriority},
		{name: "event", spinnakerKind: Unclassified, priority: undeployablePriority},
	} {
		all[strings.ToLower(t.name)] = t
		if t.alias != "" {
			all[t.alias] = t
		}
	}
	return all
}()

// lookupKindInfo returns what is known of a kind, nothing of custom ones.
func lookupKindInfo(kind vedette.Kind) (kindInfo, bool) {
	if !vedette.IsNativeGroup(kind.Group) {
		return kindInfo{}, false
	}
	t, ok := kindInfos[strings.ToLower(kind.Name)]
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
	if t, ok := lookupKindInfo(kind); ok {
		return t.name
	}
	return kind.Name
}

// SpinnakerKinds returns the kinds that Clouddriver knows by itself, as it
// writes them, and what it takes each for: "pod" for "instances". The map is the
// caller's.
func SpinnakerKinds() map[string]string {
	all := map[string]string{}
	for _, t := range kindInfos {
		all[t.name] = t.spinnakerKind
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
