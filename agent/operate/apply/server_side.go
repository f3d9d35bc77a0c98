package apply

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/vedette-io/vedette"
)

// The field managers of kubectl. API servers have two special cases for KubectlManager: they keep
// the last-applied annotation in step with it, and it does not conflict with the fields that the
// annotation names.
const (
	KubectlManager     = "kubectl"
	ClientSideManager  = "kubectl-client-side-apply"
	LastAppliedManager = "kubectl-last-applied"
)

// ClientSideManagers returns the managers that own the last-applied annotation, which are those of
// client-side applies.
func ClientSideManagers(meta *metav1.PartialObjectMetadata) sets.Set[string] {
	names := sets.New[string]()
	for _, entry := range csaupgrade.FindFieldsOwners(meta.ManagedFields, metav1.ManagedFieldsOperationUpdate, lastAppliedPath()) {
		names.Insert(entry.Manager)
	}
	return names
}

// TakeOverPatch returns the JSON patch that moves the fields of owners to the server-side applies
// of manager, nil if there is nothing to move.
func TakeOverPatch(meta *metav1.PartialObjectMetadata, owners sets.Set[string], manager string) ([]byte, error) {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(meta, owners, manager)
	if err != nil {
		return nil, fmt.Errorf("move the managed fields to %s: %w", manager, err)
	}
	return patch, nil
}

// SoleManagerPatch returns the JSON patch that makes manager the only manager, nil if it is. What
// is owned through a subresource stays, for example the status, and the replicas that an
// autoscaler sets.
func SoleManagerPatch(meta *metav1.PartialObjectMetadata, manager string) ([]byte, error) {
	names := sets.New[string]()
	renamed := meta.DeepCopy()
	for i, entry := range renamed.ManagedFields {
		isOurs := entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply
		if entry.Subresource != "" || isOurs {
			continue
		}
		// Each entry gets its own name, because csaupgrade moves one entry per name.
		name := fmt.Sprintf("%s/%d", entry.Manager, i)
		renamed.ManagedFields[i].Manager, renamed.ManagedFields[i].Operation = name, metav1.ManagedFieldsOperationUpdate
		names.Insert(name)
	}
	if names.Len() == 0 {
		return nil, nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(renamed, names, manager)
	if err != nil {
		return nil, fmt.Errorf("make %s the only manager: %w", manager, err)
	}
	return patch, nil
}

// LastAppliedManifest returns the manifest with which LastAppliedManager applies the last-applied
// annotation, nil if that is not needed. Without a manager of its own the annotation would vanish
// when its managers are taken over, and a later client-side apply would miss it. The annotation of
// a Secret may vanish, because it is a copy of its data.
func LastAppliedManifest(meta *metav1.PartialObjectMetadata, key vedette.Key, apiVersion, manager string) ([]byte, error) {
	value, exists := meta.Annotations[LastApplied]
	owners := csaupgrade.FindFieldsOwners(meta.ManagedFields, metav1.ManagedFieldsOperationApply, lastAppliedPath())
	if !exists || len(owners) > 0 || manager != KubectlManager || key.Kind == secretKind {
		return nil, nil
	}
	inner := object{"name": key.Name, "annotations": object{LastApplied: value}}
	if key.Namespace != "" {
		inner["namespace"] = key.Namespace
	}
	return json.Marshal(object{"apiVersion": apiVersion, "kind": key.Kind.Name, "metadata": inner})
}

func lastAppliedPath() *fieldpath.Set {
	return fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", LastApplied))
}
