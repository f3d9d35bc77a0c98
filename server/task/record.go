package task

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/manifest"
)

// maxCauseBytes bounds the patch in an annotation.
const maxCauseBytes = 4 << 10

// changeCause returns the change-cause of a patch, as kubectl patch --record formats it.
// Patches of Secrets are left out.
func (t objectRef) changeCause(a vedette.PatchArgs) string {
	namespace := ""
	if t.namespace != "" {
		namespace = " --namespace=" + t.namespace
	}
	body := "(not shown)"
	if !mask.IsSecretKind(t.kind) {
		var compact bytes.Buffer
		if json.Compact(&compact, a.Patch) == nil {
			body = textcheck.Truncate(compact.String(), maxCauseBytes)
		}
	}
	return fmt.Sprintf("kubectl patch %s %s%s --record=true --type=%s --patch=%s", t.displayKind, t.name, namespace, a.Type, body)
}

// withChangeCause adds the change-cause to a patch, which saves a second request.
func (t objectRef) withChangeCause(m manifest.Manifest, a vedette.PatchArgs) []byte {
	return m.WithAnnotation(vedette.ChangeCauseAnnotation, t.changeCause(a)).JSON()
}

// recordJSONPatchCause records the change-cause of a JSON patch with a second request, because
// a JSON patch cannot add an annotation to an object without annotations. An error is only
// reported, because the patch took effect already.
func (t *opContext) recordJSONPatchCause(ctx context.Context, target objectRef, a vedette.PatchArgs) {
	a.Patch, a.Type = target.withChangeCause(manifest.Manifest{}, a), vedette.MergePatch
	_, err := t.change(ctx, clusterChange{object: kubectlName(a.Target), failurePrefix: "Cannot record the change-cause: ", args: a,
		timeout: t.tasks.cfg.Timeout})
	if err != nil {
		t.reportf("%s", err)
	}
}
