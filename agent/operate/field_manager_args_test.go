//go:build linux

package operate_test

import (
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestFieldManagerOfOperation checks that creates, replaces and patches have the manager of the operation.
func TestFieldManagerOfOperation(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	managers := func() map[string]bool {
		all := map[string]bool{}
		entries, _ := dig(b.live(core, "services", "web"), "metadata", "managedFields").([]any)
		for _, entry := range entries {
			all[entry.(object)["manager"].(string)] = true
		}
		return all
	}
	manifest := encode(t, serviceManifest("web"))
	b.mustExecute(vedette.ApplyArgs{Manifest: manifest, Namespace: b.namespace, Strategy: vedette.StrategyCreateOnly, FieldManager: "creator"})
	b.mustExecute(vedette.PatchArgs{Target: b.target("service", "web"), Type: vedette.MergePatch, Patch: []byte(`{"metadata":{"labels":{"a":"b"}}}`), FieldManager: "patcher"})
	if got := managers(); len(got) != 2 || !got["creator"] || !got["patcher"] {
		t.Errorf("got %v", got)
	}
	b.mustExecute(vedette.ApplyArgs{Manifest: encode(t, withLabels(serviceManifest("web"), object{"c": "d"})), Namespace: b.namespace, Strategy: vedette.StrategyReplace, FieldManager: "replacer", MustExist: true})
	if got := managers(); !got["replacer"] {
		t.Errorf("got %v", got)
	}
}

// TestReplaceOfMissingObject checks that a replace that needs an object does not create it.
func TestReplaceOfMissingObject(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	o := configMap("none", nil)
	args := vedette.ApplyArgs{Manifest: encode(t, o), Namespace: b.namespace, Strategy: vedette.StrategyReplace, MustExist: true}
	b.wantFailure(args, 404, `configmaps "none" not found`)
	o["metadata"].(object)["resourceVersion"] = "1"
	args.Manifest = encode(t, o)
	if out := b.execute(args); out.State != vedette.Failed {
		t.Errorf("got %+v", out)
	}
	b.wantFailure(vedette.GetArgs{Target: b.target("configmap", "none")}, 404)
}
