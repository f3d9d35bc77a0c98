//go:build linux

package operate_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// withLabels puts labels on an object.
func withLabels(o object, labels object) object {
	o["metadata"].(object)["labels"] = labels
	return o
}

func serviceManifest(name string) object {
	return object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name}, "spec": object{"selector": object{"a": "b"}, "ports": []any{object{"port": 80}}}}
}

// createPruneObjects applies the objects that a prune finds, by kubectl, by the agent and server-side,
// and creates others without an apply.
func (b *testbed) createPruneObjects() {
	b.Helper()
	shop, other := object{"part": "shop"}, object{"part": "other"}
	b.kubectlApply([]object{withLabels(configMap("kept", nil), shop), withLabels(configMap("old", nil), shop), withLabels(serviceManifest("old"), shop),
		withLabels(object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "old"}}, shop), withLabels(configMap("of-others", nil), other)})
	b.kubectlApply([]object{withLabels(configMap("server-side", nil), shop)}, "--server-side")
	b.apply(vedette.StrategyClientSide, withLabels(serviceManifest("by-agent"), shop))
	must(b, plane.Create(b.Context(), b.path(core, "configmaps", ""), withLabels(configMap("by-hand", nil), shop)))
}

// prunedNames are those of an outcome's objects, as kubectl writes them.
func prunedNames(out vedette.Outcome) []string {
	var all []string
	for _, key := range out.Keys {
		all = append(all, strings.ToLower(key.Kind.Name)+"/"+key.Name)
	}
	slices.Sort(all)
	return all
}

// TestPruneMatchesKubectl checks that the agent prunes the same objects as kubectl, and those that were applied
// server-side; that a dry run returns them; and that what stays is named.
func TestPruneMatchesKubectl(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createPruneObjects()
	kept := withLabels(configMap("kept", nil), object{"part": "shop"})
	file := t.TempDir() + "/kept.json"
	must(t, os.WriteFile(file, encode(t, kept), 0o600))
	var theirs []string
	for line := range strings.SplitSeq(b.kubectl("apply", "-f", file, "--prune", "-l", "part=shop", "--dry-run=server"), "\n") {
		if name, is := strings.CutSuffix(line, " pruned (server dry run)"); is {
			theirs = append(theirs, name)
		}
	}
	theirs = append(theirs, "configmap/server-side") // kubectl keeps it without a word
	slices.Sort(theirs)
	args := vedette.PruneArgs{Namespaces: []string{b.namespace}, LabelSelector: "part=shop",
		Keep: []string{dig(b.live(core, "configmaps", "kept"), "metadata", "uid").(string)}}
	out := b.dryRun(args)
	if got := prunedNames(out); out.State != vedette.Done || len(theirs) != 5 || !slices.Equal(got, theirs) {
		t.Errorf("dry run: got %v, want as kubectl and server-side %v: %s", got, theirs, out.Message)
	}
	if got := prunedNames(b.mustExecute(args)); !slices.Equal(got, theirs) {
		t.Errorf("got %v, want as kubectl %v", got, theirs)
	}
	if got := prunedNames(b.mustExecute(args)); len(got) != 0 {
		t.Errorf("second prune: got %v", got)
	}
	for _, name := range []string{"kept", "of-others", "by-hand"} {
		b.live(core, "configmaps", name)
	}
	var left vedette.PruneResult
	must(t, json.Unmarshal(out.Result, &left))
	want := map[string]string{"ConfigMap/by-hand": "it was never applied; it was written by Go-http-client"}
	if got := keptReasons(left); !maps.Equal(got, want) || len(left.Kinds) == 0 {
		t.Errorf("got %v, want %v", got, want)
	}
	b.wantFailure(vedette.GetArgs{Target: b.target("secret", "old")}, 404)
}

func TestPruneSelectedKinds(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createPruneObjects()
	args := vedette.PruneArgs{Kinds: []string{"core/v1/Service"}, Namespaces: []string{b.namespace}, All: true}
	if got := prunedNames(b.mustExecute(args)); !slices.Equal(got, []string{"service/by-agent", "service/old"}) {
		t.Errorf("got %v", got)
	}
	b.createCustomKind("Thing", "things")
	b.kubectlApply([]object{{"apiVersion": b.customGroup() + "/v1", "kind": "Thing", "metadata": object{"name": "old"}}})
	args.Kinds = []string{b.customGroup() + "/v1/Thing"}
	if got := prunedNames(b.mustExecute(args)); !slices.Equal(got, []string{"thing/old"}) {
		t.Errorf("custom kind: got %v", got)
	}
	args.Namespaces, args.Kinds = nil, []string{"core/v1/ConfigMap"}
	if got := prunedNames(b.mustExecute(args)); len(got) != 0 {
		t.Errorf("no namespaces: got %v", got)
	}
}

func TestInvalidPruneIsRejected(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	for words, args := range map[string]vedette.PruneArgs{
		"neither a labelSelector nor all": {Namespaces: []string{b.namespace}},
		"neither a labelSelector":         {LabelSelector: " "},
		"remove one of them":              {All: true, LabelSelector: "a=b"},
		"is not a kind to prune":          {All: true, Kinds: []string{"Deployment"}},
		"is not a kind to prun":           {All: true, Kinds: []string{"apps/v1/"}},
		"has an empty name":               {All: true, Namespaces: []string{""}},
		"sideways":                        {All: true, Propagation: "sideways"},
	} {
		b.wantFailure(args, 400, words)
	}
	b.wantFailure(vedette.PruneArgs{All: true, Kinds: []string{"apps/v1/Pot"}, Namespaces: []string{"x"}}, 404, `no kind "Pot"`)
}

// TestDeleteBySelector checks selections by fields, by nothing, and across namespaces.
func TestDeleteBySelector(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	otherNamespace := b.namespace + "-2"
	must(t, plane.Create(t.Context(), "/api/v1/namespaces", object{"metadata": object{"name": otherNamespace}}))
	for _, namespace := range []string{b.namespace, otherNamespace} {
		for _, name := range []string{"a", "b"} {
			o := withLabels(configMap(name, nil), object{"test": b.namespace})
			must(t, plane.Create(t.Context(), "/api/v1/namespaces/"+namespace+"/configmaps", o))
		}
	}
	deletedKeys := func(out vedette.Outcome) (all []string) {
		for _, key := range out.Keys {
			all = append(all, strings.TrimPrefix(key.Namespace, b.namespace)+"/"+key.Name)
		}
		slices.Sort(all)
		return all
	}
	for _, tt := range []struct {
		args vedette.DeleteArgs
		want []string
	}{
		{vedette.DeleteArgs{Target: b.target("cm", ""), FieldSelector: "metadata.name=a"}, []string{"/a"}},
		{vedette.DeleteArgs{Target: vedette.Target{Kind: "cm"}, AllNamespaces: true, LabelSelector: "test=" + b.namespace, FieldSelector: "metadata.name=b"}, []string{"-2/b", "/b"}},
		{vedette.DeleteArgs{Target: vedette.Target{Kind: "cm", Namespace: otherNamespace}, All: true}, []string{"-2/a"}},
	} {
		out := b.mustExecute(tt.args)
		got := slices.DeleteFunc(deletedKeys(out), func(s string) bool { return strings.HasSuffix(s, "kube-root-ca.crt") })
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: got %v, want %v", tt.args, got, tt.want)
		}
	}
	for _, args := range []vedette.DeleteArgs{
		{Target: b.target("cm", ""), AllNamespaces: true},
		{Target: b.target("cm", ""), FieldSelector: " "},
		{Target: b.target("cm", ""), FieldSelector: "metadata.name!=a\x00"},
		{Target: b.target("cm", ""), All: true, LabelSelector: "a=b"},
		{Target: b.target("cm", "a"), All: true},
		{Target: b.target("cm", "a"), FieldSelector: "metadata.name=b"},
	} {
		b.wantFailure(args, 400)
	}
	b.wantFailure(vedette.DeleteArgs{Target: b.target("cm", ""), FieldSelector: "data.colour=blue"}, 400, "not a known field selector")
}

// TestPruneOfServerSideApplies prunes what the agent applied without the last-applied annotation, and names what others
// applied, or own.
func TestPruneOfServerSideApplies(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	shop := object{"part": "shop"}
	b.apply(vedette.StrategyDefault, withLabels(configMap("map", nil), shop))
	b.apply(vedette.StrategyDefault, withLabels(object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "secret"}}, shop))
	b.apply(vedette.StrategyServerSide, withLabels(serviceManifest("service"), shop))
	b.kubectlApply([]object{withLabels(configMap("of-helm", nil), shop)}, "--server-side", "--field-manager=helm")
	owner := b.live(core, "configmaps", "of-helm")
	owned := withLabels(configMap("owned", nil), shop)
	owned["metadata"].(object)["ownerReferences"] = []any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "of-helm", "uid": dig(owner, "metadata", "uid"), "controller": true}}
	must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), owned))
	out := b.mustExecute(vedette.PruneArgs{Namespaces: []string{b.namespace}, LabelSelector: "part=shop"})
	if got := prunedNames(out); !slices.Equal(got, []string{"configmap/map", "secret/secret", "service/service"}) {
		t.Errorf("got %v", got)
	}
	var left vedette.PruneResult
	must(t, json.Unmarshal(out.Result, &left))
	want := map[string]string{"ConfigMap/of-helm": "it was applied by the field manager helm, not by kubectl"}
	if got := keptReasons(left); left.Owned != 1 || !maps.Equal(got, want) {
		t.Errorf("got %+v, want one that is owned, and %v", left, want)
	}
}

// keptReasons returns why objects stay, without Endpoints, which a controller creates when it comes to it.
func keptReasons(left vedette.PruneResult) map[string]string {
	reasons := map[string]string{}
	for _, o := range left.Kept {
		if o.Kind != "Endpoints" {
			reasons[o.Kind+"/"+o.Name] = o.Reason
		}
	}
	return reasons
}
