//go:build unix

package controlplane

import (
	"context"
	"fmt"
	"testing"
)

func TestWorkloadsRunAndChurn(t *testing.T) {
	t.Parallel()
	p := New(t, Options{Controllers: true})
	ctx := testContext(t)
	w := Workloads{Namespace: "sample", Deployments: 2, Replicas: 3}
	must(t, p.CreateWorkloads(ctx, w))
	must(t, p.CreateWorkloads(ctx, w)) // a second call must succeed

	apps := "/apis/apps/v1/namespaces/sample"
	for path, ready := range map[string]string{
		apps + "/deployments/app-0":                         "readyReplicas",
		apps + "/deployments/app-1":                         "readyReplicas",
		apps + "/statefulsets/store":                        "readyReplicas",
		apps + "/daemonsets/watcher":                        "numberReady",
		"/apis/batch/v1/namespaces/sample/jobs/migrate":     "succeeded",
		"/api/v1/namespaces/sample/serviceaccounts/default": "",
	} {
		must(t, p.Await(ctx, path, func(o Object) bool {
			n, _ := field(o, "status", ready).(float64)
			return ready == "" || n > 0
		}))
	}
	churn(ctx, t, p, w)
}

// churn changes the workloads until each Deployment has a new image, which is the last change of a
// round.
func churn(ctx context.Context, t *testing.T, p *Plane, w Workloads) {
	t.Helper()
	churnCtx, stopChurn := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		changes, err := p.Churn(churnCtx, w, 100)
		if err == nil && changes < 6*w.Deployments {
			err = fmt.Errorf("got only %d changes", changes)
		}
		ended <- err
	}()
	for i := range w.Deployments {
		path := "/apis/apps/v1/namespaces/" + w.Namespace + "/deployments/" + deploymentName(i)
		must(t, p.Await(ctx, path, func(d Object) bool {
			revision, _ := field(d, "metadata", "annotations", "deployment.kubernetes.io/revision").(string)
			return revision != "" && revision != "1"
		}))
	}
	stopChurn()
	must(t, <-ended)
}

func TestPodAnnotationsControlPhase(t *testing.T) {
	t.Parallel()
	p := New(t, Options{Controllers: true, Nodes: 1})
	ctx := testContext(t)
	pods := "/api/v1/namespaces/default/pods"
	for name, annotations := range map[string]Object{
		"fails": {"vedette.io/fail": "yes"}, "waits": {"vedette.io/pending": "yes"}, "runs": {},
	} {
		pod := newObject("v1", "Pod", name, Object{"spec": podSpec(name)})
		pod["metadata"].(Object)["annotations"] = annotations
		must(t, p.Create(ctx, pods, pod))
	}
	for name, phase := range map[string]string{"fails": "Failed", "runs": "Running", "waits": "Pending"} {
		must(t, p.Await(ctx, pods+"/"+name, func(pod Object) bool {
			return field(pod, "status", "phase") == phase && field(pod, "spec", "nodeName") == "node-0"
		}))
	}
}

func TestLogsOfPodsAreServed(t *testing.T) {
	t.Parallel()
	p := New(t, Options{Controllers: true, Nodes: 1})
	ctx := testContext(t)
	pod := "/api/v1/namespaces/default/pods"
	must(t, p.Create(ctx, pod, newObject("v1", "Pod", "talks", Object{"spec": podSpec("talks")})))
	must(t, p.Await(ctx, pod+"/talks", func(pod Object) bool { return field(pod, "status", "phase") == "Running" }))
	must(t, p.AppendLog("hello", "world"))
	out, err := p.Kubectl(ctx, "logs", "talks")
	must(t, err)
	if string(out) != "started\nhello\nworld\n" {
		t.Errorf("got log %q", out)
	}
	out, err = p.Kubectl(ctx, "logs", "talks", "--tail=1")
	must(t, err)
	if string(out) != "world\n" {
		t.Errorf("got last line %q", out)
	}
}
