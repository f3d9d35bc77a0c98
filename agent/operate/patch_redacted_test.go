//go:build linux

package operate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/redact"
)

// TestJSONPatchCannotRevealRedactedValues sends JSON patches that copy, move or guess embedded Secrets
// and values that rules redact, and patches that do so with other values.
func TestJSONPatchCannotRevealRedactedValues(t *testing.T) {
	r, err := redact.New(redact.Config{ConfigMapKeys: []string{"*.key"}, Environment: []string{"*PASSWORD"}}, nil, nil)
	must(t, err)
	b := newTestbed(t, operate.Config{Requests: request.Config{Redactor: r}})
	b.createCustomKind("Work", "works")
	secret := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "data": object{"password": canaryInData}}
	must(t, plane.Create(t.Context(), b.path("/apis/"+b.customGroup()+"/v1", "works", ""), object{"apiVersion": b.customGroup() + "/v1", "kind": "Work",
		"metadata": object{"name": "w", "annotations": object{"some.tool/applied": `{"kind":"Secret","data":{"a":"` + canaryInLastApplied + `"}}`}},
		"spec":     object{"manifests": []any{object{"kind": "ConfigMap", "data": object{"colour": "blue"}}, secret}, "open": "yes", "one": secret}}))
	must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), configMap("c", object{"tls.key": canaryInAnnotation, "tls.crt": "open"})))
	container := object{"name": "c", "image": "i", "env": []any{object{"name": "OPEN", "value": "open"}, object{"name": "PASSWORD", "value": canaryInData}}}
	must(t, plane.Create(t.Context(), b.path("/apis/apps/v1", "deployments", ""), object{"metadata": object{"name": "d"}, "spec": object{"replicas": 0,
		"selector": object{"matchLabels": object{"a": "b"}}, "template": object{"metadata": object{"labels": object{"a": "b"}}, "spec": object{"containers": []any{container}}}}}))
	const env = "/spec/template/spec/containers/0/env"
	for _, tt := range []struct {
		kind, name, patch string
		accepted          bool
	}{
		{"deploy", "d", `[{"op":"replace","path":"` + env + `/1/name","value":"SHOWN"}]`, false},
		{"deploy", "d", `[{"op":"add","path":"` + env + `/1/name","value":"SHOWN"}]`, false},
		{"deploy", "d", `[{"op":"copy","from":"` + env + `/0/name","path":"` + env + `/1/name"}]`, false},
		{"deploy", "d", `[{"op":"add","path":"` + env + `/0","value":{"name":"NEW"}},{"op":"replace","path":"` + env + `/2/name","value":"SHOWN"}]`, false},
		{"deploy", "d", `[{"op":"replace","path":"` + env + `/1","value":{"name":"SHOWN","value":"new"}}]`, true},
		{"deploy", "d", `[{"op":"replace","path":"/spec/template/spec/containers/0/name","value":"renamed"}]`, true},
		{"work", "w", `[{"op":"replace","path":"/spec/one/kind","value":"X"}]`, false},
		{"work", "w", `[{"op":"remove","path":"/spec/manifests/1/kind"}]`, false},
		{"work", "w", `[{"op":"replace","path":"/spec/one/apiVersion","value":"x/v1"}]`, false},
		{"work", "w", `[{"op":"add","path":"/spec/manifests/1/apiVersion","value":"x/v1"}]`, false},
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
	for patch, accepted := range map[string]bool{`{"spec":{"one":{"kind":"X"}}}`: false, `{"spec":{"one":{"kind":null}}}`: false,
		`{"spec":{"one":{"apiVersion":"x/v1"}}}`: false, `{"spec":{"one":{"kind":{"a":"b"}}}}`: false, `{"spec":{"other":{"kind":"X"}}}`: true} {
		args := vedette.PatchArgs{Target: b.target("work", "w"), Type: vedette.MergePatch, Patch: []byte(patch)}
		for _, out := range []vedette.Outcome{b.dryRun(args), b.execute(args)} {
			if (out.State == vedette.Done) != accepted || !accepted && out.Status != 400 {
				t.Errorf("%s: got %s %d %s", patch, out.State, out.Status, out.Message)
			}
			b.wantNoneOf(patch, encode(t, out), canaryInData, canaryInLastApplied, canaryInAnnotation)
		}
	}
	b.wantFailure(vedette.PatchArgs{Target: b.target("cm", "none"), Type: vedette.JSONPatch, Patch: []byte(`[{"op":"test","path":"/a","value":1}]`)}, 404)
}

// TestApplyCannotRevealRedactedValues applies manifests that change or remove the kind of an embedded Secret
// whose data others wrote, and manifests that leave it as it is.
func TestApplyCannotRevealRedactedValues(t *testing.T) {
	r, err := redact.New(redact.Config{Environment: []string{"*PASSWORD"}}, nil, nil)
	must(t, err)
	b := newTestbed(t, operate.Config{Requests: request.Config{Redactor: r}})
	b.createCustomKind("Database", "databases")
	path := b.path("/apis/"+b.customGroup()+"/v1", "databases", "")
	work := func(name string, one any) object {
		return object{"apiVersion": b.customGroup() + "/v1", "kind": "Database", "metadata": object{"name": name}, "spec": object{"open": "yes", "one": one}}
	}
	strategies := []vedette.Strategy{vedette.StrategyClientSide, vedette.StrategyServerSide, vedette.StrategyForceConflicts}
	for i, tt := range []struct {
		what     string
		one      any
		accepted bool
	}{
		{"another kind", object{"apiVersion": "v1", "kind": "X"}, false},
		{"a kind that is an object", object{"apiVersion": "v1", "kind": object{"a": "b"}}, false},
		{"another apiVersion", object{"apiVersion": "x/v1", "kind": "Secret"}, false},
		{"a kind that is removed", object{"apiVersion": "v1"}, false},
		{"all that was applied is removed", object{}, false},
		{"nothing that matters", object{"apiVersion": "v1", "kind": "Secret", "type": "Opaque"}, true},
		{"the kind and the data", object{"apiVersion": "v1", "kind": "X", "data": object{"password": "new"}}, true},
	} {
		for j, strategy := range strategies {
			name := fmt.Sprintf("w-%d-%d", i, j)
			b.apply(strategy, work(name, object{"apiVersion": "v1", "kind": "Secret"}))
			must(t, plane.Patch(t.Context(), path+"/"+name, object{"spec": object{"one": object{"data": object{"password": canaryInData}}}}))
			args := vedette.ApplyArgs{Manifest: encode(t, work(name, tt.one)), Namespace: b.namespace, Strategy: strategy}
			for _, out := range []vedette.Outcome{b.dryRun(args), b.execute(args)} {
				mayPass := tt.accepted && (strategy != vedette.StrategyClientSide || i != 6) // a merge would keep other keys of the data
				isConflict := strategy == vedette.StrategyServerSide && out.Status == 409    // others own the data
				if accepted := out.State == vedette.Done; accepted != mayPass && !isConflict || !accepted && !isConflict && out.Status != 400 {
					t.Errorf("%s, %s: got %s %d %s", tt.what, strategy, out.State, out.Status, out.Message)
				}
				b.wantNoneOf(tt.what, encode(t, out), canaryInData)
			}
			out := b.mustExecute(vedette.GetArgs{Target: b.target("database", name)})
			b.wantNoneOf(tt.what, encode(t, out), canaryInData)
		}
	}
}

// TestPatchIsBoundToTheVersionThatWasChecked lets an object change between the check of a patch and its
// request: the patch is checked again.
func TestPatchIsBoundToTheVersionThatWasChecked(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCustomKind("Note", "notes")
	path := b.path("/apis/"+b.customGroup()+"/v1", "notes", "")
	for name, patch := range map[string]vedette.PatchArgs{
		"json":  {Type: vedette.JSONPatch, Patch: []byte(`[{"op":"add","path":"/spec/one/kind","value":"X"}]`)},
		"merge": {Type: vedette.MergePatch, Patch: []byte(`{"spec":{"one":{"kind":"X"}}}`)},
	} {
		must(t, plane.Create(t.Context(), path, object{"apiVersion": b.customGroup() + "/v1", "kind": "Note", "metadata": object{"name": name},
			"spec": object{"one": object{}}}))
		patch.Target = b.target("note", name)
		isFirst := true
		change := func(context.Context) error {
			if isFirst {
				isFirst = false
				return plane.Patch(t.Context(), path+"/"+name, object{"spec": object{"one": object{"kind": "Secret", "data": object{"password": canaryInData}}}})
			}
			return nil
		}
		out := b.op.ExecuteControlled(t.Context(), vedette.Operation{Args: patch, Deadline: time.Now().Add(time.Minute)}, request.Control{MayChange: change})
		if out.Status != 400 {
			t.Errorf("%s: got %s %d %s, want 400", name, out.State, out.Status, out.Message)
		}
		b.wantNoneOf(name, encode(t, out), canaryInData)
	}
}
