package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	hashLabel          = "pod-template-hash"
)

// revision is one entry of a workload's history.
type revision struct {
	number    int64
	tree      object // the ReplicaSet or ControllerRevision
	isCurrent bool   // its template is that of the workload
}

// history returns the revisions of a workload, oldest first.
func (r *run) history(ctx context.Context, t vedette.Target) result {
	p, tree, err := r.getWorkload(ctx, t, "history", "Deployment", "StatefulSet", "DaemonSet")
	if err != nil {
		return errorResult(err)
	}
	revisions, err := r.revisions(ctx, p, tree)
	if err != nil {
		return errorResult(err)
	}
	history := []vedette.Revision{}
	for _, rev := range revisions {
		entry := vedette.Revision{Number: rev.number, Current: rev.isCurrent, Name: manifest.NestedString(rev.tree, "metadata", "name")}
		if r.Redactor().KeepsAnnotation(vedette.ChangeCauseAnnotation) {
			entry.ChangeCause = manifest.NestedString(rev.tree, "metadata", "annotations", vedette.ChangeCauseAnnotation)
		}
		history = append(history, entry)
	}
	return jsonResult(history)
}

// jsonResult is the result of a verb that returns no object.
func jsonResult(v any) result {
	raw, err := json.Marshal(v)
	return result{Outcome: vedette.Outcome{Result: raw}, err: err}
}

// revisions returns the history of a workload, oldest first.
func (r *run) revisions(ctx context.Context, p request.Path, tree object) ([]revision, error) {
	revisionKind := "ControllerRevision"
	if p.Kind.Name == "Deployment" {
		revisionKind = "ReplicaSet"
	}
	list, err := r.ResolveTarget(ctx, vedette.Target{Kind: revisionKind, APIVersion: p.APIVersion(), Namespace: p.Namespace})
	if err != nil {
		return nil, err
	}
	labels, err := selectorOf(tree)
	if err != nil {
		return nil, err
	}
	uid := manifest.NestedString(tree, "metadata", "uid")
	var all request.Pages[revision]
	err = r.ForEachItem(ctx, list, list.ListRequest(labels, ""), all.Begin, func(_ int, raw []byte) error {
		size := request.DecodedSize(raw, request.DecodedAsTree)
		if err := r.UseMemory(ctx, size); err != nil {
			return err
		}
		item, err := manifest.ParseObject(raw, revisionKind)
		if err != nil {
			return request.Final(err)
		}
		if rev, ok := revisionOf(item, tree, revisionKind); ok && isControlledBy(item, uid) {
			all.Items = append(all.Items, rev)
		} else {
			r.ReleaseMemory(size)
		}
		return nil
	})
	slices.SortFunc(all.Items, func(a, b revision) int { return cmp.Compare(a.number, b.number) })
	return all.Items, err
}

// selectorOf returns a workload's selector as a query parameter.
func selectorOf(tree object) (string, error) {
	raw, err := json.Marshal(manifest.Nested(tree, "spec", "selector"))
	if err != nil {
		return "", err
	}
	var s metav1.LabelSelector
	if err := manifest.Decode(raw, &s); err != nil {
		return "", vedette.Errorf(vedette.Unavailable, "the workload's selector is invalid: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return "", vedette.Errorf(vedette.Unavailable, "the workload's selector is invalid: %w", err)
	}
	return selector.String(), nil
}

func isControlledBy(item object, uid string) bool {
	owners, _ := manifest.Nested(item, "metadata", "ownerReferences").([]any)
	return slices.ContainsFunc(owners, func(owner any) bool {
		return manifest.Nested(owner, "controller") == true && manifest.NestedString(owner, "uid") == uid
	})
}

// revisionOf returns the revision of a ReplicaSet, by its annotation, or of a ControllerRevision. It
// reports false if the item has no number.
func revisionOf(item, tree object, revisionKind string) (revision, bool) {
	if revisionKind == "ReplicaSet" {
		n, err := strconv.ParseInt(manifest.NestedString(item, "metadata", "annotations", revisionAnnotation), 10, 64)
		return revision{n, item, reflect.DeepEqual(templateOf(item), templateOf(tree))}, err == nil
	}
	n, ok := item["revision"].(int64)
	return revision{n, item, reflect.DeepEqual(manifest.Nested(item, "data"), rollbackPatch(tree))}, ok
}

// templateOf returns a copy of a workload's pod template without the label that the Deployment
// controller adds to that of a ReplicaSet.
func templateOf(tree object) object {
	template := manifest.Copy(manifest.Nested(tree, "spec", "template"))
	meta, _ := template["metadata"].(object)
	if labels, _ := manifest.Nested(meta, "labels").(object); labels != nil {
		delete(labels, hashLabel)
	}
	if meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	return template
}

// rollbackPatch returns the data of a ControllerRevision of the workload: a patch that restores its
// template.
func rollbackPatch(tree object) any {
	template := manifest.Copy(manifest.Nested(tree, "spec", "template"))
	template["$patch"] = "replace"
	return object{"spec": object{"template": template}}
}
