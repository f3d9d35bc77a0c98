package operate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestMisspeltFieldsAreRefused applies manifests with a field that no API server
// knows, new ones and to what is there, and holds the words against kubectl's.
func TestMisspeltFieldsAreRefused(t *testing.T) {
	b := newBench(t, operate.Config{})
	good := whole("d", "1")
	bad := whole("d", "2")
	bad["spec"].(object)["replica"] = 2
	file := filepath.Join(t.TempDir(), "d.json")
	must(t, os.WriteFile(file, encode(t, bad), 0o600))
	_, err := plane.Kubectl(t.Context(), "-n", b.namespace, "apply", "-f", file)
	words := `unknown field "spec.replica"`
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Fatalf("kubectl says %v", err)
	}
	refused := func(s vedette.Strategy, status int, words string) {
		t.Helper()
		b.fails(vedette.ApplyArgs{Manifest: encode(t, bad), Namespace: b.namespace, Strategy: s}, status, words)
	}
	for _, s := range []vedette.Strategy{vedette.ByMode, vedette.ClientSide, vedette.ReplaceObject, vedette.Recreate, vedette.CreateOnly} {
		refused(s, 400, words)
	}
	b.apply(vedette.ByMode, good)
	refused(vedette.ClientSide, 422, words) // of a patch it is told so
	refused(vedette.ReplaceObject, 400, words)
	if image := dig(b.live(apps, "deployments", "d"), "spec", "template", "spec", "containers").([]any)[0].(object)["image"]; image != "example.com/main:1" {
		t.Errorf("what was refused has run: the image is %v", image)
	}
	before := dig(b.live(apps, "deployments", "d"), "metadata", "uid")
	refused(vedette.Recreate, 400, words)
	if after := dig(b.live(apps, "deployments", "d"), "metadata", "uid"); after != before {
		t.Error("what was to be recreated is gone, and nothing took its place")
	}
	for _, s := range []vedette.Strategy{vedette.ServerSide, vedette.ServerForce} { // which never take them
		refused(s, 500, ".spec.replica: field not declared in schema")
	}
}

func TestMisspeltFieldsAreIgnored(t *testing.T) {
	b := newBench(t, operate.Config{})
	d := whole("d", "1")
	d["spec"].(object)["replica"] = 2
	for _, s := range []vedette.Strategy{vedette.CreateOnly, vedette.ClientSide, vedette.ReplaceObject, vedette.Recreate} {
		b.done(vedette.ApplyArgs{Manifest: encode(t, d), Namespace: b.namespace, Strategy: s, Fields: vedette.IgnoreFields})
		if dig(b.live(apps, "deployments", "d"), "spec", "replica") != nil {
			t.Error("a field that nobody knows is there")
		}
	}
	b.fails(vedette.ApplyArgs{Manifest: encode(t, d), Namespace: b.namespace, Fields: "warn"}, 400, `no field validation "warn"`)
	if _, err := operate.New(nil, operate.Config{Fields: "warn"}); err == nil {
		t.Error("a word that means nothing was taken")
	}
}

func TestMisspeltFieldsAsConfigured(t *testing.T) {
	b := newBench(t, operate.Config{Fields: vedette.IgnoreFields})
	d := whole("d", "1")
	d["spec"].(object)["replica"] = 2
	b.fails(vedette.ApplyArgs{Manifest: encode(t, d), Namespace: b.namespace, Fields: vedette.StrictFields}, 400, `unknown field "spec.replica"`)
	b.apply(vedette.ClientSide, d)
}
