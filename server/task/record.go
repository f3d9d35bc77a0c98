package task

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
	"github.com/vedette-io/vedette/server/manifest"
)

// maxCauseBytes is how much of a patch an annotation takes.
const maxCauseBytes = 4 << 10

// changeCause words a patch as kubectl patch --record would. What is put into a Secret
// is left out.
func (t objectRef) changeCause(a vedette.PatchArgs) string {
	namespace := ""
	if t.namespace != "" {
		namespace = " --namespace=" + t.namespace
	}
	body := "(not shown)"
	if !mask.IsSecretKind(t.kind) {
		var compact bytes.Buffer
		if json.Compact(&compact, a.Patch) == nil {
			body = truncate(compact.String(), maxCauseBytes)
		}
	}
	return fmt.Sprintf("kubectl patch %s %s%s --record=true --type=%s --patch=%s", t.displayKind, t.name, namespace, a.Type, body)
}

// withChangeCause has a patch write its own cause, so that it takes no second request.
func (t objectRef) withChangeCause(m manifest.Manifest, a vedette.PatchArgs) []byte {
	return m.WithAnnotation(vedette.ChangeCauseAnnotation, t.changeCause(a)).JSON()
}

// recordJSONPatchCause writes the cause of a JSON patch, which can't say "add an annotation"
// of an object that may have none. The patch took effect by then, so that a
// failure is told and no more.
func (t *opContext) recordJSONPatchCause(ctx context.Context, target objectRef, a vedette.PatchArgs) {
	a.Patch, a.Type = target.withChangeCause(manifest.Manifest{}, a), vedette.MergePatch
	_, err := t.change(ctx, clusterChange{object: kubectlName(a.Target), failurePrefix: "The change's cause was not recorded: ", args: a, timeout: t.tasks.cfg.Timeout})
	if err != nil {
		t.reportf("%s", err)
	}
}
