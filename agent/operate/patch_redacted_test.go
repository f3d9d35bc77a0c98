//go:build linux

package operate_test

import (
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/redact"
)

// TestJSONPatchCannotRevealRedactedValues sends JSON patches that copy, move or guess embedded Secrets
// and values that rules redact, and patches that do so with other values.
func TestJSONPatchCannotRevealRedactedValues(t *testing.T) {
	r, err := redact.New(redact.Config{ConfigMapKeys: []string{"*.key"}}, nil, nil)
	must(t, err)
	b := newTestbed(t, operate.Config{Redactor: r})
	b.createCustomKind("Work", "works")
	secret := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "data": object{"password": canaryInData}}
	must(t, plane.Create(t.Context(), b.path("/apis/"+b.customGroup()+"/v1", "works", ""), object{"apiVersion": b.customGroup() + "/v1", "kind": "Work",
		"metadata": object{"name": "w", "annotations": object{"some.tool/applied": `{"kind":"Secret","data":{"a":"` + canaryInLastApplied + `"}}`}},
		"spec":     object{"manifests": []any{object{"kind": "ConfigMap", "data": object{"colour": "blue"}}, secret}, "open": "yes", "one": secret}}))
	must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), configMap("c", object{"tls.key": canaryInAnnotation, "tls.crt": "open"})))
	for _, tt := range []struct {
		kind, name, patch string
		accepted          bool
	}{
		{"work", "w", `[{"op":"copy","from":"/spec/manifests/1/data/password","path":"/spec/open"}]`, false},
		{"work", "w", `[{"op":"copy","from":"x/spec/manifests/1/data/password","path":"/spec/open"}]`, false},
		{"work", "w", `[{"op":"copy","from":"/spec/manifests/1/data","path":"/spec/open"}]`, false},
		{"work", "w", `[{"op":"move","from":"/spec/one","path":"/spec/open"},{"op":"replace","path":"/spec/open/kind","value":"X"}]`, false},
		{"work", "w", `[{"op":"remove","path":"/spec/manifests/0"},{"op":"copy","from":"/spec/manifests/0/data/password","path":"/spec/open"}]`, false},
		{"work", "w", `[{"op":"copy","from":"/spec","path":"/open"}]`, false},
		{"work", "w", `[{"op":"copy","from":"","path":"/open"}]`, false},
		{"work", "w", `[{"op":"copy","from":"/metadata/annotations/some.tool~1applied","path":"/spec/open"}]`, false},
		{"work", "w", `[{"op":"test","path":"/spec/one/data/password","value":"` + canaryInData + `"}]`, false},
		{"work", "w", `[{"op":"test","path":"/spec/one/kind","value":"Secret"},{"op":"copy","from":"/spec/one/metadata","path":"/spec/copied"}]`, true},
		{"work", "w", `[{"op":"copy","from":"/spec/open","path":"/spec/too"},{"op":"test","path":"/metadata/name","value":"w"},{"op":"move","from":"/spec/too","path":"/spec/also"}]`, true},
		{"cm", "c", `[{"op":"copy","from":"/data/tls.key","path":"/data/open"}]`, false},
		{"cm", "c", `[{"op":"test","path":"/data","value":{}}]`, false},
		{"cm", "c", `[{"op":"copy","FROM":"/data/tls.crt","from":"/data/tls.key","path":"/data/open"}]`, false},
		{"cm", "c", `[{"op":"test","path":"/data/tls.crt","value":"open"},{"op":"add","path":"/data/new.key","value":"` + canaryInData + `"}]`, true},
	} {
		args := vedette.PatchArgs{Target: b.target(tt.kind, tt.name), Type: vedette.JSONPatch, Patch: []byte(tt.patch)}
		for _, out := range []vedette.Outcome{b.dryRun(args), b.execute(args)} {
			if accepted := out.State == vedette.Done; accepted != tt.accepted || !accepted && out.Status != 400 {
				t.Errorf("%s: got %s %d %s", tt.patch, out.State, out.Status, out.Message)
			}
			b.wantNoneOf(tt.patch, encode(t, out), canaryInData, canaryInLastApplied, canaryInAnnotation)
		}
	}
	b.wantFailure(vedette.PatchArgs{Target: b.target("cm", "none"), Type: vedette.JSONPatch, Patch: []byte(`[{"op":"test","path":"/a","value":1}]`)}, 404)
}
