//go:build linux

package operate_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/redact"
)

// printed returns an object as `vedette get -o yaml` prints it: as the agent reads it, with the account.
func (b *testbed) printed(kind, name string) object {
	b.Helper()
	o := decode(b, b.mustExecute(vedette.GetArgs{Target: b.target(kind, name)}).Objects[0])
	meta := o["metadata"].(object)
	annotations, _ := meta["annotations"].(object)
	if annotations == nil {
		annotations = object{}
		meta["annotations"] = annotations
	}
	annotations[vedette.AccountAnnotation] = "dev"
	return o
}

// TestReadObjectsAreAppliedAgain applies what was read: nothing changes, neither the data of a Secret nor
// what kubectl wrote.
func TestReadObjectsAreAppliedAgain(t *testing.T) {
	redactor, err := redact.New(redact.Config{ConfigMapKeys: []string{"token"}}, nil, vedette.HeaderAnnotations)
	must(t, err)
	b := newTestbed(t, operate.Config{Requests: request.Config{Redactor: redactor}})
	secret := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "data": object{"key": "dmFsdWU="}}
	b.kubectlApply([]object{configMap("c", object{"sky": "blue"}), configMap("hidden", object{"token": "words"}), serviceManifest("web")})
	b.apply(vedette.StrategyDefault, secret)
	b.apply(vedette.StrategyDefault, configMap("ours", object{"sky": "blue"}))
	for _, tt := range []struct{ kind, plural, name string }{
		{"configmap", "configmaps", "c"}, {"configmap", "configmaps", "ours"}, {"configmap", "configmaps", "hidden"}, {"service", "services", "web"},
		{"secret", "secrets", "s"},
	} {
		before := b.live(core, tt.plural, tt.name)
		out := b.mustExecute(vedette.ApplyArgs{Manifest: encode(t, b.printed(tt.kind, tt.name)), Namespace: b.namespace})
		if !out.Unchanged {
			t.Errorf("%s %s: got %+v, want it unchanged", tt.kind, tt.name, out)
		}
		if got, want := encode(t, b.live(core, tt.plural, tt.name)), encode(t, before); string(got) != string(want) {
			t.Errorf("%s %s: got %s\nwant %s", tt.kind, tt.name, got, want)
		}
	}
	changed := b.printed("secret", "s")
	changed["metadata"].(object)["labels"] = object{"a": "b"}
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, changed), Namespace: b.namespace}, 400, "was read without its data")
	for _, strategy := range []vedette.Strategy{vedette.StrategyServerSide, vedette.StrategyReplace, vedette.StrategyRecreate} {
		b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, b.printed("secret", "s")), Namespace: b.namespace, Strategy: strategy}, 400, "was read without its data")
	}
	if got := dig(b.live(core, "secrets", "s"), "data", "key"); got != "dmFsdWU=" {
		t.Errorf("got the data %v, want it kept", got)
	}
	hidden := b.printed("configmap", "hidden")
	hidden["metadata"].(object)["labels"] = object{"a": "b"}
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, hidden), Namespace: b.namespace}, 400, redact.Redacted)
}

// TestOutputAnnotationIsNotApplied applies manifests that carry the account, by every strategy and by merge patches.
func TestOutputAnnotationIsNotApplied(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	for _, strategy := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyServerSide, vedette.StrategyForceConflicts,
		vedette.StrategyReplace, vedette.StrategyRecreate, vedette.StrategyCreateOnly} {
		name := "a" + strings.ReplaceAll(string(strategy), "-", "")
		for range 2 {
			o := serviceManifest(name)
			o["metadata"].(object)["annotations"] = object{vedette.AccountAnnotation: "dev", "kept": "yes"}
			o["metadata"].(object)["labels"] = object{vedette.AccountAnnotation: "dev"}
			b.execute(vedette.ApplyArgs{Manifest: encode(t, o), Namespace: b.namespace, Strategy: strategy})
		}
		live := b.live(core, "services", name)
		if text := string(encode(t, live)); strings.Contains(text, vedette.AccountAnnotation) || dig(live, "metadata", "annotations", "kept") != "yes" {
			t.Errorf("%s: got %s", strategy, text)
		}
	}
	patch := func(patchType vedette.PatchType, text string) object {
		b.mustExecute(vedette.PatchArgs{Target: b.target("service", "a"), Type: patchType, Patch: []byte(text)})
		return b.live(core, "services", "a")
	}
	add := `{"metadata":{"annotations":{"vedette.io/account":"dev","more":"words"}}}`
	for _, patchType := range []vedette.PatchType{vedette.MergePatch, vedette.StrategicPatch} {
		live := patch(patchType, add)
		if text := string(encode(t, live)); strings.Contains(text, vedette.AccountAnnotation) || dig(live, "metadata", "annotations", "more") != "words" {
			t.Errorf("%s: got %s", patchType, text)
		}
	}
	b.kubectl("annotate", "service", "a", vedette.AccountAnnotation+"=dev") // as an earlier release did
	if text := string(encode(t, patch(vedette.MergePatch, `{"metadata":{"annotations":{"vedette.io/account":null}}}`))); strings.Contains(text, vedette.AccountAnnotation) {
		t.Errorf("got %s, want the annotation removed", text)
	}
}

// TestConflictsOfReadObjects applies an object that has changed since it was read, as kubectl treats it.
func TestConflictsOfReadObjects(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.apply(vedette.StrategyClientSide, serviceManifest("web"))
	old := b.printed("service", "web")
	b.kubectl("annotate", "service", "web", "other=words")
	old["metadata"].(object)["labels"] = object{"a": "b"}
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, old), Namespace: b.namespace}, 409, "modified")
}
