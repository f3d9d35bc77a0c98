//go:build linux

package operate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

func TestDelete(t *testing.T) {
	b := newBench(t, operate.Config{})
	uids := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		o := configMap(name, nil)
		o["metadata"].(object)["labels"] = object{"pick": map[bool]string{true: "yes", false: "no"}[name != "c"]}
		b.apply(vedette.ByMode, o)
		uids[name] = dig(b.live(core, "configmaps", name), "metadata", "uid").(string)
	}
	out := b.done(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: "pick=yes"})
	var names []string
	for i, k := range out.Keys {
		names = append(names, k.Name)
		if len(out.UIDs) != len(out.Keys) || out.UIDs[i] != uids[k.Name] {
			t.Errorf("the uid of %s is one of %v, want %v", k.Name, out.UIDs, uids[k.Name])
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("deleted %v", names)
	}
	b.fails(vedette.GetArgs{Target: b.target("configmap", "a")}, 404)
	b.fails(vedette.DeleteArgs{Target: b.target("configmap", "a")}, 404, `"a" not found`)
	if out := b.done(vedette.DeleteArgs{Target: b.target("configmap", "a"), MissingOK: true}); len(out.Keys) != 0 {
		t.Errorf("deleted %v, which was not there", out.Keys)
	}
	for _, selector := range []string{"", " \t", "\x00", "pick=no\x00,never=this"} {
		b.fails(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: selector}, 400, "every configmap")
	}
	b.fails(vedette.DeleteArgs{Target: b.target("configmap", ""), LabelSelector: "a=,=b"}, 400, "found '='")
	b.fails(vedette.DeleteArgs{Target: b.target("configmap", "c"), Propagation: "sideways"}, 400, "sideways")
	b.done(vedette.GetArgs{Target: b.target("configmap", "c")})
}

func TestDeleteSaysWhichFinalizersItWaitsFor(t *testing.T) {
	b := newBench(t, operate.Config{})
	o := configMap("stuck", nil)
	o["metadata"].(object)["finalizers"] = []any{"example.com/never"}
	b.apply(vedette.ByMode, o)
	began := time.Now()
	out := b.op.Do(t.Context(), vedette.Operation{Deadline: time.Now().Add(2 * time.Second),
		Args: vedette.DeleteArgs{Target: b.target("cm", "stuck")}})
	if out.State != vedette.Failed || out.Status != 504 || time.Since(began) > 2*time.Second {
		t.Errorf("after %v: %+v", time.Since(began), out)
	}
	if len(out.UIDs) != 1 || out.UIDs[0] != dig(b.live(core, "configmaps", "stuck"), "metadata", "uid") {
		t.Errorf("what is being deleted has the uids %v", out.UIDs)
	}
	for _, words := range []string{"example.com/never", "stuck", "not gone"} {
		b.contains(out.Message, words)
	}
	b.done(vedette.DeleteArgs{Target: b.target("cm", "stuck"), NoWait: true})
	must(t, plane.Patch(t.Context(), b.path(core, "configmaps", "stuck"), object{"metadata": object{"finalizers": nil}}))
}

func TestPropagation(t *testing.T) {
	b := newBench(t, operate.Config{})
	for policy, kept := range map[string]bool{"Orphan": true, "orphan": true, "FOREGROUND": false, "Background": false, "": false} {
		b.apply(vedette.ByMode, crew("d", []any{object{"name": "main", "image": "example.com/m"}}, nil))
		replicaSets := b.path(apps, "replicasets", "")
		var uid string
		must(t, plane.Await(t.Context(), replicaSets, func(list object) bool {
			uid, _ = dig(list, "items", 0, "metadata", "uid").(string)
			return uid != ""
		}))
		b.done(vedette.DeleteArgs{Target: b.target("deployment", "d"), Propagation: policy})
		if kept {
			rs := dig(b.live(apps, "replicasets", ""), "items", 0)
			if dig(rs, "metadata", "uid") != uid || dig(rs, "metadata", "ownerReferences") != nil {
				t.Errorf("%q left %v", policy, dig(rs, "metadata"))
			}
			b.done(vedette.DeleteArgs{Target: b.target("rs", dig(rs, "metadata", "name").(string))})
		}
		must(t, plane.Await(t.Context(), replicaSets, func(list object) bool { return dig(list, "items", 0) == nil }))
	}
}

func TestGrace(t *testing.T) {
	b := newBench(t, operate.Config{})
	b.running("p")
	none := int64(0)
	out := b.done(vedette.DeleteArgs{Target: b.target("pod", "p"), GraceSeconds: &none})
	if len(out.Keys) != 1 || out.Keys[0] != (vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: b.namespace, Name: "p"}) {
		t.Errorf("deleted %v", out.Keys)
	}
	b.fails(vedette.GetArgs{Target: b.target("pod", "p")}, 404)
	b.apply(vedette.ByMode, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "q"}, "spec": object{
		"nodeName": "nowhere", "containers": []any{object{"name": "main", "image": "example.com/m"}}}}) // nobody ends it
	long := int64(7)
	b.done(vedette.DeleteArgs{Target: b.target("pod", "q"), GraceSeconds: &long, NoWait: true})
	if got := dig(b.live(core, "pods", "q"), "metadata", "deletionGracePeriodSeconds"); got != float64(7) {
		t.Errorf("it has a grace of %v", got)
	}
	out = b.op.Do(t.Context(), vedette.Operation{Deadline: time.Now().Add(time.Second), Args: vedette.DeleteArgs{Target: b.target("pod", "q")}})
	if out.State != vedette.Failed || out.Status != 504 {
		t.Errorf("what nobody ends is %+v", out)
	}
	b.contains(out.Message, "s to end")
}
