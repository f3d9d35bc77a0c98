//go:build linux

package operate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/redact"
)

// changeText returns a change as text: the kind of versions, and the paths of its steps.
func changeText(t *testing.T, c vedette.ObjectChange) string {
	t.Helper()
	var steps []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if len(c.Patch) > 0 {
		must(t, json.Unmarshal(c.Patch, &steps))
	}
	version := map[bool]string{true: "v", false: "-"}
	text := fmt.Sprintf("%s %s -> %s:", c.Key.Kind.Name, version[c.Before != ""], version[c.After != ""])
	for _, s := range steps {
		if s.Op == "test" || s.Path == "" || isOfControllers(s.Path) {
			continue
		}
		text += " " + s.Op + " " + s.Path
		if len(s.Value) < 30 && s.Value != nil {
			text += "=" + string(s.Value)
		}
	}
	return text
}

// isOfControllers reports whether the cluster's controllers may change meanwhile what is at a path of an object, or whether it differs in each
// new object.
func isOfControllers(path string) bool {
	return slices.ContainsFunc([]string{"/status", "/metadata/annotations", "/metadata/creationTimestamp", "/metadata/uid"},
		func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

// TestChangesAreRecorded checks what the history gets of each verb that changes something.
func TestChangesAreRecorded(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	web := workloadManifest("Deployment", "web", "1")
	newer := workloadManifest("Deployment", "web", "2")
	const image = "/spec/template/spec/containers/0/image"
	deployment := b.target("deployment", "web")
	for _, tt := range []struct {
		what, want string
		args       vedette.Args
	}{
		{"create", "Deployment - -> v:", vedette.ApplyArgs{Namespace: b.namespace, Manifest: encode(t, web), Strategy: vedette.StrategyClientSide}},
		{"client-side apply", `Deployment v -> v: replace ` + image + `="example.com/m:2"`,
			vedette.ApplyArgs{Namespace: b.namespace, Manifest: encode(t, newer), Strategy: vedette.StrategyClientSide}},
		{"apply that changes nothing", "", vedette.ApplyArgs{Namespace: b.namespace, Manifest: encode(t, newer), Strategy: vedette.StrategyClientSide}},
		{"server-side apply", `Deployment v -> v: replace ` + image + `="example.com/m:1"`,
			vedette.ApplyArgs{Namespace: b.namespace, Manifest: encode(t, web), Strategy: vedette.StrategyForceConflicts}},
		{"replace", `Deployment v -> v: replace ` + image + `="example.com/m:2"`, vedette.ApplyArgs{Namespace: b.namespace, Manifest: encode(t, newer), Strategy: vedette.StrategyReplace}},
		{"patch", `Deployment v -> v: add /metadata/labels={"a/b":"c"}`, vedette.PatchArgs{Target: deployment, Patch: []byte(`{"metadata":{"labels":{"a/b":"c"}}}`)}},
		{"JSON patch", `Deployment v -> v: remove /metadata/labels`,
			vedette.PatchArgs{Target: deployment, Type: vedette.JSONPatch, Patch: []byte(`[{"op":"remove","path":"/metadata/labels"}]`)}},
		{"scale", `Deployment v -> v: replace /spec/replicas=0`, vedette.ScaleArgs{Target: deployment, Replicas: 0}},
		{"pause", `Deployment v -> v: add /spec/paused=true`, vedette.PauseArgs{Target: deployment}},
		{"resume", `Deployment v -> v: remove /spec/paused`, vedette.ResumeArgs{Target: deployment}},
		{"another object", "ConfigMap - -> v:",
			vedette.ApplyArgs{Namespace: b.namespace, Manifest: encode(t, configMap("c", object{"a": "1"})), Strategy: vedette.StrategyServerSide}},
		{"recreate", `ConfigMap v -> v: replace /data/a="2"`,
			vedette.ApplyArgs{Namespace: b.namespace, Manifest: encode(t, configMap("c", object{"a": "2"})), Strategy: vedette.StrategyRecreate}},
		{"delete", "Deployment v -> -:", vedette.DeleteArgs{Target: deployment}},
		{"delete by labels", "ConfigMap v -> -:", vedette.DeleteArgs{Target: vedette.Target{Kind: "cm", Namespace: b.namespace}, FieldSelector: "metadata.name=c"}},
	} {
		if dry := b.dryRun(tt.args); len(dry.Changes) > 0 {
			t.Errorf("%s: a dry run has the changes %+v", tt.what, dry.Changes)
		}
		out := b.mustExecute(tt.args)
		got := ""
		for _, c := range out.Changes {
			if c.Note != "" {
				t.Errorf("%s: got the note %q", tt.what, c.Note)
			}
			got += changeText(t, c)
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.what, got, tt.want)
		}
	}
	if out := b.mustExecute(vedette.GetArgs{Target: b.target("namespace", b.namespace)}); len(out.Changes) > 0 {
		t.Errorf("a get has the changes %+v", out.Changes)
	}
}

// TestChangesDoNotLeak changes Secrets, embedded Secrets and redacted values, and looks for them in the record.
func TestChangesDoNotLeak(t *testing.T) {
	r, err := redact.New(redact.Config{ConfigMapKeys: []string{"*.key"}, Environment: []string{"*PASSWORD"}}, nil, nil)
	must(t, err)
	b := newTestbed(t, operate.Config{Requests: request.Config{Redactor: r}})
	for i, value := range []string{canaryInData, canaryInAnnotation} {
		workload := workloadManifest("Deployment", "d", "1")
		containers := dig(workload, "spec", "template", "spec", "containers").([]any)
		containers[0].(object)["env"] = []any{object{"name": "PASSWORD", "value": value}}
		for _, o := range []object{
			{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s", "labels": object{"n": fmt.Sprint(i)}}, "stringData": object{"k": value}},
			configMap("c", object{"tls.key": value, "n": fmt.Sprint(i)}), workload,
		} {
			for _, strategy := range []vedette.Strategy{vedette.StrategyServerSide, vedette.StrategyReplace} {
				out := b.apply(strategy, o)
				if out.State != vedette.Done {
					t.Fatalf("got %+v", out)
				}
				b.wantNoneOf(string(strategy), encode(t, out.Changes), canaryInData, canaryInAnnotation)
				if strategy == vedette.StrategyServerSide && len(out.Changes) != 1 {
					t.Errorf("%v: got the changes %+v, want one", dig(o, "kind"), out.Changes)
				}
			}
		}
	}
}

// TestChangesAreBounded changes much in one object, and many objects.
func TestChangesAreBounded(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	data := object{}
	for i := range 2000 {
		data[fmt.Sprintf("key-%04d", i)] = strings.Repeat("x", 100)
	}
	out := b.apply(vedette.StrategyServerSide, configMap("large", data))
	if len(out.Changes) != 1 || out.Changes[0].Patch != nil || !strings.Contains(out.Changes[0].Note, "cut: 1 of its 1 steps") {
		t.Errorf("a large object: got %.300s", encode(t, out.Changes))
	}
	for key := range data {
		data[key] = "changed"
	}
	out = b.apply(vedette.StrategyServerSide, configMap("large", data))
	var steps []json.RawMessage
	if len(out.Changes) != 1 || len(out.Changes[0].Patch) > vedette.MaxPatchBytes || json.Unmarshal(out.Changes[0].Patch, &steps) != nil || len(steps) < 50 ||
		!strings.Contains(out.Changes[0].Note, "of its 4000 steps are left out") {
		t.Errorf("a large change: got %d steps, note %q", len(steps), out.Changes[0].Note)
	}
}

// TestUndoTellsWhatItTakesBack checks the digests by which the server finds the operation that an undo takes back.
func TestUndoTellsWhatItTakesBack(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	first := b.apply(vedette.StrategyClientSide, workloadManifest("Deployment", "u", "1"))
	b.awaitRollout("Deployment", "u")
	second := b.apply(vedette.StrategyClientSide, workloadManifest("Deployment", "u", "2"))
	b.awaitRollout("Deployment", "u")
	b.mustExecute(vedette.ScaleArgs{Target: b.target("deployment", "u"), Replicas: 2})
	b.awaitRollout("Deployment", "u")
	undo := b.mustExecute(vedette.UndoArgs{Target: b.target("deployment", "u")})
	if len(undo.Changes) != 1 || undo.Changes[0].TemplateBefore == "" || undo.Changes[0].TemplateBefore != second.Changes[0].TemplateAfter ||
		undo.Changes[0].TemplateAfter != first.Changes[0].TemplateAfter || second.Changes[0].TemplateBefore != first.Changes[0].TemplateAfter {
		t.Errorf("got %+v after %+v and %+v", undo.Changes, first.Changes, second.Changes)
	}
}
