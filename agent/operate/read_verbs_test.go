//go:build linux

package operate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// startPod applies a pod of an init container and two others, and waits for it.
func (b *testbed) startPod(name string) {
	b.Helper()
	b.apply(vedette.StrategyDefault, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name}, "spec": object{
		"initContainers": []any{object{"name": "init", "image": "example.com/i"}},
		"containers":     []any{object{"name": "main", "image": "example.com/m"}, object{"name": "other", "image": "example.com/o"}}}})
	must(b, plane.Await(b.Context(), b.path(core, "pods", name), func(pod object) bool {
		return dig(pod, "status", "phase") == "Running"
	}))
}

func (b *testbed) readLogs(a vedette.LogsArgs) string {
	b.Helper()
	out := b.mustExecute(a)
	defer out.Stream.Close()
	all, err := io.ReadAll(out.Stream)
	must(b, err)
	return string(all)
}

func TestLogsMatchKubectl(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.startPod("p")
	must(t, plane.AppendLog("one", "two", "three"))
	pod := vedette.Target{Namespace: b.namespace, Name: "p"}
	two := int64(2)
	for _, tt := range []struct {
		args  vedette.LogsArgs
		flags []string
	}{
		{vedette.LogsArgs{Target: pod}, nil},
		{vedette.LogsArgs{Target: pod, Container: "other"}, []string{"-c", "other"}},
		{vedette.LogsArgs{Target: pod, Container: "init"}, []string{"-c", "init"}},
		{vedette.LogsArgs{Target: pod, AllContainers: true}, []string{"--all-containers"}},
		{vedette.LogsArgs{Target: pod, TailLines: &two}, []string{"--tail=2"}},
		{vedette.LogsArgs{Target: pod, TailLines: &two, Timestamps: true}, []string{"--tail=2", "--timestamps"}},
		{vedette.LogsArgs{Target: pod, SinceSeconds: &two}, []string{"--since=2s"}},
		{vedette.LogsArgs{Target: pod, SinceTime: time.Now().Add(time.Hour)}, []string{"--since-time=" + time.Now().Add(time.Hour).Format(time.RFC3339)}},
	} {
		if a, k := b.readLogs(tt.args), b.kubectl(append([]string{"logs", "p"}, tt.flags...)...); a != k && tt.args.SinceSeconds == nil {
			t.Errorf("%v: got %q, want as kubectl %q", tt.flags, a, k)
		}
	}
	if got := b.readLogs(vedette.LogsArgs{Target: pod, TailLines: &two}); got != "two\nthree\n" {
		t.Errorf("last two lines: got %q", got)
	}
	if n := strings.Count(b.readLogs(vedette.LogsArgs{Target: pod, AllContainers: true}), "three"); n != 3 {
		t.Errorf("got logs of %d containers", n)
	}
	_, refused := plane.Kubectl(t.Context(), "-n", b.namespace, "logs", "p", "--previous")
	if out := b.execute(vedette.LogsArgs{Target: pod, Previous: true}); (out.State == vedette.Failed) != (refused != nil) {
		t.Errorf("previous: got %s %s, want as kubectl %v", out.State, out.Message, refused)
	}
	b.wantFailure(vedette.LogsArgs{Target: pod, Container: "none"}, 400, "none is not valid for pod p")
	b.wantFailure(vedette.LogsArgs{Target: b.target("pod", "none")}, 404, `"none" not found`)
	b.wantFailure(vedette.LogsArgs{Target: b.target("deployment", "p")}, 404)
}

func TestFollowedLogsArriveLineByLine(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.startPod("p")
	none := int64(0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, all := range []bool{false, true} {
		out := b.op.Execute(ctx, vedette.Operation{Deadline: time.Now().Add(time.Minute), Args: vedette.LogsArgs{
			Target: b.target("pod", "p"), Follow: true, TailLines: &none, AllContainers: all}})
		if out.State != vedette.Done {
			t.Fatalf("got %+v", out)
		}
		lines := bufio.NewScanner(out.Stream)
		seen := 0
		for i := 0; seen < 6; i++ {
			must(t, plane.AppendLog(fmt.Sprint("follow ", i)))
			if lines.Scan(); !strings.HasPrefix(lines.Text(), "follow ") {
				t.Fatalf("all %v: got %q, %v", all, lines.Text(), lines.Err())
			}
			seen++
		}
		must(t, out.Stream.Close())
	}
}

func TestLargeLogsAreWhole(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.startPod("p")
	line := strings.Repeat("l", 2_000)
	must(t, plane.AppendLog(slices.Repeat([]string{line}, 10_000)...))
	n := int64(10_000)
	if got := len(b.readLogs(vedette.LogsArgs{Target: b.target("pod", "p"), Container: "main", TailLines: &n})); got != 10_000*2_001 {
		t.Errorf("got %d bytes", got)
	}
}

func TestEventsAreThoseOfTheObject(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.apply(vedette.StrategyDefault, workloadManifest("Deployment", "d", "1"))
	b.apply(vedette.StrategyDefault, workloadManifest("Deployment", "e", "1"))
	b.awaitRollout("Deployment", "d")
	must(t, plane.Await(t.Context(), b.path(core, "events", "")+"?fieldSelector=involvedObject.name=d", func(list object) bool {
		return dig(list, "items", 0) != nil
	}))
	out := b.mustExecute(vedette.EventsArgs{Target: b.target("deploy", "d")})
	if len(out.Objects) == 0 {
		t.Fatal("no events")
	}
	for _, raw := range out.Objects {
		if e := decode(t, raw); dig(e, "involvedObject", "name") != "d" || dig(e, "kind") != "Event" {
			t.Errorf("got %v", e)
		}
	}
	if out := b.mustExecute(vedette.EventsArgs{Target: b.target("deploy", "none")}); len(out.Objects) != 0 {
		t.Errorf("object that never existed: got %d events", len(out.Objects))
	}
}

func TestPodMetricsAreSelected(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.wantFailure(vedette.MetricsArgs{Namespace: b.namespace}, 404, "install the metrics server")
	group := "metrics.k8s.io"
	b.createCustomKindVersion(group, "v1beta1", "PodMetrics", "pods", object{"api-approved.kubernetes.io": "unapproved, for a test"})
	must(t, plane.Create(t.Context(), b.path("/apis/metrics.k8s.io/v1beta1", "pods", ""), object{"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
		"metadata": object{"name": "p", "labels": object{"app": "a"}}, "containers": []any{object{"name": "main", "usage": object{"cpu": "3m"}}}}))
	for _, args := range []vedette.MetricsArgs{{Namespace: b.namespace, Name: "p"}, {Namespace: b.namespace}, {Namespace: b.namespace, LabelSelector: "app=a"}} {
		out := b.mustExecute(args)
		if len(out.Objects) != 1 || dig(decode(t, out.Objects[0]), "containers", 0, "usage", "cpu") != "3m" {
			t.Errorf("%+v: got %s", args, out.Objects)
		}
	}
	if out := b.mustExecute(vedette.MetricsArgs{Namespace: b.namespace, LabelSelector: "app=b"}); len(out.Objects) != 0 {
		t.Errorf("got %s", out.Objects)
	}
}

func TestDiscoverFindsNewKinds(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	kinds := func() []operate.DiscoveredKind {
		var d operate.DiscoverResult
		must(t, json.Unmarshal(b.mustExecute(vedette.DiscoverArgs{}).Result, &d))
		return d.Kinds
	}
	is := func(k operate.DiscoveredKind) bool { return k.Kind == "Latecomer" && k.Group == b.customGroup() }
	if slices.ContainsFunc(kinds(), is) {
		t.Error("the kind exists too early")
	}
	b.wantFailure(vedette.GetArgs{Target: b.target("latecomer", "a")}, 404)
	b.createCustomKind("Latecomer", "latecomers")
	b.apply(vedette.StrategyDefault, object{"apiVersion": b.customGroup() + "/v1", "kind": "Latecomer", "metadata": object{"name": "a"}})
	for _, kind := range []string{"latecomer", "Latecomer." + b.customGroup(), "latecomers"} {
		must(t, plane.Await(t.Context(), "/apis", func(object) bool {
			return b.execute(vedette.GetArgs{Target: b.target(kind, "a")}).State == vedette.Done
		}))
	}
	if !slices.ContainsFunc(kinds(), is) {
		t.Error("the kind was not discovered")
	}
}

func TestRecacheReadsTheLiveObject(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	o := configMap("c", object{"a": "1"})
	o["metadata"].(object)["labels"] = object{"app": "x"}
	b.apply(vedette.StrategyDefault, o)
	got := b.mustExecute(vedette.RecacheArgs{Target: b.target("configmap", "c")}).CacheObject
	live := b.live(core, "configmaps", "c")
	if got.Name != "c" || got.Namespace != b.namespace || got.ResourceVersion != dig(live, "metadata", "resourceVersion") || got.Labels["app"] != "x" {
		t.Errorf("got %+v", got)
	}
	if out := b.wantFailure(vedette.RecacheArgs{Target: b.target("configmap", "none")}, 404); len(out.Keys) != 1 || out.Keys[0].Name != "none" {
		t.Errorf("missing object: got keys %v", out.Keys)
	}
}
