package operate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestUnknownFieldsAreRejected applies manifests with an unknown field, to new and to existing objects,
// and compares the message with kubectl's.
func TestUnknownFieldsAreRejected(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	good := fullDeployment("d", "1")
	bad := fullDeployment("d", "2")
	bad["spec"].(object)["replica"] = 2
	file := filepath.Join(t.TempDir(), "d.json")
	must(t, os.WriteFile(file, encode(t, bad), 0o600))
	_, err := plane.Kubectl(t.Context(), "-n", b.namespace, "apply", "-f", file)
	words := `unknown field "spec.replica"`
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Fatalf("kubectl: got %v", err)
	}
	refused := func(s vedette.Strategy, status int, words string) {
		t.Helper()
		b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, bad), Namespace: b.namespace, Strategy: s}, status, words)
	}
	for _, s := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyReplace, vedette.StrategyRecreate, vedette.StrategyCreateOnly} {
		refused(s, 400, words)
	}
	b.apply(vedette.StrategyDefault, good)
	refused(vedette.StrategyClientSide, 422, words) // the API server answers 422 to a patch
	refused(vedette.StrategyReplace, 400, words)
	if image := dig(b.live(apps, "deployments", "d"), "spec", "template", "spec", "containers").([]any)[0].(object)["image"]; image != "example.com/main:1" {
		t.Errorf("rejected manifest was applied: got image %v", image)
	}
	before := dig(b.live(apps, "deployments", "d"), "metadata", "uid")
	refused(vedette.StrategyRecreate, 400, words)
	if after := dig(b.live(apps, "deployments", "d"), "metadata", "uid"); after != before {
		t.Error("recreate: the old object is gone and there is no new one")
	}
	for _, s := range []vedette.Strategy{vedette.StrategyServerSide, vedette.StrategyForceConflicts} { // they always reject unknown fields
		refused(s, 500, ".spec.replica: field not declared in schema")
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	d := fullDeployment("d", "1")
	d["spec"].(object)["replica"] = 2
	for _, s := range []vedette.Strategy{vedette.StrategyCreateOnly, vedette.StrategyClientSide, vedette.StrategyReplace, vedette.StrategyRecreate} {
		b.wantWarnings(b.mustExecute(vedette.ApplyArgs{Manifest: encode(t, d), Namespace: b.namespace, Strategy: s, Fields: vedette.FieldValidationIgnore}))
		if dig(b.live(apps, "deployments", "d"), "spec", "replica") != nil {
			t.Error("an unknown field was stored")
		}
	}
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, d), Namespace: b.namespace, Fields: "often"}, 400, `no field validation "often": write strict, warn or ignore`)
	if _, err := operate.New(nil, operate.Config{FieldValidation: "often"}); err == nil {
		t.Error("an unknown field validation is accepted")
	}
}

// TestUnknownFieldsCauseWarnings writes a manifest with two unknown fields by each strategy, to new and
// existing objects. The API server warns of both and drops them, but rejects them in a server-side
// apply, as with kubectl.
func TestUnknownFieldsCauseWarnings(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	withUnknownFields := func(replicas int) vedette.ApplyArgs {
		d := fullDeployment("d", fmt.Sprint("v", replicas))
		spec := d["spec"].(object)
		spec["replica"], spec["replicas"] = 2, replicas
		dig(spec, "template", "spec", "containers", 0).(object)["imagePull"] = "Never"
		return vedette.ApplyArgs{Manifest: encode(t, d), Namespace: b.namespace, Fields: vedette.FieldValidationWarn}
	}
	withStrategy := func(a vedette.ApplyArgs, s vedette.Strategy) vedette.ApplyArgs {
		a.Strategy = s
		return a
	}
	want := []string{`unknown field "spec.replica"`, `unknown field "spec.template.spec.containers[0].imagePull"`}
	d := b.target("deploy", "d")
	for i, s := range []vedette.Strategy{vedette.StrategyCreateOnly, vedette.StrategyClientSide, vedette.StrategyReplace, vedette.StrategyRecreate} {
		b.wantWarnings(b.mustExecute(withStrategy(withUnknownFields(i), s)), want...)
		b.wantWarnings(b.mustExecute(vedette.GetArgs{Target: d}))
		live := b.live(apps, "deployments", "d")
		if dig(live, "spec", "replica") != nil || dig(live, "spec", "replicas") != float64(i) {
			t.Errorf("%s: got %v", s, live["spec"])
		}
		b.wantWarnings(b.dryRun(withStrategy(withUnknownFields(5), vedette.StrategyReplace)), want...)
		b.wantWarnings(b.wantFailure(withStrategy(withUnknownFields(-1), s), 422, "spec.replicas: Invalid value: -1"), want...)
	}
	b.mustExecute(vedette.DeleteArgs{Target: d})
	for i, s := range []vedette.Strategy{vedette.StrategyClientSide, vedette.StrategyClientSide, vedette.StrategyReplace} {
		b.wantWarnings(b.mustExecute(withStrategy(withUnknownFields(min(i, 1)), s)), want...)
	}
	for _, s := range []vedette.Strategy{vedette.StrategyServerSide, vedette.StrategyForceConflicts} {
		b.wantWarnings(b.wantFailure(withStrategy(withUnknownFields(1), s), 500, ".spec.replica: field not declared in schema"))
	}
	b.op = b.newOperator(operate.Config{FieldValidation: vedette.FieldValidationWarn})
	a := withUnknownFields(1)
	a.Fields = vedette.FieldValidationDefault
	b.wantWarnings(b.mustExecute(withStrategy(a, vedette.StrategyClientSide)), want...)
	a.Fields = vedette.FieldValidationStrict
	b.wantWarnings(b.wantFailure(withStrategy(a, vedette.StrategyReplace), 400, want...))
}

func TestDefaultFieldValidation(t *testing.T) {
	b := newTestbed(t, operate.Config{FieldValidation: vedette.FieldValidationIgnore})
	d := fullDeployment("d", "1")
	d["spec"].(object)["replica"] = 2
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, d), Namespace: b.namespace, Fields: vedette.FieldValidationStrict}, 400, `unknown field "spec.replica"`)
	b.apply(vedette.StrategyClientSide, d)
}
