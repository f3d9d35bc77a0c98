//go:build linux

package operate_test

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// dryRun executes an operation as a dry run.
func (b *testbed) dryRun(args vedette.Args) vedette.Outcome {
	b.Helper()
	out := b.op.Execute(b.Context(), vedette.Operation{ID: "01", Args: args, DryRun: true, Deadline: time.Now().Add(time.Minute)})
	if out.Unchanged {
		b.Errorf("dry run of %+v: got Unchanged", args)
	}
	if out.CacheObject != nil {
		b.Errorf("dry run of %+v: got an object to store: %+v", args, out.CacheObject.Key)
	}
	return out
}

// resourceVersions returns the resourceVersions of all objects in the namespace, except those that a
// controller creates in every namespace.
func (b *testbed) resourceVersions(lists ...string) map[string]any {
	b.Helper()
	all := map[string]any{}
	for _, list := range lists {
		group, plural, _ := strings.Cut(list, " ")
		items, _ := b.live(group, plural, "")["items"].([]any)
		for _, item := range items {
			if name := dig(item, "metadata", "name").(string); name != "kube-root-ca.crt" {
				all[plural+"/"+name] = dig(item, "metadata", "resourceVersion")
			}
		}
	}
	return all
}

func colorConfigMap(name, colour string) object {
	return configMap(name, object{"colour": colour})
}

// TestDryRunChangesNothing checks for all verbs and strategies that the dry run returns the object as
// it would become, and changes nothing.
func TestDryRunChangesNothing(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	service := func(port int) object {
		return object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "s"}, "spec": object{"selector": object{"a": "b"}, "ports": []any{object{"port": port}}}}
	}
	for _, tag := range []string{"1", "2"} {
		b.apply(vedette.StrategyDefault, workloadManifest("StatefulSet", "db", tag)) // which has no controller's second thoughts
		b.apply(vedette.StrategyDefault, workloadManifest("Deployment", "web", tag))
		b.awaitRollout("Deployment", "web")
		b.awaitRollout("StatefulSet", "db")
	}
	b.apply(vedette.StrategyDefault, workloadManifest("Deployment", "held", "1"))
	b.awaitRollout("Deployment", "held")
	b.mustExecute(vedette.PauseArgs{Target: b.target("deployment", "held")})
	b.apply(vedette.StrategyDefault, colorConfigMap("c", "blue"))
	b.apply(vedette.StrategyDefault, service(80))
	b.awaitObserved("deployments/held", "deployments/web")
	apply := func(o object, s vedette.Strategy) vedette.Args {
		return vedette.ApplyArgs{Manifest: encode(t, o), Namespace: b.namespace, Strategy: s}
	}
	other := workloadManifest("Deployment", "web", "2")
	other["spec"].(object)["selector"] = object{"matchLabels": object{"app": "other"}}
	other["spec"].(object)["template"].(object)["metadata"] = object{"labels": object{"app": "other"}}
	image := []any{"spec", "template", "spec", "containers", 0, "image"}
	cases := []struct {
		name string
		args vedette.Args
		path []any
		want any
	}{
		{"a new object", apply(colorConfigMap("new", "red"), vedette.StrategyDefault), []any{"data", "colour"}, "red"},
		{"a new one client-side", apply(colorConfigMap("new", "red"), vedette.StrategyClientSide), []any{"data", "colour"}, "red"},
		{"a create", apply(colorConfigMap("new", "red"), vedette.StrategyCreateOnly), []any{"data", "colour"}, "red"},
		{"a replace of nothing", apply(colorConfigMap("new", "red"), vedette.StrategyReplace), []any{"data", "colour"}, "red"},
		{"a recreate of nothing", apply(colorConfigMap("new", "red"), vedette.StrategyRecreate), []any{"data", "colour"}, "red"},
		{"server-side", apply(colorConfigMap("c", "red"), vedette.StrategyServerSide), []any{"data", "colour"}, "red"},
		{"by force", apply(colorConfigMap("c", "red"), vedette.StrategyForceConflicts), []any{"data", "colour"}, "red"},
		{"client-side", apply(service(81), vedette.StrategyClientSide), []any{"spec", "ports", 0, "port"}, 81.0},
		{"server-side over client-side", apply(workloadManifest("Deployment", "web", "9"), vedette.StrategyForceConflicts), image, "example.com/m:9"},
		{"replace", apply(colorConfigMap("c", "red"), vedette.StrategyReplace), []any{"data", "colour"}, "red"},
		{"recreate", apply(other, vedette.StrategyRecreate), []any{"spec", "selector", "matchLabels", "app"}, "other"},
		{"recreate keeps the name", apply(other, vedette.StrategyRecreate), []any{"metadata", "name"}, "web"},
		{"strategic patch", vedette.PatchArgs{Target: b.target("cm", "c"), Patch: []byte(`{"data":{"colour":"red"}}`)}, []any{"data", "colour"}, "red"},
		{"JSON patch", vedette.PatchArgs{Target: b.target("cm", "c"), Type: "json", Patch: []byte(`[{"op":"replace","path":"/data/colour","value":"red"}]`)}, []any{"data", "colour"}, "red"},
		{"scale", vedette.ScaleArgs{Target: b.target("deployment", "web"), Replicas: 7}, []any{"spec", "replicas"}, 7.0},
		{"undo", vedette.UndoArgs{Target: b.target("deployment", "web")}, image, "example.com/m:1"},
		{"undo of a StatefulSet", vedette.UndoArgs{Target: b.target("sts", "db"), Revision: 1}, image, "example.com/m:1"},
		{"pause", vedette.PauseArgs{Target: b.target("deployment", "web")}, []any{"spec", "paused"}, true},
		{"resume", vedette.ResumeArgs{Target: b.target("deployment", "held")}, []any{"spec", "paused"}, nil},
	}
	lists := []string{core + " configmaps", core + " services", apps + " deployments", apps + " statefulsets", apps + " replicasets", core + " pods"}
	before := b.resourceVersions(lists...)
	for _, tt := range cases {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			out := b.dryRun(tt.args)
			if out.State != vedette.Done || len(out.Objects) != 1 {
				t.Fatalf("%s %d %s: %s", out.State, out.Status, out.Reason, out.Message)
			}
			if got := dig(decode(t, out.Objects[0]), tt.path...); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if created := decode(t, b.dryRun(cases[0].args).Objects[0]); dig(created, "metadata", "resourceVersion") != nil {
		t.Errorf("new object: got a resourceVersion: %v", created)
	}
	restarted := b.dryRun(vedette.RestartArgs{Target: b.target("deployment", "web")})
	if at := dig(decode(t, restarted.Objects[0]), "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"); at == nil {
		t.Errorf("restart: got %s", restarted.Objects[0])
	}
	if after := b.resourceVersions(lists...); !maps.Equal(before, after) {
		t.Errorf("before %v\nafter  %v", before, after)
	}
}

// awaitObserved waits until the controllers have observed the current generation of objects of apps.
func (b *testbed) awaitObserved(names ...string) {
	b.Helper()
	for _, name := range names {
		plural, name, _ := strings.Cut(name, "/")
		must(b, plane.Await(b.Context(), b.path(apps, plural, name), func(o object) bool {
			return dig(o, "metadata", "generation") == dig(o, "status", "observedGeneration") && (dig(o, "spec", "paused") != true ||
				strings.Contains(string(encode(b, dig(o, "status"))), "DeploymentPaused"))
		}))
	}
}

// TestDryRunDelete checks that the dry run of a delete names the objects, keeps them, and does not wait.
func TestDryRunDelete(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	for _, name := range []string{"a", "b"} {
		o := colorConfigMap(name, "blue")
		o["metadata"].(object)["labels"] = object{"pick": "yes"}
		o["metadata"].(object)["finalizers"] = []any{"example.com/never"} // a real delete would not end
		b.apply(vedette.StrategyDefault, o)
	}
	before := b.resourceVersions(core + " configmaps")
	none := int64(0)
	for names, args := range map[string]vedette.DeleteArgs{
		"a":   {Target: b.target("cm", "a"), GraceSeconds: &none, Propagation: "foreground"},
		"a b": {Target: b.target("cm", ""), LabelSelector: "pick=yes"},
		"":    {Target: b.target("cm", "none"), MissingOK: true},
	} {
		out := b.dryRun(args)
		var got []string
		for _, key := range out.Keys {
			got = append(got, key.Name)
		}
		if strings.Join(got, " ") != names || out.State != vedette.Done {
			t.Errorf("dry run of %+v: got deleted %v: %s %s", args, got, out.State, out.Message)
		}
	}
	if out := b.dryRun(vedette.DeleteArgs{Target: b.target("cm", "none")}); out.Status != 404 {
		t.Errorf("missing object: got %+v", out)
	}
	if after := b.resourceVersions(core + " configmaps"); !maps.Equal(before, after) {
		t.Errorf("before %v\nafter  %v", before, after)
	}
	for _, name := range []string{"a", "b"} {
		must(t, plane.Patch(t.Context(), b.path(core, "configmaps", name), object{"metadata": object{"finalizers": nil}}))
	}
}

// TestDryRunMatchesKubectl compares the object of a dry run with what kubectl shows.
func TestDryRunMatchesKubectl(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.kubectlApply([]object{workloadManifest("Deployment", "web", "1")})
	b.awaitRollout("Deployment", "web")
	manifest := workloadManifest("Deployment", "web", "2")
	for flags, strategy := range map[string]vedette.Strategy{"": vedette.StrategyClientSide, "--server-side --force-conflicts": vedette.StrategyForceConflicts} {
		file := t.TempDir() + "/m.json"
		must(t, os.WriteFile(file, encode(t, manifest), 0o600))
		args := append([]string{"apply", "-f", file, "--dry-run=server", "-o", "json"}, strings.Fields(flags)...)
		theirs := decode(t, []byte(b.kubectl(args...)))
		out := b.dryRun(vedette.ApplyArgs{Manifest: encode(t, manifest), Namespace: b.namespace, Strategy: strategy})
		if out.State != vedette.Done {
			t.Fatalf("got %+v", out)
		}
		ours := decode(t, out.Objects[0])
		for _, part := range []string{"spec", "metadata"} {
			a, k := ours[part], theirs[part]
			for _, o := range []any{a, k} {
				delete(o.(object), "managedFields")
				if annotations, is := dig(o, "annotations").(object); is {
					delete(annotations, "kubectl.kubernetes.io/last-applied-configuration") // whose members are in another order
				}
			}
			if string(encode(t, a)) != string(encode(t, k)) {
				t.Errorf("%q %s\nours    %s\nkubectl %s", flags, part, encode(t, a), encode(t, k))
			}
		}
	}
}

// TestDryRunDoesNotReturnSecretData checks that no outcome of a dry run contains the data of a Secret.
func TestDryRunDoesNotReturnSecretData(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	secret := func(value string) object {
		return object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "type": "Opaque", "stringData": object{"password": value}}
	}
	for round := range 2 {
		for _, s := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyForceConflicts, vedette.StrategyReplace, vedette.StrategyRecreate} {
			out := b.dryRun(vedette.ApplyArgs{Manifest: encode(t, secret("c4n4ry")), Namespace: b.namespace, Strategy: s})
			raw, err := json.Marshal(out)
			must(t, err)
			if out.State != vedette.Done || strings.Contains(string(raw), "c4n4ry") || strings.Contains(string(raw), "YzRuNHJ5") {
				t.Errorf("round %d, strategy %q: got %s", round, s, raw)
			}
		}
		b.apply(vedette.StrategyDefault, secret("other"))
	}
}

// TestDryRunIsRetriedAfterLostAnswer checks that a dry run is retried whatever it does, and that it
// fails, and is not lost, if all responses are lost: nothing can have taken effect.
func TestDryRunIsRetriedAfterLostAnswer(t *testing.T) {
	var aborts atomic.Int32 // that are still to come
	b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, backend http.Handler) bool {
		if !isWrite(r) {
			return false
		}
		if r.Method != http.MethodDelete && r.URL.Query().Get("dryRun") != "All" {
			t.Errorf("%s %s is not a dry run", r.Method, r.URL)
		}
		if aborts.Add(-1) < 0 {
			return false
		}
		panic(http.ErrAbortHandler)
	})
	must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), colorConfigMap("c", "blue")))
	before := b.resourceVersions(core + " configmaps")
	for _, args := range []vedette.Args{
		vedette.PatchArgs{Target: b.target("cm", "c"), Type: "json", Patch: []byte(`[{"op":"remove","path":"/data/colour"}]`)},
		vedette.ApplyArgs{Manifest: encode(t, colorConfigMap("new", "red")), Namespace: b.namespace, Strategy: vedette.StrategyCreateOnly},
		vedette.DeleteArgs{Target: b.target("cm", "c")},
	} {
		aborts.Store(2)
		if out := b.dryRun(args); out.State != vedette.Done {
			t.Errorf("%s: %s %d %s", args.Verb(), out.State, out.Status, out.Message)
		}
		aborts.Store(math.MaxInt32)
		out := b.op.Execute(t.Context(), vedette.Operation{DryRun: true, Args: args, Deadline: time.Now().Add(200 * time.Millisecond)})
		if out.State != vedette.Failed {
			t.Errorf("%s: %s %d %s", args.Verb(), out.State, out.Status, out.Message)
		}
	}
	aborts.Store(0)
	if after := b.resourceVersions(core + " configmaps"); !maps.Equal(before, after) {
		t.Errorf("before %v\nafter  %v", before, after)
	}
}

// TestDryRunReportsErrors checks that the error of the API server is in the outcome.
func TestDryRunReportsErrors(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	out := b.dryRun(vedette.ApplyArgs{Manifest: encode(t, object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "a"}, "spec": object{"ports": []any{}}}), Namespace: b.namespace})
	if out.State != vedette.Failed || out.Status != 422 {
		t.Errorf("got %+v", out)
	}
	b.wantContains(out.Message, "spec.ports: Required value")
	if out := b.dryRun(nil); out.State != vedette.Failed || out.Reason != vedette.ReasonUnknownToAgent || out.Message != "this agent knows no operation without arguments" {
		t.Errorf("unknown operation: got %+v", out)
	}
}
