//go:build linux

package operate_test

import (
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestNullsAreOmitted creates objects from manifests with nulls, which mean no value, in new objects as
// in existing ones.
func TestNullsAreOmitted(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCustomKind("Thing", "things")
	manifestsWithNulls := func() []object {
		d := fullDeployment("d", "1")
		dig(d, "spec", "template", "spec", "containers", 0).(object)["resources"] = object{"limits": object{"cpu": nil, "memory": "64Mi"}}
		s := serviceManifest("s")
		s["spec"].(object)["selector"] = object{"a": "b", "c": nil}
		thing := object{"apiVersion": b.customGroup() + "/v1", "kind": "Thing", "metadata": object{"name": "t", "labels": nil},
			"spec": object{"a": nil, "list": []any{object{"b": nil, "c": 1}, nil}}}
		return []object{d, s, thing}
	}
	check := func(what string) {
		t.Helper()
		limits := dig(b.live(apps, "deployments", "d"), "spec", "template", "spec", "containers", 0, "resources", "limits")
		if got := string(encode(t, limits)); got != `{"memory":"64Mi"}` {
			t.Errorf("%s: got limits %s", what, got)
		}
		if got := string(encode(t, dig(b.live(core, "services", "s"), "spec", "selector"))); got != `{"a":"b"}` {
			t.Errorf("%s: got selector %s", what, got)
		}
		if got := string(encode(t, b.live("/apis/"+b.customGroup()+"/v1", "things", "t")["spec"])); got != `{"list":[{"c":1},null]}` {
			t.Errorf("%s: got custom resource %s", what, got)
		}
	}
	b.kubectlApply(manifestsWithNulls(), "--validate=false") // it can't validate nulls in a List
	check("kubectl")
	b.kubectl("delete", "deployment/d", "service/s", "things."+b.customGroup()+"/t")
	b.applyAll(vedette.StrategyClientSide, manifestsWithNulls())
	check("created")
	b.applyAll(vedette.StrategyClientSide, manifestsWithNulls())
	check("applied again")
	b.applyAll(vedette.StrategyRecreate, manifestsWithNulls())
	check("recreated")
}

// withExportedMetadata returns a manifest as it is exported from another cluster.
func withExportedMetadata(o object) object {
	o["metadata"].(object)["resourceVersion"] = "12345"
	o["metadata"].(object)["uid"] = "b3b4ce1c-8f0b-4a6f-8d1b-0a34bd2b8a52"
	return o
}

// TestPreconditionsOfMissingObjectsAreIgnored applies manifests with a resourceVersion and a uid. They
// restrict the apply to the existing object; a missing one is created.
func TestPreconditionsOfMissingObjectsAreIgnored(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	strategies := []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyServerSide, vedette.StrategyForceConflicts, vedette.StrategyReplace, vedette.StrategyRecreate, vedette.StrategyCreateOnly}
	for i, s := range strategies {
		name := string(rune('a' + i))
		for _, o := range []object{withExportedMetadata(configMap(name, object{"k": "1"})), withExportedMetadata(serviceManifest(name))} {
			out := b.apply(s, o)
			if out.Status != 201 {
				t.Errorf("strategy %q of a missing %s: got %d", s, o["kind"], out.Status)
			}
			if s == vedette.StrategyRecreate || s == vedette.StrategyCreateOnly {
				continue
			}
			if second := b.execute(vedette.ApplyArgs{Manifest: encode(t, o), Namespace: b.namespace, Strategy: s}); second.Status != 409 {
				t.Errorf("strategy %q of another version of a %s: got %s %d %s", s, o["kind"], second.State, second.Status, second.Message)
			}
		}
	}
	for _, s := range strategies {
		m := configMap("only-uid", object{"k": "1"})
		m["metadata"].(object)["uid"] = "b3b4ce1c-8f0b-4a6f-8d1b-0a34bd2b8a52"
		b.apply(s, m)
		must(t, plane.Delete(t.Context(), b.path(core, "configmaps", "only-uid")))
	}
}
