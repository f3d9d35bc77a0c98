package differ

import (
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/textcheck"
)

// Object is an object as a tree.
type Object = map[string]any

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Text returns an object as YAML, "" for nil.
func Text(tree Object) (string, error) {
	if tree == nil {
		return "", nil
	}
	text, err := manifests.Encode(tree, "yaml")
	return textcheck.EscapeJSON(text) + "\n", err // terminals do not show some characters that YAML contains
}

// RemoveCopies removes what says nothing more about the object: its managed fields, and the manifest that was applied
// last.
func RemoveCopies(tree Object) {
	metadata, _ := tree["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	removeMember(metadata, "annotations", lastApplied)
}

func removeMember(parent Object, name, member string) {
	values, _ := parent[name].(map[string]any)
	if values == nil {
		return
	}
	delete(values, member)
	if len(values) == 0 {
		delete(parent, name)
	}
}

// clusterFields are fields whose values each cluster chooses.
var clusterFields = []struct{ kind, group, parent, name string }{
	{parent: "metadata", name: "uid"},
	{parent: "metadata", name: "resourceVersion"},
	{parent: "metadata", name: "creationTimestamp"},
	{parent: "metadata", name: "generation"},
	{parent: "metadata", name: "selfLink"},
	{parent: "metadata", name: "ownerReferences"}, // they have uids
	{kind: "Service", parent: "spec", name: "clusterIP"},
	{kind: "Service", parent: "spec", name: "clusterIPs"},
	{kind: "Service", parent: "spec", name: "healthCheckNodePort"},
	{kind: "PersistentVolumeClaim", parent: "spec", name: "volumeName"},
	{kind: "Pod", parent: "spec", name: "nodeName"},
	{kind: "Node", parent: "spec", name: "providerID"},
	{kind: "ServiceAccount", parent: "", name: "secrets"},
}

// clusterAnnotations are annotations that controllers write in each cluster.
var clusterAnnotations = []string{"deployment.kubernetes.io/revision", "pv.kubernetes.io/bind-completed",
	"pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node"}

// RemoveClusterFields removes what differs between clusters although the same was applied: what each cluster chooses,
// and the status.
func RemoveClusterFields(tree Object) {
	RemoveCopies(tree)
	delete(tree, "status")
	kind, _ := tree["kind"].(string)
	for _, field := range clusterFields {
		if field.kind != "" && field.kind != kind {
			continue
		}
		parent := tree
		if field.parent != "" {
			parent, _ = tree[field.parent].(map[string]any)
		}
		delete(parent, field.name)
	}
	metadata, _ := tree["metadata"].(map[string]any)
	for _, name := range clusterAnnotations {
		removeMember(metadata, "annotations", name)
	}
	if kind == "Service" {
		spec, _ := tree["spec"].(map[string]any)
		ports, _ := spec["ports"].([]any)
		for _, port := range ports {
			entry, _ := port.(map[string]any)
			delete(entry, "nodePort")
		}
	}
}

// The values that stand for the data of a Secret.
const (
	masked       = "***"
	maskedBefore = "*** (before)"
	maskedAfter  = "*** (after)"
)

// MaskSecret adds the keys of a Secret's data to how it is and how it would be, with values that show only whether they
// differ. Nil means that it does not exist.
func MaskSecret(live, merged Object, preview vedette.SecretPreview) {
	before, after := Object{}, Object{}
	for _, key := range slices.Sorted(maps.Keys(preview.Keys)) {
		switch preview.Keys[key] {
		case vedette.DataAdded:
			after[key] = masked
		case vedette.DataRemoved:
			before[key] = masked
		case vedette.DataChanged:
			before[key], after[key] = maskedBefore, maskedAfter
		case vedette.DataUnchanged:
			before[key], after[key] = masked, masked
		}
	}
	if live != nil && len(before) > 0 {
		live["data"] = before
	}
	if merged != nil && len(after) > 0 {
		merged["data"] = after
	}
}
