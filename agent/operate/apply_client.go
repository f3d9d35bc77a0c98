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
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// applyClientSide merges a manifest with what was applied last and with what is
// there, as kubectl apply does.
func (r *run) applyClientSide(ctx context.Context, p resourcePath, m manifest.Manifest) result {
	desired := withLastApplied(m)
	var res result
	err := r.retryOnConflict(ctx, func() error {
		current, err := r.getLive(ctx, p)
		if err != nil {
			return err
		}
		if current == nil {
			res = r.createObject(ctx, p, desired.objectToCreate(m), clientSideManager, false)
		} else {
			res = r.patchExisting(ctx, p, current, desired)
		}
		return asConflict(current != nil, res.err)
	})
	if err != nil {
		return errorResult(err)
	}
	return res
}

// asConflict makes a conflict of it when what was not there when it was read is there
// when it is created: by another, or by us with an answer that was lost.
func asConflict(existed bool, err error) error {
	r := asStatusError(err)
	if existed || r == nil || r.Reason != "AlreadyExists" {
		return err
	}
	return &statusError{Status: r.Status, Reason: "Conflict", Message: r.Message}
}

// annotatedManifest is a manifest with itself as its last-applied annotation.
type annotatedManifest struct {
	raw         []byte
	lastApplied string // the annotation
}

// withLastApplied writes the annotation byte for byte as kubectl does. The manifest itself
// stays as it was.
func withLastApplied(m manifest.Manifest) annotatedManifest {
	meta := m.Meta()
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
	annotation := string(append(m.Encode(), '\n'))
	annotations[lastApplied] = annotation
	raw := m.Encode()
	delete(annotations, lastApplied)
	return annotatedManifest{raw, annotation}
}

// objectToCreate is what creates the object. In a patch a null takes something away, so that
// a new object has nothing there; the annotation keeps the nulls, as what was applied.
func (a annotatedManifest) objectToCreate(m manifest.Manifest) object {
	tree := manifest.WithoutNulls(m.Object)
	tree["metadata"].(object)["annotations"].(object)[lastApplied] = a.lastApplied // which annotated saw to
	return tree
}

// patchExisting patches what is there.
func (r *run) patchExisting(ctx context.Context, p resourcePath, current *liveObject, desired annotatedManifest) result {
	patch, patchType, err := r.threeWayPatch(ctx, p, current, desired)
	if err != nil {
		return errorResult(err)
	}
	if string(patch) == "{}" {
		return r.objectResultSince(p, current.raw, http.StatusOK, current.version)
	}
	raw, status, err := r.do(ctx, p, request{method: http.MethodPatch, contentType: patchType, body: patch,
		query: url.Values{"fieldManager": {clientSideManager}}, isManifest: true})
	if err != nil {
		return errorResult(err)
	}
	return r.objectResultSince(p, raw, status, current.version)
}

// threeWayPatch computes the patch from what is there to what is wanted. Kinds with a
// strategic merge patch get one, custom kinds a JSON merge patch.
func (r *run) threeWayPatch(ctx context.Context, p resourcePath, current *liveObject, desired annotatedManifest) ([]byte, string, error) {
	rules, err := r.lookupPatchMeta(ctx, p.Resource)
	if err != nil {
		return nil, "", err
	}
	if rules != nil && current.lastApplied == desired.lastApplied { // nothing was dropped, which is all that the original is for
		patch, err := strategicpatch.CreateThreeWayMergePatch(nil, desired.raw, current.raw, rules, true)
		return patch, contentTypeStrategicPatch, mergeError(p, err)
	}
	original, modified, err := r.mergeInputs(p, current, desired)
	if err != nil {
		return nil, "", err
	}
	if rules != nil {
		patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current.raw, rules, true)
		return patch, contentTypeStrategicPatch, mergeError(p, err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current.raw,
		mergepatch.RequireKeyUnchanged("apiVersion"), mergepatch.RequireKeyUnchanged("kind"), mergepatch.RequireMetadataKeyUnchanged("name"))
	return patch, contentTypeMergePatch, mergeError(p, err)
}

// mergeError says why a merge can't be done. The merge's own words quote what they
// merge, which may be anything.
func mergeError(p resourcePath, err error) error {
	switch {
	case err == nil:
		return nil
	case mergepatch.IsPreconditionFailed(err):
		return vedette.Errorf(vedette.Invalid, "the manifest of %s changes apiVersion, kind or name of what was applied last", p.key())
	}
	if _, key, found := strings.Cut(err.Error(), "does not contain declared merge key: "); found {
		return vedette.Errorf(vedette.Invalid, "an element of a list in the manifest of %s, or in what is there, lacks its key %q", p.key(), key)
	}
	return vedette.Errorf(vedette.Invalid, "the manifest of %s has other types than what is there or was applied last: correct it, replace it or apply it server-side", p.key())
}
