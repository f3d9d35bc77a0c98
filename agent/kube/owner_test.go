package kube_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

// TestOwnersOfThePodAreFollowed follows the owners of a pod as an API server shows them.
func TestOwnersOfThePodAreFollowed(t *testing.T) {
	owned := func(owners ...string) string {
		return `{"metadata":{"name":"x","ownerReferences":[` + strings.Join(owners, ",") + `]}}`
	}
	scaled := func(replicas int, owners ...string) string {
		return strings.TrimSuffix(owned(owners...), "}") + fmt.Sprintf(`,"spec":{"replicas":%d,"template":{"spec":{"containers":[]}}}}`, replicas)
	}
	owner := func(kind, name string, controller bool) string {
		return fmt.Sprintf(`{"kind":%q,"name":%q,"controller":%v}`, kind, name, controller)
	}
	for _, tt := range []struct {
		name, pod, replicaSet, deployment string // an empty response is 403
		want, err                         string
	}{
		{"of a Deployment", owned(owner("ReplicaSet", "rs", true)), scaled(1, owner("Deployment", "agent", true)), scaled(3), "Deployment agent 3", ""},
		{"without the right to read Deployments", owned(owner("ReplicaSet", "rs", true)), scaled(2, owner("Deployment", "agent", true)), "", "Deployment agent 2", ""},
		{"of a Rollout", owned(owner("ReplicaSet", "rs", true)), scaled(2, owner("Rollout", "agent", true)), scaled(3), "Rollout agent 2", ""},
		{"a negative number", owned(owner("ReplicaSet", "rs", true)), scaled(-1), "", "ReplicaSet rs 0", ""},
		{"of a ReplicaSet", owned(owner("ReplicaSet", "rs", true)), scaled(4), "", "ReplicaSet rs 4", ""},
		{"of a StatefulSet", owned(owner("Other", "x", false), owner("StatefulSet", "agent", true)), "", "", "StatefulSet agent 0", ""},
		{"alone", owned(owner("Other", "x", false)), "", "", "  0", ""},
		{"without the right to read pods", "", "", "", "", "pods/p"},
		{"without the right to read ReplicaSets", owned(owner("ReplicaSet", "rs", true)), "", "", "", "replicasets/rs"},
		{"a response that is not an object", "<html>", "", "", "", "pods/p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
				body := map[string]string{"/api/v1/namespaces/n/pods/p": tt.pod, "/apis/apps/v1/namespaces/n/replicasets/rs": tt.replicaSet,
					"/apis/apps/v1/namespaces/n/deployments/agent": tt.deployment}[r.URL.Path]
				if body == "" {
					w.WriteHeader(http.StatusForbidden)
					body = `{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}`
				}
				fmt.Fprint(w, body)
			})
			got, err := kubetest.Connect(t, server, kube.Options{}).Controller(t.Context(), "n", "p")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want an error that names %s", err, tt.err)
				}
				return
			}
			if text := fmt.Sprint(got.Kind, " ", got.Name, " ", got.Replicas); err != nil || text != tt.want {
				t.Errorf("got %q, %v, want %q", text, err, tt.want)
			}
		})
	}
}
