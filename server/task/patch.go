package task

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/views"
)

// patch changes one object by a patch: patchManifest.
type patch struct {
	common
	targeted
	PatchBody         json.RawMessage      `json:"patchBody"` // an object; a list where the strategy is json
	RequiredArtifacts []*manifest.Artifact `json:"requiredArtifacts"`
	AllArtifacts      []*manifest.Artifact `json:"allArtifacts"`
	Options           struct {
		MergeStrategy text `json:"mergeStrategy"`
		Record        text `json:"record"` // "true": note the patch in the object's change-cause
	} `json:"options"`
}

func (d *patch) check(v *validation) {
	body := bytes.TrimSpace(d.PatchBody)
	strategy := strings.ToLower(string(d.Options.MergeStrategy))
	switch {
	case len(body) == 0 || string(body) == "null":
		v.reject("patchBody", "empty")
	case strategy == "":
		v.reject("options.mergeStrategy", "empty")
	case strategy != "strategic" && strategy != "merge" && strategy != "json":
		v.err = vedette.Errorf(vedette.Invalid, "options.mergeStrategy of the description is none of strategic, merge and json")
	case body[0] != '{' && strategy != "json":
		v.err = vedette.Errorf(vedette.Invalid, "patchBody of the description is no object, which a patch of the strategy %s is", strategy)
	case body[0] != '[' && body[0] != '{':
		v.err = vedette.Errorf(vedette.Invalid, "patchBody of the description is no list of steps, which a patch of the strategy json is")
	default:
		v.target(d.target())
	}
}

func (d *patch) run(ctx context.Context, t *turn) (*Result, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	t.say("Beginning patching of manifest in account %s...", t.account())
	t.say("Finding patch handler for %s...", target)
	result := newResult()
	args := vedette.PatchArgs{Target: target.args(), Type: vedette.PatchType(strings.ToLower(string(d.Options.MergeStrategy)))}
	if args.Type == vedette.JSONPatch {
		args.Patch = steps(d.PatchBody)
	} else {
		t.say("Swapping out artifacts in %s from context...", target)
		m, err := d.bind(t, target, result)
		if err != nil {
			return nil, err
		}
		args.Patch = m.JSON()
		if d.records() {
			args.Patch = target.record(m, args)
		}
	}
	t.say("Submitting manifest %s to Kubernetes master...", target)
	out, err := t.change(ctx, act{object: resource(args.Target), failed: fmt.Sprintf("Patch failed for: %s in namespace: %s: ", target.name, target.namespace),
		args: args, within: t.tasks.cfg.Timeout})
	if err != nil && !strings.Contains(words(out), "not patched") { // which is that nothing was to be changed
		return nil, err
	}
	if d.records() && args.Type == vedette.JSONPatch {
		t.recordSteps(ctx, target, args)
	}
	result.add(target.mention())
	t.say("Patch manifest operation completed successfully")
	return result, nil
}

func (d *patch) records() bool { return strings.EqualFold(string(d.Options.Record), "true") }

// steps returns a JSON patch; a single step is a list of one.
func steps(body json.RawMessage) []byte {
	if body = bytes.TrimSpace(body); body[0] == '{' {
		body = append(append([]byte{'['}, body...), ']')
	}
	return body
}

// bind replaces artifacts in the patch.
func (d *patch) bind(t *turn, target target, result *Result) (manifest.Manifest, error) {
	var m manifest.Manifest
	if err := m.UnmarshalJSON(d.PatchBody); err != nil {
		return nil, err
	}
	kind := vedette.ParseKind(target.kind)
	if r, err := views.Find(nil, target.kind); err == nil {
		kind = r.Kind
	}
	bound := manifest.Bind(kind, m, manifest.Binding{Artifacts: given(d.AllArtifacts), Account: string(t.account()),
		Namespace: target.namespace, MatchNameOnly: t.tasks.cfg.Rules.MatchNameOnly})
	result.Bound = append(result.Bound, bound...)
	return m, manifest.Unbound(given(d.RequiredArtifacts), bound)
}

// given drops nulls.
func given(all []*manifest.Artifact) []manifest.Artifact {
	var kept []manifest.Artifact
	for _, a := range all {
		if a != nil {
			kept = append(kept, *a)
		}
	}
	return kept
}

// mention is all that Clouddriver tells of a patched object: which one it is.
func (t target) mention() manifest.Manifest {
	return manifest.Manifest{"kind": t.written, "metadata": map[string]any{"name": t.name, "namespace": t.namespace}}
}

// add tells of a manifest.
func (r *Result) add(m manifest.Manifest) {
	r.Manifests = append(r.Manifests, m)
	r.Names[m.Namespace()] = union(r.Names[m.Namespace()], []string{m.FullName()})
}
