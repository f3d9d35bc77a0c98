//go:build linux

package operate_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestFieldManagersMatchKubectl scales and rolls out by kubectl and by the agent, and compares the
// field managers.
func TestFieldManagersMatchKubectl(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	for _, name := range []string{"theirs", "ours"} {
		b.apply(vedette.StrategyCreateOnly, workloadManifest("Deployment", name, "1"))
		b.awaitRollout("Deployment", name) // otherwise the controller may not make a revision of it
		b.apply(vedette.StrategyForceConflicts, workloadManifest("Deployment", name, "2"))
		b.awaitRollout("Deployment", name)
	}
	ours := b.target("deployment", "ours")
	for _, step := range []struct {
		kubectl string
		args    vedette.Args
	}{
		{"scale deployment theirs --replicas=2", vedette.ScaleArgs{Target: ours, Replicas: 2}},
		{"rollout pause deployment theirs", vedette.PauseArgs{Target: ours}},
		{"rollout resume deployment theirs", vedette.ResumeArgs{Target: ours}},
		{"rollout restart deployment theirs", vedette.RestartArgs{Target: ours}},
		{"rollout undo deployment theirs --to-revision=1", vedette.UndoArgs{Target: ours, Revision: 1}},
	} {
		b.kubectl(strings.Fields(step.kubectl)...)
		b.mustExecute(step.args)
		theirs, ours := managers(b.live(apps, "deployments", "theirs")), managers(b.live(apps, "deployments", "ours"))
		if k, a := string(encode(t, theirs)), string(encode(t, ours)); k != a {
			t.Errorf("%s: kubectl left the managers\n%s\nthe agent\n%s", step.kubectl, k, a)
		}
	}
}

// TestUndoWarnsOfClientSideApply checks that an undo warns as kubectl does.
func TestUndoWarnsOfClientSideApply(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	for name, strategy := range map[string]vedette.Strategy{"client": vedette.StrategyClientSide, "server": vedette.StrategyServerSide} {
		b.apply(strategy, workloadManifest("Deployment", name, "1"))
		b.awaitRollout("Deployment", name)
		b.apply(strategy, workloadManifest("Deployment", name, "2"))
		b.awaitRollout("Deployment", name)
		shown, err := plane.KubectlCombinedOutput(t.Context(), "-n", b.namespace, "rollout", "undo", "deployment/"+name, "--dry-run=server")
		must(t, err)
		out := b.mustExecute(vedette.UndoArgs{Target: b.target("deployment", name)})
		warned := len(out.Warnings) == 1 && strings.Contains(out.Warnings[0], "was applied client-side")
		if kubectl := strings.Contains(string(shown), "Warning: "); kubectl != warned {
			t.Errorf("%s: got warnings %q, want as kubectl %s", name, out.Warnings, shown)
		}
	}
}

// TestTakeOverFailureIsWarned applies server-side what was applied client-side, while the managed
// fields cannot be moved. The apply succeeds, with a warning.
func TestTakeOverFailureIsWarned(t *testing.T) {
	for _, refused := range []string{"the move", "the second apply"} {
		t.Run(refused, func(t *testing.T) {
			applies := 0
			b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				kindOfRequest := ""
				switch kind := r.Header.Get("Content-Type"); {
				case kind == "application/json-patch+json":
					kindOfRequest = "the move"
				case kind == applyPatch && r.URL.Query().Get("fieldManager") == "kubectl":
					applies++
					if applies > 1 {
						kindOfRequest = "the second apply"
					}
				}
				if kindOfRequest == refused {
					writeStatus(w, 403, "Forbidden", "nobody moves fields here: dHIwdWI0ZG9yLWFuZC0z")
				}
				return kindOfRequest == refused
			})
			for _, o := range []object{fullDeployment("d", "1"), {"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "stringData": object{"k": "tr0ub4dor-and-3"}}} {
				b.apply(vedette.StrategyClientSide, o)
				applies = 0
				out := b.apply(vedette.StrategyForceConflicts, o)
				if len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "was applied") || !strings.Contains(out.Warnings[0], "nobody moves fields here") {
					t.Fatalf("warnings: got %q", out.Warnings)
				}
				if o["kind"] == "Secret" && strings.Contains(out.Warnings[0], "dHIw") {
					t.Errorf("warnings contain the Secret: %q", out.Warnings)
				}
			}
			cleared := fullDeployment("d", "2")
			cleared["metadata"].(object)["annotations"] = object{"agent-k8s.armory.io/ssa-clear-managed-fields": "true"}
			applies = 0
			b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, cleared), Namespace: b.namespace, Strategy: vedette.StrategyForceConflicts}, 403, "nobody moves fields here")
		})
	}
}

// TestApplyWarnsOfDeletion applies to an object that waits for a finalizer.
func TestApplyWarnsOfDeletion(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	deleting := configMap("c", object{"a": "1"})
	deleting["metadata"].(object)["finalizers"] = []any{"example.com/wait"}
	b.apply(vedette.StrategyClientSide, deleting)
	b.mustExecute(vedette.DeleteArgs{Target: b.target("configmap", "c"), NoWait: true})
	for _, s := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyServerSide} {
		out := b.apply(s, deleting)
		if len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "is being deleted") {
			t.Errorf("strategy %q: got warnings %q", s, out.Warnings)
		}
	}
	must(t, plane.Patch(t.Context(), b.path(core, "configmaps", "c"), object{"metadata": object{"finalizers": nil}}))
}
