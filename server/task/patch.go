package task

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/tables"
)

// patchOp patches one object: patchManifest.
type patchOp struct {
	commonFields
	targetFields
	PatchBody         json.RawMessage      `json:"patchBody"` // an object, or a list for the strategy json
	RequiredArtifacts []*manifest.Artifact `json:"requiredArtifacts"`
	AllArtifacts      []*manifest.Artifact `json:"allArtifacts"`
	ManifestArtifact  *manifest.Artifact   `json:"manifestArtifact"` // Orca has replaced it by patchBody; only its form is checked
	Options           struct {
		MergeStrategy lenientString         `json:"mergeStrategy"`
		Record        manifest.OptionalBool `json:"record"` // records the patch in the annotation change-cause
	} `json:"options"`
}

func (d *patchOp) check(v *validation) {
	body := bytes.TrimSpace(d.PatchBody)
	strategy := d.strategy()
	switch {
	case len(body) == 0 || string(body) == "null":
		v.reject("patchBody", "empty")
	case strategy == "":
		v.reject("options.mergeStrategy", "empty")
	case strategy != "strategic" && strategy != "merge" && strategy != "json":
		v.err = vedette.Errorf(vedette.Invalid, "options.mergeStrategy of the description must be strategic, merge or json, in lower case")
	case body[0] != '{' && strategy != "json":
		v.err = vedette.Errorf(vedette.Invalid, "patchBody of the description must be an object for the strategy %s", strategy)
	case body[0] != '[' && body[0] != '{':
		v.err = vedette.Errorf(vedette.Invalid, "patchBody of the description must be a list of operations for the strategy json")
	default:
		v.checkTarget(d.target())
	}
}

func (d *patchOp) strategy() vedette.PatchType {
	return vedette.PatchType(strings.TrimSpace(string(d.Options.MergeStrategy)))
}

func (d *patchOp) run(ctx context.Context, t *opContext) (*Result, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	t.reportf("Beginning patching of manifest in account %s...", t.account())
	t.reportf("Finding patch handler for %s...", target)
	result := newResult()
	args := vedette.PatchArgs{Target: target.args(), Type: d.strategy()}
	if args.Type == vedette.JSONPatch {
		args.Patch = patchSteps(d.PatchBody)
	} else {
		t.reportf("Swapping out artifacts in %s from context...", target)
		m, err := d.bindArtifacts(t, target, result)
		if err != nil {
			return nil, err
		}
		args.Patch = m.JSON()
		if d.shouldRecord() {
			args.Patch = target.withChangeCause(m, args)
		}
	}
	t.reportf("Submitting manifest %s to Kubernetes master...", target)
	out, err := t.change(ctx, clusterChange{object: kubectlName(args.Target),
		failurePrefix: fmt.Sprintf("Patch failed for: %s in namespace: %s: ", target.name, target.namespace),
		args:          args, timeout: t.tasks.cfg.Timeout})
	if err != nil && !strings.Contains(outcomeMessage(out), "not patched") { // "not patched" means that nothing changed
		return nil, err
	}
	if d.shouldRecord() && args.Type == vedette.JSONPatch {
		t.recordJSONPatchCause(ctx, target, args)
	}
	result.addManifest(target.reference())
	t.reportf("Patch manifest operation completed successfully")
	return result, nil
}

func (d *patchOp) shouldRecord() bool { return d.Options.Record.OrDefault(false) }

// patchSteps returns a JSON patch. A single operation becomes a list.
func patchSteps(body json.RawMessage) []byte {
	body = bytes.TrimSpace(body)
	if body[0] == '{' {
		body = append(append([]byte{'['}, body...), ']')
	}
	return body
}

func (d *patchOp) bindArtifacts(t *opContext, target objectRef, result *Result) (manifest.Manifest, error) {
	var m manifest.Manifest
	if err := m.UnmarshalJSON(d.PatchBody); err != nil {
		return nil, err
	}
	kind := vedette.ParseKind(target.kind)
	if r, err := tables.FindResource(nil, target.kind); err == nil {
		kind = r.Kind
	}
	bound := manifest.Bind(kind, m, manifest.Binding{Artifacts: nonNilArtifacts(d.AllArtifacts), Account: string(t.account()),
		Namespace: target.namespace, MatchNameOnly: t.tasks.cfg.Rules.MatchNameOnly})
	result.Bound = append(result.Bound, bound...)
	return m, manifest.CheckBound(nonNilArtifacts(d.RequiredArtifacts), bound)
}

func nonNilArtifacts(all []*manifest.Artifact) []manifest.Artifact {
	var artifacts []manifest.Artifact
	for _, a := range all {
		if a != nil {
			artifacts = append(artifacts, *a)
		}
	}
	return artifacts
}

// reference returns a manifest with only the identity of an object, because Clouddriver
// returns no more for a patched object.
func (t objectRef) reference() manifest.Manifest {
	return manifest.Manifest{"kind": t.displayKind, "metadata": map[string]any{"name": t.name, "namespace": t.namespace}}
}

func (r *Result) addManifest(m manifest.Manifest) {
	r.Manifests = append(r.Manifests, m)
	r.Names[m.Namespace()] = union(r.Names[m.Namespace()], []string{m.FullName()})
}
