package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/vedette-io/vedette"
)

// The field managers of kubectl. API servers treat the first as a special case
// twice: it keeps the last-applied annotation in step, and is in no conflict
// with what that annotation says.
const (
	kubectlManager     = "kubectl"
	clientSideManager  = "kubectl-client-side-apply"
	lastAppliedManager = "kubectl-last-applied"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// applyServerSide lets the API server merge a manifest, and makes what earlier
// client-side applies wrote ours, so that it disappears with the manifest's
// fields.
func (o *Operator) applyServerSide(ctx context.Context, p place, m manifest, w way) result {
	delete(m.meta(), "managedFields") // copied from a live object; refused otherwise
	o.unpinMissing(ctx, p, m)
	o.mark(ctx, p, m)
	body, before := m.raw(), ""
	if w.compare {
		before = o.versionNow(ctx, p)
	}
	raw, status, err := o.patchApply(ctx, p, body, o.cfg.Manager, w.force)
	if err != nil {
		return failed(err)
	}
	if isDry(ctx) { // what follows builds on what is not there. kubectl asks for it, and is told nothing else
		return o.told(p, raw, status)
	}
	again, err := o.takeOverAndApply(ctx, p, raw, body, w)
	switch {
	case err != nil && w.clear: // which was asked for
		return failed(err)
	case err != nil:
		warn(ctx, err.Error())
	case again != nil:
		raw = again
	}
	return o.toldSince(p, raw, status, before)
}

// takeOverAndApply takes over the fields of earlier managers, and applies once more
// where there were any, so that those disappear that the manifest does not hold. It
// returns nil where there were none. What fails here fails after the apply itself.
func (o *Operator) takeOverAndApply(ctx context.Context, p place, applied, body []byte, w way) ([]byte, error) {
	moved, err := o.takeOver(ctx, p, applied, w)
	if err != nil {
		return nil, fmt.Errorf("%s was applied, but the fields of its earlier managers could not be taken over, so that fields that the manifest no longer has may still be there; the next apply tries again: %w", p.key(), err)
	}
	if !moved {
		return nil, nil
	}
	raw, _, err := o.patchApply(ctx, p, body, o.cfg.Manager, w.force || w.clear)
	if err != nil {
		return nil, fmt.Errorf("%s was applied and the fields of its earlier managers were taken over, but those that the manifest no longer has could not be removed; apply it again: %w", p.key(), err)
	}
	return raw, nil
}

// versionNow returns the version of an object, empty where it can't be read: what it
// is compared with is not known then, which is no failure.
func (o *Operator) versionNow(ctx context.Context, p place) string {
	raw, _, err := o.do(ctx, p, call{accept: orWhole(p, metadataOnly)})
	if err != nil {
		return ""
	}
	return versionOf(raw)
}

func (o *Operator) patchApply(ctx context.Context, p place, body []byte, manager string, force bool) ([]byte, int, error) {
	query := url.Values{"fieldManager": {manager}}
	if force {
		query.Set("force", "true")
	}
	var raw []byte
	var status int
	err := o.contend(ctx, func() (err error) {
		raw, status, err = o.do(ctx, p, call{method: http.MethodPatch, contentType: typeApply, query: query, body: body, manifest: true})
		return err
	})
	return raw, status, err
}

// contend repeats what ended in a conflict that reading again may cure.
func (o *Operator) contend(ctx context.Context, try func() error) error {
	pause := o.cfg.FirstRetry
	for n := 1; ; n++ {
		err := try()
		if !conflicting(err) || n >= o.cfg.Tries || !sleep(ctx, pause) {
			return err
		}
		pause = min(2*pause, o.cfg.MostRetry)
	}
}

// takeOver moves fields of client-side applies, or of all managers where that is
// asked for, to the manager of server-side applies. It reports whether anything
// was moved.
func (o *Operator) takeOver(ctx context.Context, p place, raw []byte, w way) (bool, error) {
	meta, err := metaOf(raw)
	if err != nil {
		return false, err
	}
	if w.clear {
		return o.move(ctx, p, meta, func(meta *metav1.PartialObjectMetadata) ([]byte, error) { return o.allMoved(meta) })
	}
	owners := clientSideOwners(meta)
	if owners.Len() == 0 {
		return false, nil
	}
	if meta, err = o.keepLastApplied(ctx, p, meta); err != nil {
		return false, err
	}
	return o.move(ctx, p, meta, func(meta *metav1.PartialObjectMetadata) ([]byte, error) {
		return csaupgrade.UpgradeManagedFieldsPatch(meta, owners, o.cfg.Manager)
	})
}

// move sends the patch that a function makes of managed fields, and makes it
// anew from what is there where another was faster.
func (o *Operator) move(ctx context.Context, p place, meta *metav1.PartialObjectMetadata, plan func(*metav1.PartialObjectMetadata) ([]byte, error)) (moved bool, err error) {
	err = o.contend(ctx, func() error {
		patch, err := plan(meta)
		if err != nil || patch == nil {
			return err
		}
		_, _, err = o.do(ctx, p, call{method: http.MethodPatch, contentType: typeJSONPatch, body: patch, accept: metadataOnly})
		moved = err == nil
		if !conflicting(err) {
			return err
		}
		raw, _, again := o.do(ctx, p, call{accept: metadataOnly})
		if again != nil {
			return again
		}
		if meta, again = metaOf(raw); again != nil {
			return again
		}
		return err
	})
	return moved, err
}

// conflicting reports whether another writer was faster. Conflicts of field
// managers are none of these.
func conflicting(err error) bool {
	r := refusalOf(err)
	return r != nil && r.Status == http.StatusConflict && r.Reason == string(metav1.StatusReasonConflict) && !r.fields()
}

// keepLastApplied gives the annotation of client-side applies a manager of its
// own, or it would vanish and a later client-side apply would miss it. A Secret's
// annotation may vanish: it is a copy of its data.
func (o *Operator) keepLastApplied(ctx context.Context, p place, meta *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	value, there := meta.Annotations[lastApplied]
	held := csaupgrade.FindFieldsOwners(meta.ManagedFields, metav1.ManagedFieldsOperationApply, lastAppliedPath())
	if !there || len(held) > 0 || o.cfg.Manager != kubectlManager || p.secret() {
		return meta, nil
	}
	inner := object{"name": p.name, "annotations": object{lastApplied: value}}
	if p.namespace != "" {
		inner["namespace"] = p.namespace
	}
	body, err := json.Marshal(object{"apiVersion": p.APIVersion(), "kind": p.Kind.Name, "metadata": inner})
	if err != nil {
		return nil, err
	}
	raw, _, err := o.patchApply(ctx, p, body, lastAppliedManager, false)
	if err != nil {
		return nil, err
	}
	return metaOf(raw)
}

// clientSideOwners are the managers that own the annotation of client-side
// applies.
func clientSideOwners(meta *metav1.PartialObjectMetadata) sets.Set[string] {
	names := sets.New[string]()
	for _, entry := range csaupgrade.FindFieldsOwners(meta.ManagedFields, metav1.ManagedFieldsOperationUpdate, lastAppliedPath()) {
		names.Insert(entry.Manager)
	}
	return names
}

func lastAppliedPath() *fieldpath.Set {
	return fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", lastApplied))
}

// allMoved plans to make our manager the only one. What is owned through a
// subresource, as status and an autoscaler's replicas are, stays as it is.
func (o *Operator) allMoved(meta *metav1.PartialObjectMetadata) ([]byte, error) {
	names := sets.New[string]()
	renamed := meta.DeepCopy()
	for i, entry := range renamed.ManagedFields {
		ours := entry.Manager == o.cfg.Manager && entry.Operation == metav1.ManagedFieldsOperationApply
		if entry.Subresource != "" || ours {
			continue
		}
		// A name of its own for each: csaupgrade takes one entry per name.
		name := fmt.Sprintf("%s/%d", entry.Manager, i)
		renamed.ManagedFields[i].Manager, renamed.ManagedFields[i].Operation = name, metav1.ManagedFieldsOperationUpdate
		names.Insert(name)
	}
	if names.Len() == 0 {
		return nil, nil
	}
	return csaupgrade.UpgradeManagedFieldsPatch(renamed, names, o.cfg.Manager)
}

// metaOf reads an object's metadata.
func metaOf(raw []byte) (*metav1.PartialObjectMetadata, error) {
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the metadata that the cluster sent makes no sense: %w", err)
	}
	return &meta, nil
}
