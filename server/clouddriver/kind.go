package clouddriver

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// spinnakerKinds are the kinds that Clouddriver knows by itself, as it writes
// them, and the sort of thing that it takes each for.
var spinnakerKinds = map[string]string{
	"pod": "instances", "replicaSet": "serverGroups", "daemonSet": "serverGroups", "statefulSet": "serverGroups",
	"job": "serverGroups", "cronJob": "serverGroups", "deployment": "serverGroupManagers",
	"service": "loadBalancers", "ingress": "loadBalancers", "networkPolicy": "securityGroups",
	"configMap": "configs", "secret": "configs", "persistentVolume": "configs", "persistentVolumeClaim": "configs",
	"apiService": unclassified, "clusterRole": unclassified, "clusterRoleBinding": unclassified,
	"controllerRevision": unclassified, "customResourceDefinition": unclassified, "event": unclassified,
	"horizontalpodautoscaler": unclassified, "limitRange": unclassified, "mutatingWebhookConfiguration": unclassified,
	"namespace": unclassified, "podDisruptionBudget": unclassified, "podPreset": unclassified,
	"podSecurityPolicy": unclassified, "role": unclassified, "roleBinding": unclassified,
	"serviceAccount": unclassified, "storageClass": unclassified, "validatingWebhookConfiguration": unclassified,
}

const unclassified = "unclassified"

var writtenKinds = func() map[string]string {
	written := map[string]string{}
	for name := range spinnakerKinds {
		written[strings.ToLower(name)] = name
	}
	return written
}()

// kindName writes a kind as Clouddriver does: its own in their form, others of
// Kubernetes by name alone, custom ones with their group.
func kindName(kind vedette.Kind) string {
	if !vedette.IsNativeGroup(kind.Group) {
		return kind.String()
	}
	if written, ok := writtenKinds[strings.ToLower(kind.Name)]; ok {
		return written
	}
	return kind.Name
}

// splitName reads "replicaSet web-v003".
func splitName(name string) (kind, object string, err error) {
	kind, object, ok := strings.Cut(strings.TrimSpace(name), " ")
	object = strings.TrimSpace(object)
	if !ok || object == "" || strings.ContainsAny(object, " /") {
		return "", "", vedette.Errorf(vedette.Invalid, "Expected a full resource name of the form <kind> <name>, got: %.300s", name)
	}
	return kind, object, nil
}
