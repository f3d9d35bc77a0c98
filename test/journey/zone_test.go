package journey

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/test/controlplane"
)

// TestZoneOfARealPod checks the owners of a pod as a control plane writes them.
func TestZoneOfARealPod(t *testing.T) {
	if err := plane.CreateWorkloads(t.Context(), controlplane.Workloads{Namespace: "zone", Deployments: 1, Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	h := &stack{t: t}
	pod := ""
	h.await("a pod", func() bool {
		var pods struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		err := plane.Get(t.Context(), "/api/v1/namespaces/zone/pods", &pods)
		for _, p := range pods.Items {
			if strings.HasPrefix(p.Metadata.Name, "app-0-") {
				pod = p.Metadata.Name
			}
		}
		return err == nil && pod != ""
	})
	cluster, err := kube.Connect(kube.Access{KubeconfigFile: plane.Kubeconfig()}, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	got, err := cluster.Controller(t.Context(), "zone", pod)
	if want := (kube.Workload{Kind: "Deployment", Name: "app-0", Replicas: 1}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
