package manifest

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// kindInfo is Clouddriver's built-in knowledge of a kind.
type kindInfo struct {
	name          string // in Clouddriver's form
	alias         string // accepted as a name of the kind
	spinnakerKind string // the spinnakerKind; empty for kinds of which Clouddriver knows the name only
	priority      int    // deployed in ascending order

	versioned       bool          // by default, each change is a new object
	finders         []fieldFinder // fields that can refer to artifacts
	scalable        bool          // its replicas can be taken over
	receivesTraffic bool          // can be attached to a load balancer
}

// Unclassified is the spinnakerKind of unknown kinds.
const Unclassified = "unclassified"

const (
	undeployablePriority = -1
	unregisteredPriority = 1000 // priority of kinds that are not in the table
)

var kindInfos = func() map[string]kindInfo {
	const (
		configs   = "configs"
		groups    = "serverGroups"
		balancers = "loadBalancers"
	)
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
		{name: "deployment", alias: "deploy", spinnakerKind: "serverGroupManagers", priority: 100, finders: templateFinders, scalable: true,
			receivesTraffic: true},
		{name: "replicaSet", alias: "rs", spinnakerKind: groups, priority: 100, finders: templateFinders, scalable: true, receivesTraffic: true,
			versioned: true},
		{name: "statefulSet", spinnakerKind: groups, priority: 100, finders: templateFinders, scalable: true, receivesTraffic: true},
		{name: "daemonSet", alias: "ds", spinnakerKind: groups, priority: 100, finders: templateFinders, receivesTraffic: true},
		{name: "job", spinnakerKind: groups, priority: 100, finders: templateFinders, receivesTraffic: true},
		{name: "cronJob", spinnakerKind: groups, priority: 100, finders: templateFinders, receivesTraffic: true},
		{name: "pod", alias: "po", spinnakerKind: "instances", priority: 100, finders: podFinders, receivesTraffic: true, versioned: true},
		{name: "horizontalpodautoscaler", alias: "hpa", spinnakerKind: Unclassified, priority: 110, finders: autoscalerFinders},
		{name: "csiDriver", priority: unregisteredPriority},
		{name: "csiNode", priority: unregisteredPriority},
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

// lookupKindInfo returns the built-in knowledge of a kind. Custom kinds have none.
func lookupKindInfo(kind vedette.Kind) (kindInfo, bool) {
	if !isNativeGroup(kind.Group) {
		return kindInfo{}, false
	}
	t, ok := kindInfos[strings.ToLower(kind.Name)]
	return t, ok
}

// KindOf returns the kind of an apiVersion and a kind.
func KindOf(apiVersion, kind string) vedette.Kind {
	group, _, qualified := strings.Cut(apiVersion, "/")
	if !qualified {
		group = ""
	}
	return vedette.Kind{Group: group, Name: kind}
}

// KindName formats a kind as Clouddriver does: Clouddriver's kinds in its form, other kinds of
// Kubernetes by name only, custom kinds with their group.
func KindName(kind vedette.Kind) string {
	if !isNativeGroup(kind.Group) {
		return kind.String()
	}
	if t, ok := lookupKindInfo(kind); ok {
		return t.name
	}
	return kind.Name
}

// SpinnakerKinds returns Clouddriver's built-in kinds in its form, with the spinnakerKind of
// each, for example "pod" and "instances". The caller owns the map.
func SpinnakerKinds() map[string]string {
	all := map[string]string{}
	for _, t := range kindInfos {
		if t.spinnakerKind != "" {
			all[t.name] = t.spinnakerKind
		}
	}
	return all
}

// SplitName parses a full name as FullName returns it, for example "replicaSet web-v003". Names with spaces
// are rejected. Clouddriver removes those at the end: "clusterRole admin " deletes "admin" there, also if it
// means another object of that name.
func SplitName(name string) (kind, object string, err error) {
	kind, object, _ = strings.Cut(name, " ")
	if kind == "" || object == "" || strings.ContainsAny(object, " /") {
		return "", "", vedette.Errorf(vedette.Invalid, "Expected a full resource name of the form <kind> <name>, got: %.300s", name)
	}
	return kind, object, nil
}
