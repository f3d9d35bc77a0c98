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

// mostCause is how much of a patch an annotation takes.
const mostCause = 4 << 10

// cause words a patch as kubectl patch --record would. What is put into a Secret
// is left out.
func (t target) cause(a vedette.PatchArgs) string {
	namespace := ""
	if t.namespace != "" {
		namespace = " --namespace=" + t.namespace
	}
	body := "(not shown)"
	if !mask.IsSecretKind(t.kind) {
		var compact bytes.Buffer
		if json.Compact(&compact, a.Patch) == nil {
			body = cut(compact.String(), mostCause)
		}
	}
	return fmt.Sprintf("kubectl patch %s %s%s --record=true --type=%s --patch=%s", t.written, t.name, namespace, a.Type, body)
}

// record has a patch write its own cause, so that it takes no second request.
func (t target) record(m manifest.Manifest, a vedette.PatchArgs) []byte {
	return m.Annotated(vedette.ChangeCauseAnnotation, t.cause(a)).JSON()
}

// recordSteps writes the cause of a JSON patch, which can't say "add an annotation"
// of an object that may have none. The patch took effect by then, so that a
// failure is told and no more.
func (t *turn) recordSteps(ctx context.Context, target target, a vedette.PatchArgs) {
	a.Patch, a.Type = target.record(manifest.Manifest{}, a), vedette.MergePatch
	_, err := t.change(ctx, act{object: resource(a.Target), failed: "The change's cause was not recorded: ", args: a, within: t.tasks.cfg.Timeout})
	if err != nil {
		t.say("%s", err)
	}
}
