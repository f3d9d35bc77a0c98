//go:build linux

package operate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

func (b *testbed) wantContains(text, words string) {
	b.Helper()
	if !strings.Contains(text, words) {
		b.Errorf("got %q, want it to contain %q", text, words)
	}
}

// workloadManifest is a workload with one pod.
func workloadManifest(kind, name, tag string) object {
	spec := object{"selector": object{"matchLabels": object{"app": name}},
		"template": object{"metadata": object{"labels": object{"app": name}},
			"spec": object{"containers": []any{object{"name": "main", "image": "example.com/m:" + tag}}}}}
	switch kind {
	case "Deployment":
		spec["replicas"] = 1
	case "StatefulSet":
		spec["replicas"], spec["serviceName"] = 1, name
	}
	return object{"apiVersion": "apps/v1", "kind": kind, "metadata": object{"name": name}, "spec": spec}
}

func (b *testbed) image(plural, name string) any {
	b.Helper()
	return dig(b.live(apps, plural, name), "spec", "template", "spec", "containers", 0, "image")
}

// awaitRollout waits until a rollout is done, by the status verb and by kubectl.
func (b *testbed) awaitRollout(kind, name string) {
	b.Helper()
	plural := strings.ToLower(kind) + "s"
	must(b, plane.Await(b.Context(), b.path(apps, plural, name), func(object) bool {
		var s vedette.RolloutStatus
		must(b, json.Unmarshal(b.mustExecute(vedette.StatusArgs{Target: b.target(kind, name)}).Result, &s))
		return s.Done
	}))
	b.wantContains(b.kubectl("rollout", "status", "--watch=false", strings.ToLower(kind)+"/"+name), "ro")
}

// TestRolloutsOfOtherKinds checks how errors call kinds without rollouts, with and without a group.
func TestRolloutsOfOtherKinds(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.wantFailure(vedette.PauseArgs{Target: b.target("Pod", "x")}, 400, `pods "x": pausing is not supported`)
	b.wantFailure(vedette.PauseArgs{Target: b.target("Job", "x")}, 400, `jobs.batch "x": pausing is not supported`)
}

func TestRolloutsMatchKubectl(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			b := newTestbed(t, operate.Config{})
			plural := strings.ToLower(kind) + "s"
			for _, tag := range []string{"1", "2", "3"} {
				b.apply(vedette.StrategyDefault, workloadManifest(kind, "ours", tag))
				b.kubectlApply([]object{workloadManifest(kind, "theirs", tag)})
				b.awaitRollout(kind, "ours")
				b.awaitRollout(kind, "theirs")
			}
			wantSameImage := func(action string) {
				t.Helper()
				if a, k := b.image(plural, "ours"), b.image(plural, "theirs"); a != k {
					t.Errorf("%s: got %v, want as kubectl %v", action, a, k)
				}
			}
			b.wantHistory(kind, 1, 2, 3)
			b.mustExecute(vedette.UndoArgs{Target: b.target(kind, "ours")})
			b.kubectl("rollout", "undo", kind+"/theirs")
			wantSameImage("undo")
			b.awaitRollout(kind, "ours")
			b.awaitRollout(kind, "theirs")
			b.wantHistory(kind, 1, 3, 4)
			b.mustExecute(vedette.UndoArgs{Target: b.target(kind, "ours"), Revision: 1})
			b.kubectl("rollout", "undo", kind+"/theirs", "--to-revision=1")
			wantSameImage("undo to a revision")
			if image := b.image(plural, "ours"); image != "example.com/m:1" {
				t.Errorf("revision 1: got image %v", image)
			}
			b.awaitRollout(kind, "ours")
			b.mustExecute(vedette.UndoArgs{Target: b.target(kind, "ours"), RevisionsBack: 2})
			if image := b.image(plural, "ours"); image != "example.com/m:3" {
				t.Errorf("two revisions back: got image %v", image)
			}
			b.awaitRollout(kind, "ours")
			b.wantWarnings(b.wantFailure(vedette.UndoArgs{Target: b.target(kind, "ours"), Revision: 99}, 404, "unable to find specified revision 99 in history"))
			b.wantFailure(vedette.UndoArgs{Target: b.target(kind, "ours"), RevisionsBack: 7}, 400, "There are 3 revision(s) in total, cannot rollback 7")
			latest := b.wantHistory(kind)
			out := b.mustExecute(vedette.UndoArgs{Target: b.target(kind, "ours"), Revision: latest})
			b.wantWarnings(out) // nothing was undone
			b.wantContains(out.Message, fmt.Sprintf("skipped rollback (current template already matches revision %d)", latest))
			b.checkRestarts(kind, plural)
		})
	}
}

// wantHistory compares the numbers of the revisions with want, and returns the last revision.
func (b *testbed) wantHistory(kind string, want ...int64) int64 {
	b.Helper()
	var revisions []vedette.Revision
	must(b, json.Unmarshal(b.mustExecute(vedette.HistoryArgs{Target: b.target(kind, "ours")}).Result, &revisions))
	var got []int64
	for _, r := range revisions {
		got = append(got, r.Number)
	}
	if want != nil && fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("history of %s: got %v, want %v", kind, got, want)
	}
	if last := revisions[len(revisions)-1]; !last.Current {
		b.Errorf("last revision of %s is not current: got %+v", kind, revisions)
	}
	return revisions[len(revisions)-1].Number
}

func (b *testbed) checkRestarts(kind, plural string) {
	b.Helper()
	restartedAt := func() any {
		return dig(b.live(apps, plural, "ours"), "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
	}
	b.mustExecute(vedette.RestartArgs{Target: b.target(kind, "ours")})
	first := restartedAt()
	b.mustExecute(vedette.RestartArgs{Target: b.target(kind, "ours")})
	if first == nil || restartedAt() == first {
		b.Errorf("%s: got restarts at %v and at %v", kind, first, restartedAt())
	}
	if kind != "Deployment" {
		b.wantFailure(vedette.PauseArgs{Target: b.target(kind, "ours")}, 400, "pausing is not supported")
		b.wantFailure(vedette.ResumeArgs{Target: b.target(kind, "ours")}, 400, "resuming is not supported")
		return
	}
	b.wantFailure(vedette.ResumeArgs{Target: b.target(kind, "ours")}, 400, "is not paused")
	b.mustExecute(vedette.PauseArgs{Target: b.target(kind, "ours")})
	if dig(b.live(apps, plural, "ours"), "spec", "paused") != true {
		b.Error("not paused")
	}
	b.wantFailure(vedette.PauseArgs{Target: b.target(kind, "ours")}, 400, "is already paused")
	b.wantFailure(vedette.RestartArgs{Target: b.target(kind, "ours")}, 400, "resume it")
	b.wantFailure(vedette.UndoArgs{Target: b.target(kind, "ours")}, 400, "resume it")
	b.mustExecute(vedette.ResumeArgs{Target: b.target(kind, "ours")})
	if dig(b.live(apps, plural, "ours"), "spec", "paused") != nil {
		b.Error("still paused")
	}
}

func TestScaleAndPatch(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.apply(vedette.StrategyDefault, fullDeployment("d", "1"))
	for _, kind := range []string{"deployment", "Deployment.apps"} {
		out := b.mustExecute(vedette.ScaleArgs{Target: b.target(kind, "d"), Replicas: 2})
		if dig(decode(t, out.Objects[0]), "spec", "replicas") != float64(2) {
			t.Errorf("scale: got %s", out.Objects[0])
		}
	}
	b.mustExecute(vedette.ScaleArgs{Target: b.target("deployment", "d")})
	b.wantFailure(vedette.ScaleArgs{Target: b.target("deployment", "none"), Replicas: 1}, 404, `"none" not found`)
	b.wantFailure(vedette.ScaleArgs{Target: b.target("deployment", "d"), Replicas: -1}, 400)
	b.apply(vedette.StrategyDefault, configMap("c", object{"a": "1"}))
	b.wantFailure(vedette.ScaleArgs{Target: b.target("configmap", "c"), Replicas: 1}, 400, "can't be scaled")

	b.mustExecute(vedette.PatchArgs{Target: b.target("deployment", "d"), Patch: []byte(`spec: {template: {spec: {containers: [{name: sidecar, image: "example.com/s:2"}]}}}`)})
	if c := dig(b.live(apps, "deployments", "d"), "spec", "template", "spec", "containers").([]any); len(c) != 2 || !strings.Contains(fmt.Sprint(c), "example.com/s:2") {
		t.Errorf("strategic patch: got %v", c)
	}
	b.mustExecute(vedette.PatchArgs{Target: b.target("cm", "c"), Type: "merge", Patch: []byte(`{"data":{"a":null,"b":"2"}}`)})
	b.mustExecute(vedette.PatchArgs{Target: b.target("cm", "c"), Type: "json", Patch: []byte(`[{"op":"add","path":"/data/c","value":"3"}]`)})
	if got := encode(t, b.live(core, "configmaps", "c")["data"]); string(got) != `{"b":"2","c":"3"}` {
		t.Errorf("patches: got %s", got)
	}
	b.wantFailure(vedette.PatchArgs{Target: b.target("cm", "c"), Type: "json", Patch: []byte(`{"data":{}}`)}, 400, "not a list of steps")
	b.wantFailure(vedette.PatchArgs{Target: b.target("cm", "c"), Type: "json", Patch: []byte(`[{"op":"test","path":"/data/c","value":"9"}]`)}, 422)
	b.wantFailure(vedette.PatchArgs{Target: b.target("cm", "c"), Type: "odd", Patch: []byte(`{}`)}, 400, "odd")
}

// TestScaleIsDoneIfReadingFails checks that a workload that was scaled is not reported as failed because
// it cannot be read afterwards. A dry run needs what it reads.
func TestScaleIsDoneIfReadingFails(t *testing.T) {
	b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/deployments/d") {
			return false
		}
		writeStatus(w, 403, "Forbidden", "get is not for you")
		return true
	})
	b.apply(vedette.StrategyCreateOnly, workloadManifest("Deployment", "d", "1"))
	out := b.mustExecute(vedette.ScaleArgs{Target: b.target("deployment", "d"), Replicas: 4})
	if got := dig(b.live(apps, "deployments", "d"), "spec", "replicas"); got != float64(4) {
		t.Fatalf("got %v replicas in the cluster, want 4", got)
	}
	if len(out.Keys) != 1 || out.Keys[0].Name != "d" || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "get is not for you") {
		t.Errorf("got keys %v and warnings %q, want the key and why it was not read", out.Keys, out.Warnings)
	}
	dry := b.op.Execute(t.Context(), vedette.Operation{Args: vedette.ScaleArgs{Target: b.target("deployment", "d"), Replicas: 5}, DryRun: true,
		Deadline: time.Now().Add(time.Minute)})
	if dry.State != vedette.Failed || dry.Status != 403 {
		t.Errorf("dry run: got %s %d %s, want failed 403", dry.State, dry.Status, dry.Message)
	}
}

// TestUnreadableSuccessIsLost checks that an operation is lost if the answer to its change is a success
// whose body is not an object.
func TestUnreadableSuccessIsLost(t *testing.T) {
	answer := ""
	b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if answer == "" || r.Method != http.MethodPatch {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
		return true
	})
	b.apply(vedette.StrategyDefault, configMap("c", object{"a": "1"}))
	for _, answer = range []string{`{"metadata": {}`, `[]`, `<html>welcome</html>`} {
		out := b.execute(vedette.PatchArgs{Target: b.target("cm", "c"), Type: "merge", Patch: []byte(`{"data":{"b":"2"}}`)})
		if out.State != vedette.Lost {
			t.Errorf("answer %q: got %s %d %s, want lost", answer, out.State, out.Status, out.Message)
		}
	}
}

// TestScaleReadsFromWatchCache checks that a scaled object is read at its new version, which needs no
// etcd, and read again if the API server cannot serve that version.
func TestScaleReadsFromWatchCache(t *testing.T) {
	var versions []string
	cacheIsBehind := false
	b := newProxyTestbed(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/deployments/d") {
			return false
		}
		version := r.URL.Query().Get("resourceVersion")
		versions = append(versions, version)
		if version == "" || !cacheIsBehind {
			return false
		}
		writeStatus(w, 504, "Timeout", "Too large resource version: "+version+", current: 1")
		return true
	})
	b.apply(vedette.StrategyCreateOnly, workloadManifest("Deployment", "d", "1"))
	for n, want := range map[int64]int{2: 1, 3: 2} {
		versions, cacheIsBehind = nil, n == 3
		out := decode(t, b.mustExecute(vedette.ScaleArgs{Target: b.target("deployment", "d"), Replicas: n}).Objects[0])
		if got := dig(out, "spec", "replicas"); got != float64(n) {
			t.Errorf("got %v replicas, want %d", got, n)
		}
		versions = versions[min(1, len(versions)):] // the first is of the object before, for the record
		if len(versions) != want || versions[0] == "" || want == 2 && versions[1] != "" {
			t.Errorf("read at versions: got %q", versions)
		}
	}
}
