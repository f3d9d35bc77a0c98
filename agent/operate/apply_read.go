package operate

import (
	"context"
	"net/http"
	"reflect"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/redact"
)

// checkRead checks a manifest that was read from a cluster through an agent. Such a manifest lacks what redaction took,
// and an apply of it would remove or overwrite that.
func checkRead(p request.Path, m manifest.Manifest) error {
	switch {
	case !m.WasRead():
		return nil
	case p.IsSecret() && m.Object["data"] == nil && m.Object["stringData"] == nil && m.Object["type"] == nil:
		return vedette.Errorf(vedette.Invalid, "the manifest of %s was read without its data, which never leaves the cluster, so applying it would remove the data: "+
			"write data or stringData into the manifest, or patch the metadata", p.Key())
	case manifest.HasText(m.Object, redact.Redacted, redact.RedactedBinary):
		return vedette.Errorf(vedette.Invalid, "the manifest of %s has the text %s, which replaced a value when the object was read: write the value, or patch what you want to change",
			p.Key(), redact.Redacted)
	}
	return nil
}

// unchangedSinceRead returns the live object if the manifest is what an agent reads of it, and false otherwise. Then
// there is nothing to apply. Without this, the apply would still write the last-applied annotation, and remove what
// redaction took.
func (r *run) unchangedSinceRead(ctx context.Context, p request.Path, m manifest.Manifest) (result, bool) {
	version := manifest.NestedString(m.Meta(), "resourceVersion")
	if version == "" || manifest.NestedString(m.Meta(), "uid") == "" {
		return result{}, false
	}
	raw, _, err := r.Do(ctx, p, request.Request{})
	if err != nil { // the apply reports why
		return result{}, false
	}
	obj, err := r.Redact(p.Resource, raw)
	if err != nil || obj.ResourceVersion != version {
		return result{}, false
	}
	if err := r.UseMemory(ctx, request.DecodedSize(obj.Body, request.DecodedAsTree)); err != nil {
		return result{}, false
	}
	live, err := manifest.ParseObject(obj.Body, "object")
	if err != nil || !reflect.DeepEqual(appliedPart(live), appliedPart(m.Object)) {
		return result{}, false
	}
	return r.objectResultSince(p, raw, http.StatusOK, version), true
}

// appliedPart returns an object without what an apply does not take from a manifest. All but the metadata is shared.
func appliedPart(tree object) object {
	part := manifest.Manifest{Object: tree}.WithoutPreconditions().Object
	meta := part["metadata"].(object)
	delete(meta, "managedFields")
	annotations := object{}
	live, _ := meta["annotations"].(object)
	for name, value := range live {
		if name != apply.LastApplied && name != vedette.AccountAnnotation {
			annotations[name] = value
		}
	}
	delete(meta, "annotations")
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	return part
}
