//go:build linux

package operate_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/apply"
)

func configMap(name string, data object) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": data}
}

func TestApplyThenGet(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	yaml := "apiVersion: v1\nkind: configmap\nmetadata:\n  name: a\ndata:\n  colour: blue\n"
	out := b.mustExecute(vedette.ApplyArgs{Manifest: []byte(yaml), Namespace: b.namespace})
	if out.Status != 201 || len(out.Objects) != 1 || out.Keys[0].Name != "a" || out.Keys[0].Namespace != b.namespace {
		t.Errorf("got %d, %v, %s", out.Status, out.Keys, out.Objects)
	}
	for _, kind := range []string{"configmap", "ConfigMap", "CONFIGMAPS", "cm"} {
		got := decode(t, b.mustExecute(vedette.GetArgs{Target: b.target(kind, "a")}).Objects[0])
		if dig(got, "data", "colour") != "blue" || dig(got, "metadata", "managedFields") != nil || dig(got, "kind") != "ConfigMap" {
			t.Errorf("%s: got %v", kind, got)
		}
	}
	b.wantFailure(vedette.GetArgs{Target: b.target("configmap", "missing")}, 404, `configmaps "missing" not found`)
	b.wantFailure(vedette.GetArgs{Target: b.target("confmap", "a")}, 404, "confmap")
	b.wantFailure(vedette.GetArgs{Target: b.target("configmap", "../secrets/x")}, 400, "not a valid name")
}

func TestListReadsAllPages(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	big := strings.Repeat("x", 20_000)
	for i := range 620 { // 12 MB, two pages
		must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), object{"metadata": object{
			"name": fmt.Sprintf("c-%d", i), "labels": object{"half": fmt.Sprint(i % 2)}}, "data": object{"big": big}}))
	}
	out := b.mustExecute(vedette.ListArgs{Target: b.target("configmap", "")})
	size := 0
	for _, o := range out.Objects {
		size += len(o)
	}
	if len(out.Objects) != 621 || size < 12_000_000 { // one is kube-root-ca.crt
		t.Errorf("list: got %d objects of %d bytes", len(out.Objects), size)
	}
	if out := b.mustExecute(vedette.ListArgs{Target: b.target("cm", ""), LabelSelector: "half=1"}); len(out.Objects) != 310 {
		t.Errorf("list by label: got %d objects", len(out.Objects))
	}
}

func TestApplyLargeObjects(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCustomKind("Blob", "blobs")
	for _, value := range []string{"a", "b"} {
		b.apply(vedette.StrategyDefault, configMap("big", object{"v": strings.Repeat(value, 900_000)}))
		b.apply(vedette.StrategyDefault, object{"apiVersion": b.customGroup() + "/v1", "kind": "Blob", "metadata": object{"name": "big"},
			"spec": object{"v": strings.Repeat(value, 1_400_000)}})
	}
	if got, _ := dig(b.live(core, "configmaps", "big"), "data", "v").(string); got != strings.Repeat("b", 900_000) {
		t.Errorf("ConfigMap: got %d bytes", len(got))
	}
	if got, _ := dig(b.live("/apis/"+b.customGroup()+"/v1", "blobs", "big"), "spec", "v").(string); got != strings.Repeat("b", 1_400_000) {
		t.Errorf("custom resource: got %d bytes", len(got))
	}
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, object{"apiVersion": b.customGroup() + "/v1", "kind": "Blob", "metadata": object{"name": "small"},
		"spec": object{"v": strings.Repeat("x", 300_000)}}), Namespace: b.namespace, Strategy: vedette.StrategyClientSide}, 422, "Too long", "262144")
}

// TestApplyLargeObjectsWithEveryStrategy writes 1.4 MB, which is near the limit of etcd. A client-side
// apply would need twice as much.
func TestApplyLargeObjectsWithEveryStrategy(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCustomKind("Blob", "blobs")
	blob := func(name, value string) object {
		return object{"apiVersion": b.customGroup() + "/v1", "kind": "Blob", "metadata": object{"name": name}, "spec": object{"v": strings.Repeat(value, 1_400_000)}}
	}
	for _, s := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyServerSide, vedette.StrategyForceConflicts, vedette.StrategyReplace, vedette.StrategyRecreate} {
		for _, value := range []string{"a", "b"} {
			out := b.apply(s, blob("big", value))
			if len(out.Objects) != 1 || len(out.Objects[0]) < 1_400_000 {
				t.Errorf("strategy %q: got %d objects", s, len(out.Objects))
			}
			if got, _ := dig(b.live("/apis/"+b.customGroup()+"/v1", "blobs", "big"), "spec", "v").(string); got != strings.Repeat(value, 1_400_000) {
				t.Errorf("strategy %q: got %d bytes in the cluster", s, len(got))
			}
		}
	}
	b.apply(vedette.StrategyCreateOnly, blob("created", "c"))
	out := b.execute(vedette.ApplyArgs{Manifest: encode(t, blob("big", "d")), Namespace: b.namespace, Strategy: vedette.StrategyClientSide})
	if out.State != vedette.Failed || out.Status != 422 {
		t.Errorf("client-side apply: got %s %d: %.300s", out.State, out.Status, out.Message)
	}
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, object{"apiVersion": b.customGroup() + "/v1", "kind": "Blob", "metadata": object{"name": "bigger"},
		"spec": object{"v": strings.Repeat("x", 3_200_000)}}), Namespace: b.namespace}, 413, "limit is")
}

func (b *testbed) customGroup() string { return b.namespace + ".example.com" }

// createCustomKind creates a kind without a schema, and waits until it is served.
func (b *testbed) createCustomKind(kind, plural string) {
	b.Helper()
	b.createCustomKindVersion(b.customGroup(), "v1", kind, plural, nil)
}

func (b *testbed) createCustomKindVersion(group, version, kind, plural string, annotations object) {
	b.Helper()
	b.createCustomKindNamed(group, version, object{"kind": kind, "plural": plural}, annotations)
}

func (b *testbed) createCustomKindNamed(group, version string, names, annotations object) {
	b.Helper()
	plural := names["plural"].(string)
	must(b, plane.Create(b.Context(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object{
		"metadata": object{"name": plural + "." + group, "annotations": annotations},
		"spec": object{"group": group, "scope": "Namespaced", "names": names,
			"versions": []any{object{"name": version, "served": true, "storage": true, "schema": object{
				"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}))
	must(b, plane.Await(b.Context(), b.path("/apis/"+group+"/"+version, plural, ""), func(object) bool { return true }))
}

func TestCustomKindMergeMatchesKubectl(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCustomKind("Thing", "things")
	thing := func(name string, spec object) object {
		return object{"apiVersion": b.customGroup() + "/v1", "kind": "Thing", "metadata": object{"name": name}, "spec": spec}
	}
	first, second := object{"kept": 1, "dropped": 2, "list": []any{"a", "b"}, "deep": object{"x": 1, "y": 2}}, object{"kept": 3, "list": []any{"b"}, "deep": object{"x": 1}}
	for _, spec := range []object{first, second} {
		b.kubectlApply([]object{thing("theirs", spec)})
		b.apply(vedette.StrategyClientSide, thing("ours", spec))
		must(t, plane.Patch(t.Context(), b.path("/apis/"+b.customGroup()+"/v1", "things", "ours"), object{"spec": object{"foreign": "f"}}))
		must(t, plane.Patch(t.Context(), b.path("/apis/"+b.customGroup()+"/v1", "things", "theirs"), object{"spec": object{"foreign": "f"}}))
	}
	ours, theirs := b.live("/apis/"+b.customGroup()+"/v1", "things", "ours"), b.live("/apis/"+b.customGroup()+"/v1", "things", "theirs")
	if a, k := encode(t, ours["spec"]), encode(t, theirs["spec"]); !bytes.Equal(a, k) || bytes.Contains(a, []byte("dropped")) {
		t.Errorf("got %s from the agent, want %s as from kubectl", a, k)
	}
}

func TestInvalidManifestsAreExplained(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	applyManifest := func(manifest string) vedette.ApplyArgs {
		return vedette.ApplyArgs{Manifest: []byte(manifest), Namespace: b.namespace}
	}
	for _, tt := range []struct {
		name, manifest string
		status         int
		words          string
	}{
		{"nothing", "", 400, "empty"},
		{"a list", "[1]", 400, "not a JSON object"},
		{"text", "hello", 400, "not a JSON object"},
		{"broken JSON", `{"a":`, 400, "not JSON"},
		{"broken YAML", "a: [", 400, "neither JSON nor YAML"},
		{"two documents", "kind: A\n---\nkind: B\n", 400, "more than one document"},
		{"no metadata", `{"apiVersion":"v1","kind":"Pod"}`, 400, "no metadata"},
		{"no kind", `{"apiVersion":"v1","metadata":{"name":"a"}}`, 400, "no kind"},
		{"no apiVersion", `{"kind":"Pod","metadata":{"name":"a"}}`, 400, "no apiVersion"},
		{"no name", `{"apiVersion":"v1","kind":"Pod","metadata":{}}`, 400, "metadata.name"},
		{"a name that is a number", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":1}}`, 400, "not a string"},
		{"an unknown kind", `{"apiVersion":"v1","kind":"Pot","metadata":{"name":"a"}}`, 404, `no kind "Pot"`},
		{"an unknown version", `{"apiVersion":"apps/v9","kind":"Deployment","metadata":{"name":"a"}}`, 404, "apps/v9"},
		{"no version", `{"apiVersion":"a/b/c","kind":"Deployment","metadata":{"name":"a"}}`, 400, "not an apiVersion"},
		{"what the API server refuses", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[]}}`, 422, "spec.ports: Required value"},
		{"a namespace that isn't", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"nowhere"}}`, 404, `namespaces "nowhere" not found`},
		{"a name that is none", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"A_B"}}`, 422, "RFC 1123"},
	} {
		t.Run(tt.name, func(t *testing.T) { b.TB = t; b.wantFailure(applyManifest(tt.manifest), tt.status, tt.words) })
	}
}

func TestImmutableFieldErrorIsPassedThrough(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	d := fullDeployment("d", "1")
	b.apply(vedette.StrategyDefault, d)
	d["spec"].(object)["selector"] = object{"matchLabels": object{"app": "other"}}
	d["spec"].(object)["template"].(object)["metadata"] = object{"labels": object{"app": "other"}}
	out := b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, d), Namespace: b.namespace}, 422, "field is immutable")
	if out.Reason != "Invalid" {
		t.Errorf("reason: got %q", out.Reason)
	}
	before := dig(b.live(apps, "deployments", "d"), "metadata", "uid")
	b.apply(vedette.StrategyRecreate, d)
	after := b.live(apps, "deployments", "d")
	if dig(after, "metadata", "uid") == before || dig(after, "spec", "selector", "matchLabels", "app") != "other" {
		t.Errorf("recreate: got %v", after["metadata"])
	}
}

// TestRecreateRejectsInvalidManifestBeforeDelete checks that a manifest that the API server would reject
// deletes nothing, and that errors that only the live object causes do not prevent a recreate.
func TestRecreateRejectsInvalidManifestBeforeDelete(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	d := fullDeployment("d", "1")
	b.apply(vedette.StrategyDefault, d)
	before := dig(b.live(apps, "deployments", "d"), "metadata", "uid")
	d["spec"].(object)["template"].(object)["metadata"] = object{"labels": object{"app": "other"}}
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, d), Namespace: b.namespace, Strategy: vedette.StrategyRecreate}, 422, "`selector` does not match template `labels`")
	if after := dig(b.live(apps, "deployments", "d"), "metadata", "uid"); after != before {
		t.Error("recreate: the old object is gone and there is no new one")
	}
	s := object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "s"},
		"spec": object{"type": "NodePort", "ports": []any{object{"port": 80, "nodePort": 30123}}}}
	b.apply(vedette.StrategyDefault, s)
	s["spec"].(object)["ports"] = []any{object{"port": 81, "nodePort": 30123}}
	b.apply(vedette.StrategyRecreate, s)
	if port := dig(b.live(core, "services", "s"), "spec", "ports").([]any)[0].(object)["port"]; port != 81.0 {
		t.Errorf("recreate: got port %v of the Service", port)
	}
}

func TestApplyFollowsItsMode(t *testing.T) {
	annotated := func(o object, value string) object {
		o["metadata"].(object)["annotations"] = object{"agent-k8s.armory.io/serverside-apply": value}
		return o
	}
	service := func() object {
		return object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "s"}, "spec": object{"ports": []any{object{"port": 80}}}}
	}
	cm := func() object { return configMap("c", object{"a": "1"}) }
	for _, tt := range []struct {
		name       string
		mode       apply.Mode
		object     object
		serverSide bool
	}{
		{"a service is applied client-side", apply.Mode{}, service(), false},
		{"a ConfigMap is not", apply.Mode{}, cm(), true},
		{"true asks for server-side", apply.Mode{}, annotated(service(), "true"), true},
		{"and enabled", apply.Mode{}, annotated(service(), "enabled"), true},
		{"and force-conflicts", apply.Mode{}, annotated(service(), "force-conflicts"), true},
		{"false does not", apply.Mode{}, annotated(cm(), "false"), false},
		{"always wins", apply.Mode{Enabled: "always"}, service(), true},
		{"never wins", apply.Mode{Enabled: "never"}, annotated(service(), "true"), false},
		{"a kind wins over its annotation", apply.Mode{Kinds: []apply.KindMode{{Kind: "service", Enabled: "never"}}}, annotated(service(), "true"), false},
		{"another kind does not", apply.Mode{Kinds: []apply.KindMode{{Kind: "Pod", Enabled: "always"}}}, service(), false},
	} {
		t.Run(strings.ReplaceAll(tt.name, ",", ""), func(t *testing.T) {
			b := newTestbed(t, operate.Config{ServerSideApply: tt.mode})
			b.apply(vedette.StrategyDefault, tt.object)
			plural, name := "services", "s"
			if tt.object["kind"] == "ConfigMap" {
				plural, name = "configmaps", "c"
			}
			_, serverSide := managers(b.live(core, plural, name))["kubectl Apply"]
			if serverSide != tt.serverSide {
				t.Errorf("server-side: got %v", serverSide)
			}
		})
	}
	if _, err := operate.New(nil, operate.Config{ServerSideApply: apply.Mode{Enabled: "sometimes"}}); err == nil {
		t.Error("an unknown mode is accepted")
	}
}

func TestFieldManagerConflicts(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.kubectlApply([]object{fullDeployment("d", "1")}, "--server-side", "--field-manager=other")
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, fullDeployment("d", "2")), Namespace: b.namespace, Strategy: vedette.StrategyServerSide}, 409, `"other"`, "image")
	b.apply(vedette.StrategyForceConflicts, fullDeployment("d", "2"))
	if image := dig(b.live(apps, "deployments", "d"), "spec", "template", "spec", "containers", 0, "image"); image != "example.com/main:2" {
		t.Errorf("the image is %v", image)
	}
	b.apply(vedette.StrategyForceConflicts, reducedDeployment("d", "3")) // the rest is still other's
	if n := len(dig(b.live(apps, "deployments", "d"), "spec", "template", "spec", "containers").([]any)); n != 2 {
		t.Errorf("got %d containers that another manager owns too", n)
	}
	cleared := reducedDeployment("d", "3")
	cleared["metadata"].(object)["annotations"] = object{"agent-k8s.armory.io/ssa-clear-managed-fields": "true"}
	b.apply(vedette.StrategyForceConflicts, cleared)
	d := b.live(apps, "deployments", "d")
	if n := len(dig(d, "spec", "template", "spec", "containers").([]any)); n != 1 {
		t.Errorf("got %d containers after the managed fields were cleared", n)
	}
	if strings.Contains(string(encode(t, dig(d, "metadata", "managedFields"))), `"other"`) {
		t.Error("got another manager beside ours")
	}
}

func TestReplaceAndGenerateName(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.apply(vedette.StrategyReplace, configMap("r", object{"a": "1", "b": "2"}))
	b.apply(vedette.StrategyReplace, configMap("r", object{"a": "3"}))
	if got := b.live(core, "configmaps", "r")["data"]; string(encode(t, got)) != `{"a":"3"}` {
		t.Errorf("replace: got %v", got)
	}
	outdated := configMap("r", object{"a": "4"})
	outdated["metadata"].(object)["resourceVersion"] = "1"
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, outdated), Namespace: b.namespace, Strategy: vedette.StrategyReplace}, 409, "the object has been modified")
	b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, configMap("r", nil)), Namespace: b.namespace, Strategy: vedette.StrategyCreateOnly}, 409, "already exists")
	generated := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"generateName": "g-"}}
	one, two := b.apply(vedette.StrategyDefault, generated), b.apply(vedette.StrategyRecreate, generated)
	if one.Keys[0].Name == two.Keys[0].Name || !strings.HasPrefix(one.Keys[0].Name, "g-") {
		t.Errorf("generated names: got %v and %v", one.Keys, two.Keys)
	}
}

func TestSecretDataIsNotReturned(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	const canary = "tr0ub4dor-and-3"
	secret := func(key string) object {
		return object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "stringData": object{key: canary}}
	}
	var outcomes []byte
	for i, s := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyServerSide, vedette.StrategyReplace, vedette.StrategyRecreate} {
		outcomes = append(outcomes, encode(t, b.apply(s, secret(fmt.Sprint("k", i))))...)
		if got := dig(b.live(core, "secrets", "s"), "data", fmt.Sprint("k", i)); got == nil {
			t.Errorf("strategy %q: the object was not written", s)
		}
	}
	outcomes = append(outcomes, encode(t, b.mustExecute(vedette.GetArgs{Target: b.target("secret", "s")}))...)
	outcomes = append(outcomes, encode(t, b.mustExecute(vedette.ListArgs{Target: b.target("secret", "")}))...)
	outcomes = append(outcomes, encode(t, b.mustExecute(vedette.PatchArgs{Target: b.target("secret", "s"), Type: vedette.MergePatch, Patch: []byte(`{"stringData":{"p":"` + canary + `"}}`)}))...)
	for _, bad := range []object{
		{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "data": object{"k": canary}},
		{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "data": []any{canary}},
		{"apiVersion": "v1", "kind": "secrets", "metadata": object{"name": "s"}, "data": object{"k": canary}},
		{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "type": "changed", "stringData": object{canary + "!": canary}},
	} {
		for _, s := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyReplace} {
			out := b.execute(vedette.ApplyArgs{Manifest: encode(t, bad), Namespace: b.namespace, Strategy: s})
			if out.State != vedette.Failed {
				t.Errorf("strategy %q of %v: got %s", s, bad, out.State)
			}
			outcomes = append(outcomes, encode(t, out)...)
		}
	}
	outcomes = append(outcomes, encode(t, b.execute(vedette.PatchArgs{Target: b.target("secret", "s"), Type: vedette.MergePatch, Patch: []byte(`{"data":{"p":"` + canary + `"}}`)}))...)
	outcomes = append(outcomes, encode(t, b.mustExecute(vedette.DeleteArgs{Target: b.target("secret", "s")}))...)
	for _, form := range []string{canary, "dHIwdWI0ZG9yLWFuZC0z"} {
		if i := bytes.Index(outcomes, []byte(form)); i >= 0 {
			t.Errorf("an outcome contains the secret: %s", outcomes[max(0, i-300):min(len(outcomes), i+80)])
		}
	}
}

func TestOperationEndsByDeadline(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	out := b.op.Execute(t.Context(), vedette.Operation{ID: "x", Args: vedette.ListArgs{Target: b.target("pod", "")}, Deadline: time.Now().Add(-time.Second)})
	if out.State != vedette.Failed || out.Status != 504 || out.ID != "x" {
		t.Errorf("got %+v", out)
	}
	if out := b.op.Execute(t.Context(), vedette.Operation{}); out.State != vedette.Failed || out.Status != 400 || out.Reason != vedette.ReasonUnknownToAgent {
		t.Errorf("no arguments: got %+v", out)
	}
}

// TestApplyReportsUnchanged checks whether an apply reports that it changed nothing, and which
// requests it needs for that.
func TestApplyReportsUnchanged(t *testing.T) {
	s := newRequestLog(t)
	drift := func(plural, name string) {
		must(t, plane.Patch(t.Context(), s.path(core, plural, name), object{"data": object{"a": "9", "b": "2"}}))
	}
	for _, tt := range []struct {
		strategy  vedette.Strategy
		compare   bool
		methods   string // what the second apply of the same asks
		unchanged bool   // and whether it says so
	}{
		{vedette.StrategyClientSide, false, "GET", true},
		{vedette.StrategyReplace, false, "GET PUT", true},
		{vedette.StrategyServerSide, false, "GET PATCH", false}, // the object before, for the record
		{vedette.StrategyServerSide, true, "GET PATCH", true},
		{vedette.StrategyDefault, true, "GET PATCH", true},
	} {
		t.Run(fmt.Sprintf("%s,%v", tt.strategy, tt.compare), func(t *testing.T) {
			name := strings.ToLower(fmt.Sprintf("c-%s-%v", tt.strategy, tt.compare))
			apply := func(value string) vedette.Outcome {
				s.takeMethods()
				return s.mustExecute(vedette.ApplyArgs{Manifest: encode(t, configMap(name, object{"a": value})), Namespace: s.namespace, Strategy: tt.strategy, Compare: tt.compare})
			}
			if out := apply("1"); out.Unchanged || out.Status != 201 {
				t.Errorf("new object: got status %d, unchanged %v", out.Status, out.Unchanged)
			}
			out := apply("1")
			if methods := s.takeMethods(); out.Unchanged != tt.unchanged || methods != tt.methods {
				t.Errorf("same manifest: got unchanged %v after %s, want %v after %s", out.Unchanged, methods, tt.unchanged, tt.methods)
			}
			if out := apply("2"); out.Unchanged {
				t.Error("changed manifest: got unchanged")
			}
			drift("configmaps", name)
			if tt.strategy == vedette.StrategyServerSide {
				return // another manager's now
			}
			if out := apply("2"); out.Unchanged {
				t.Error("restored object: got unchanged")
			}
			data := s.live(core, "configmaps", name)["data"]
			if want := tt.strategy == vedette.StrategyReplace; dig(data, "a") != "2" || (dig(data, "b") == nil) != want {
				t.Errorf("data: got %v", data)
			}
		})
	}
}
