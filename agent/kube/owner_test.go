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
	owner := func(kind, name string, controller bool) string {
		return fmt.Sprintf(`{"kind":%q,"name":%q,"controller":%v}`, kind, name, controller)
	}
	for _, tt := range []struct {
		name, pod, replicaSet string // an empty response is 403
		want, err             string
	}{
		{"of a Deployment", owned(owner("ReplicaSet", "rs", true)), owned(owner("Deployment", "agent", true)), "Deployment agent", ""},
		{"of a ReplicaSet", owned(owner("ReplicaSet", "rs", true)), owned(), "ReplicaSet rs", ""},
		{"of a StatefulSet", owned(owner("Other", "x", false), owner("StatefulSet", "agent", true)), "", "StatefulSet agent", ""},
		{"alone", owned(owner("Other", "x", false)), "", "", ""},
		{"without the right to read pods", "", "", "", "pods/p"},
		{"without the right to read ReplicaSets", owned(owner("ReplicaSet", "rs", true)), "", "", "replicasets/rs"},
		{"a response that is not an object", "<html>", "", "", "pods/p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
				body := map[string]string{"/api/v1/namespaces/n/pods/p": tt.pod, "/apis/apps/v1/namespaces/n/replicasets/rs": tt.replicaSet}[r.URL.Path]
				if body == "" {
					w.WriteHeader(http.StatusForbidden)
					body = `{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}`
				}
				fmt.Fprint(w, body)
			})
			kind, name, err := kubetest.Connect(t, server, kube.Options{}).Controller(t.Context(), "n", "p")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want an error that names %s", err, tt.err)
				}
				return
			}
			if got := strings.TrimSpace(kind + " " + name); err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
