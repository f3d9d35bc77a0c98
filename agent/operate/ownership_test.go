//go:build linux

package operate_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// patchAsOtherManager applies or patches as another field manager, at a path of the API.
func (b *testbed) patchAsOtherManager(contentType, path string, body any) {
	b.Helper()
	query := "?fieldManager=injector"
	if contentType == applyPatch {
		query += "&force=true"
	}
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPatch, plane.URL+path+query, strings.NewReader(string(encode(b, body))))
	must(b, err)
	req.Header.Set("Content-Type", contentType)
	resp, err := plane.Client().Do(req)
	must(b, err)
	must(b, resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s", path, resp.Status)
	}
}

const (
	mergePatch = "application/merge-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

// TestMapEntriesOfOtherManagersAreKept applies client-side what was applied server-side before, and
// checks that fields of other managers stay, whatever the manifest drops around them.
func TestMapEntriesOfOtherManagersAreKept(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	empty, filled := func() any { return object{} }, func() any { return object{"ours": "1", "both": "2"} }
	for _, tt := range []struct {
		name          string
		before, after func() any // the map as it is applied; nil leaves it out
		want          string
	}{
		{"an empty map that stays", empty, empty, `{"injected":"1"}`},
		{"an empty map that is filled", empty, filled, `{"both":"2","injected":"1","ours":"1"}`},
		{"an empty map that is dropped", empty, nil, `{"injected":"1"}`},
		{"a map that is emptied", filled, empty, `{"both":"2","injected":"1"}`},
		{"a map that is dropped", filled, nil, `{"both":"2","injected":"1"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.TB = t
			name := strings.ReplaceAll(tt.name, " ", "-")
			withMap := func(value func() any) object {
				d := fullDeployment(name, "1")
				if value == nil {
					return d
				}
				d["metadata"].(object)["labels"] = value()
				d["metadata"].(object)["annotations"] = value()
				dig(d, "spec", "template", "metadata").(object)["annotations"] = value()
				return d
			}
			b.apply(vedette.StrategyForceConflicts, withMap(tt.before))
			injected := object{"injected": "1"}
			b.patchAsOtherManager(mergePatch, b.path(apps, "deployments", name), object{"metadata": object{"labels": injected, "annotations": injected},
				"spec": object{"template": object{"metadata": object{"annotations": injected}}}})
			if tt.before().(object)["both"] != nil {
				both := object{"both": "2"}
				b.patchAsOtherManager(applyPatch, b.path(apps, "deployments", name), object{"apiVersion": "apps/v1", "kind": "Deployment",
					"metadata": object{"name": name, "labels": both, "annotations": both}, "spec": object{"template": object{"metadata": object{"annotations": both}}}})
			}
			b.apply(vedette.StrategyClientSide, withMap(tt.after))
			live := b.live(apps, "deployments", name)
			annotations := dig(live, "metadata", "annotations").(object)
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
			delete(annotations, "deployment.kubernetes.io/revision") // a controller's
			for where, got := range map[string]any{"labels": dig(live, "metadata", "labels"), "annotations": annotations,
				"template": dig(live, "spec", "template", "metadata", "annotations")} {
				if got := string(encode(t, got)); got != tt.want {
					t.Errorf("%s: got %s, want %s", where, got, tt.want)
				}
			}
		})
	}
}

// TestListElementsOfOtherManagersAreKept is the same of lists.
func TestListElementsOfOtherManagersAreKept(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.apply(vedette.StrategyForceConflicts, fullDeployment("d", "1"))
	sidecar := object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "d"}, "spec": object{"template": object{"spec": object{
		"containers": []any{object{"name": "sidecar", "image": "example.com/sidecar:1"}, object{"name": "main", "env": []any{object{"name": "INJECTED", "value": "1"}}}},
		"volumes":    []any{object{"name": "injected", "emptyDir": object{}}}}}}}
	b.patchAsOtherManager(applyPatch, b.path(apps, "deployments", "d"), sidecar)
	reduced := reducedDeployment("d", "2")
	delete(dig(reduced, "spec", "template", "spec").(object), "volumes")
	delete(dig(reduced, "spec", "template", "spec", "containers", 0).(object), "volumeMounts")
	delete(dig(reduced, "spec", "template", "spec", "containers", 0).(object), "env")
	b.apply(vedette.StrategyClientSide, reduced)
	pod := dig(b.live(apps, "deployments", "d"), "spec", "template", "spec")
	if got := string(encode(t, []any{dig(pod, "containers", 0, "env"), dig(pod, "containers", 1, "name"), dig(pod, "volumes")})); got !=
		`[[{"name":"INJECTED","value":"1"}],"sidecar",[{"emptyDir":{},"name":"injected"}]]` {
		t.Errorf("got %s", got)
	}
}

// TestCustomResourceFieldsOfOtherManagersAreKept is the same of a custom resource, in which an empty map stays.
func TestCustomResourceFieldsOfOtherManagersAreKept(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCustomKind("Thing", "things")
	for name, tt := range map[string]struct {
		after object
		want  string
	}{
		"dropped": {object{"d": 1}, `{"a":{"injected":9007199254740993},"b":{"injected":1},"d":1}`},
		"stays":   {object{"a": object{"ours": 1}, "b": object{}}, `{"a":{"injected":9007199254740993,"ours":1},"b":{"injected":1}}`},
		"filled":  {object{"a": object{}, "b": object{"more": true}}, `{"a":{"injected":9007199254740993},"b":{"injected":1,"more":true}}`},
	} {
		thing := func(spec object) object {
			return object{"apiVersion": b.customGroup() + "/v1", "kind": "Thing", "metadata": object{"name": name}, "spec": spec}
		}
		b.apply(vedette.StrategyForceConflicts, thing(object{"a": object{"ours": 9007199254740993}, "b": object{}, "c": 1, "e": nil}))
		b.patchAsOtherManager(mergePatch, b.path("/apis/"+b.customGroup()+"/v1", "things", name), object{"spec": object{"a": object{"injected": 9007199254740993}, "b": object{"injected": 1}}})
		out := b.apply(vedette.StrategyClientSide, thing(tt.after))
		var live struct{ Spec json.RawMessage }
		must(t, json.Unmarshal(out.Objects[0], &live))
		if string(live.Spec) != tt.want {
			t.Errorf("%s: got %s, want %s", name, live.Spec, tt.want)
		}
	}
}

// TestRemovedSecretKeysAreDeleted drops keys of Secrets between server-side and client-side applies,
// and checks that they are gone, that others' keys stay, and that data is never read for it.
func TestRemovedSecretKeysAreDeleted(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	secret := func(name string) object {
		return object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": name}, "data": object{"a": "YQ==", "b": "Yg==", "c": "Yw=="}}
	}
	for _, tt := range []struct {
		name string
		drop func(o object)
		want string
	}{
		{"one", func(o object) { delete(o["data"].(object), "c") }, `{"a":"YQ==","b":"Yg==","injected":"aQ=="}`},
		{"all", func(o object) { o["data"] = object{} }, `{"injected":"aQ=="}`},
		{"data", func(o object) { delete(o, "data") }, `{"injected":"aQ=="}`},
	} {
		for _, first := range []vedette.Strategy{vedette.StrategyClientSide, vedette.StrategyServerSide} {
			name := tt.name + "-" + string(first)
			b.apply(first, secret(name))
			b.apply(vedette.StrategyForceConflicts, secret(name))
			b.patchAsOtherManager(mergePatch, b.path(core, "secrets", name), object{"data": object{"injected": "aQ=="}})
			last := secret(name)
			tt.drop(last)
			b.apply(vedette.StrategyClientSide, last)
			if got := string(encode(t, b.live(core, "secrets", name)["data"])); got != tt.want {
				t.Errorf("%s: got %s in the Secret, want %s", name, got, tt.want)
			}
		}
	}
}
