package operate

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/vedette-io/vedette"
)

// applyClientSide merges a manifest with what was applied last and with what is
// there, as kubectl apply does.
func (o *Operator) applyClientSide(ctx context.Context, p place, m manifest) result {
	w := annotated(m)
	var r result
	err := o.contend(ctx, func() error {
		at, err := o.live(ctx, p)
		if err != nil {
			return err
		}
		if at == nil {
			r = o.post(ctx, p, w.created(m), clientSideManager, false)
		} else {
			r = o.mergeInto(ctx, p, at, w)
		}
		return raced(at != nil, r.err)
	})
	if err != nil {
		return failed(err)
	}
	return r
}

// raced makes a conflict of it when what was not there when it was read is there
// when it is created: by another, or by us with an answer that was lost.
func raced(there bool, err error) error {
	r := refusalOf(err)
	if there || r == nil || r.Reason != "AlreadyExists" {
		return err
	}
	return &refusal{Status: r.Status, Reason: "Conflict", Message: r.Message}
}

// wanted is a manifest with itself as its last-applied annotation.
type wanted struct {
	raw     []byte
	applied string // the annotation
}

// annotated writes the annotation byte for byte as kubectl does. The manifest itself
// stays as it was.
func annotated(m manifest) wanted {
	meta := m.meta()
	annotations, _ := meta["annotations"].(object)
	if annotations == nil {
		annotations = object{}
		meta["annotations"] = annotations
	}
	delete(annotations, lastApplied)
	for name, value := range annotations {
		if value == nil {
			annotations[name] = "" // as kubectl reads it, unlike any other null
		}
	}
	delete(meta, "managedFields")
	applied := string(append(m.raw(), '\n'))
	annotations[lastApplied] = applied
	raw := m.raw()
	delete(annotations, lastApplied)
	return wanted{raw, applied}
}

// created is what creates the object. In a patch a null takes something away, so that
// a new object has nothing there; the annotation keeps the nulls, as what was applied.
func (w wanted) created(m manifest) object {
	tree := withoutNulls(m.object).(object)
	tree["metadata"].(object)["annotations"].(object)[lastApplied] = w.applied // which annotated saw to
	return tree
}

// mergeInto patches what is there.
func (o *Operator) mergeInto(ctx context.Context, p place, at *live, w wanted) result {
	patch, patchType, err := o.threeWay(ctx, p, at, w)
	if err != nil {
		return failed(err)
	}
	if string(patch) == "{}" {
		return o.toldSince(p, at.raw, http.StatusOK, at.version)
	}
	raw, status, err := o.do(ctx, p, call{method: http.MethodPatch, contentType: patchType, body: patch,
		query: url.Values{"fieldManager": {clientSideManager}}, manifest: true})
	if err != nil {
		return failed(err)
	}
	return o.toldSince(p, raw, status, at.version)
}

// threeWay computes the patch from what is there to what is wanted. Kinds with a
// strategic merge patch get one, custom kinds a JSON merge patch.
func (o *Operator) threeWay(ctx context.Context, p place, at *live, w wanted) ([]byte, string, error) {
	rules, err := o.patchMeta(ctx, p.Resource)
	if err != nil {
		return nil, "", err
	}
	if rules != nil && at.applied == w.applied { // nothing was dropped, which is all that the original is for
		patch, err := strategicpatch.CreateThreeWayMergePatch(nil, w.raw, at.raw, rules, true)
		return patch, typeStrategic, unmerged(p, err)
	}
	original, modified, err := o.sides(p, at, w)
	if err != nil {
		return nil, "", err
	}
	if rules != nil {
		patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, at.raw, rules, true)
		return patch, typeStrategic, unmerged(p, err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, at.raw,
		mergepatch.RequireKeyUnchanged("apiVersion"), mergepatch.RequireKeyUnchanged("kind"), mergepatch.RequireMetadataKeyUnchanged("name"))
	return patch, typeMerge, unmerged(p, err)
}

// unmerged says why a merge can't be done. The merge's own words quote what they
// merge, which may be anything.
func unmerged(p place, err error) error {
	switch {
	case err == nil:
		return nil
	case mergepatch.IsPreconditionFailed(err):
		return vedette.Errorf(vedette.Invalid, "the manifest of %s changes apiVersion, kind or name of what was applied last", p.key())
	}
	if _, key, is := strings.Cut(err.Error(), "does not contain declared merge key: "); is {
		return vedette.Errorf(vedette.Invalid, "an element of a list in the manifest of %s, or in what is there, lacks its key %q", p.key(), key)
	}
	return vedette.Errorf(vedette.Invalid, "the manifest of %s has other types than what is there or was applied last: correct it, replace it or apply it server-side", p.key())
}
