package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// object is a JSON object. Whole numbers in it are int64.
type object = map[string]any

var secretKind = vedette.Kind{Name: "Secret"}

// LastApplied is the annotation in which a client-side apply stores the manifest.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// AnnotatedManifest is a manifest with itself as its last-applied annotation.
type AnnotatedManifest struct {
	raw         []byte
	lastApplied string // the annotation
}

// Annotate writes the annotation byte for byte as kubectl does. It removes managedFields from the
// manifest, and otherwise leaves it unchanged.
func Annotate(m manifest.Manifest) AnnotatedManifest {
	meta := m.Meta()
	annotations, _ := meta["annotations"].(object)
	if annotations == nil {
		annotations = object{}
		meta["annotations"] = annotations
	}
	delete(annotations, LastApplied)
	for name, value := range annotations {
		if value == nil {
			annotations[name] = "" // kubectl decodes annotations, but nothing else, into strings
		}
	}
	delete(meta, "managedFields")
	annotation := string(append(m.Encode(), '\n'))
	annotations[LastApplied] = annotation
	raw := m.Encode()
	delete(annotations, LastApplied)
	return AnnotatedManifest{raw, annotation}
}

// ObjectToCreate returns the object to create from m, the manifest that was annotated. It has no
// nulls: in a patch a null removes a value, and a new object has none to remove. The annotation
// keeps the nulls, because it is the manifest as it was applied.
func (a AnnotatedManifest) ObjectToCreate(m manifest.Manifest) map[string]any {
	tree := manifest.WithoutNulls(m.Object)
	tree["metadata"].(object)["annotations"].(object)[LastApplied] = a.lastApplied // Annotate ensures that it has annotations
	return tree
}

// ThreeWayMerge is the input of a client-side apply to an object that exists.
type ThreeWayMerge struct {
	Key         vedette.Key
	Desired     AnnotatedManifest
	Live        []byte // the object in the cluster; of a Secret only the metadata
	LastApplied string // the annotation of the live object; empty for none
	// Manager is the manager of server-side applies, whose fields an apply without LastApplied
	// removes if the manifest no longer has them.
	Manager string
	// Rules are the merge rules of the kind, nil for one without a strategic merge patch.
	Rules strategicpatch.LookupPatchMeta
}

// Patch returns the patch that makes the live object what the manifest says: a strategic merge
// patch if the kind accepts it, otherwise a JSON merge patch. It is {} if nothing changes.
func (t ThreeWayMerge) Patch() ([]byte, types.PatchType, error) {
	if t.Rules != nil && t.LastApplied == t.Desired.lastApplied {
		// The manifest dropped nothing, and the original is needed only for what it dropped.
		patch, err := strategicpatch.CreateThreeWayMergePatch(nil, t.Desired.raw, t.Live, t.Rules, true)
		return patch, types.StrategicMergePatchType, t.wrapError(err)
	}
	original, modified, err := t.inputs()
	if err != nil {
		return nil, "", err
	}
	if t.Rules != nil {
		patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, t.Live, t.Rules, true)
		return patch, types.StrategicMergePatchType, t.wrapError(err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, t.Live,
		mergepatch.RequireKeyUnchanged("apiVersion"), mergepatch.RequireKeyUnchanged("kind"), mergepatch.RequireMetadataKeyUnchanged("name"))
	return patch, types.MergePatchType, t.wrapError(err)
}

// wrapError returns why a merge is impossible. It does not repeat err, because the merge packages
// quote values, which may be secret.
func (t ThreeWayMerge) wrapError(err error) error {
	switch {
	case err == nil:
		return nil
	case mergepatch.IsPreconditionFailed(err):
		return vedette.Errorf(vedette.Invalid, "the manifest of %s changes apiVersion, kind or name of what was applied last", t.Key)
	}
	if _, key, found := strings.Cut(err.Error(), "does not contain declared merge key: "); found {
		return vedette.Errorf(vedette.Invalid, "an element of a list in the manifest of %s, or in the live object, lacks its key %q", t.Key, key)
	}
	return vedette.Errorf(vedette.Invalid,
		"values in the manifest of %s have other types than in the live object or in what was applied last: correct the manifest, replace the object, or apply it server-side", t.Key)
}
