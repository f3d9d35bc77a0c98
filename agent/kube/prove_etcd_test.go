//go:build unix

package kube_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/test/controlplane"
)

// TestProofNeedsEtcd stops etcd. An account that may read kube-system, and one that may only list Pods of a namespace, get no
// proof then. The API server still denies the latter what it may not read.
func TestProofNeedsEtcd(t *testing.T) {
	p := controlplane.New(t, controlplane.Options{})
	must(t, p.Create(t.Context(), "/api/v1/namespaces/default/serviceaccounts", controlplane.Object{"metadata": controlplane.Object{"name": "reader"}}))
	rbac := "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
	must(t, p.Create(t.Context(), rbac+"roles", controlplane.Object{"metadata": controlplane.Object{"name": "reader"}, "rules": []any{
		controlplane.Object{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"list", "watch"}}}}))
	must(t, p.Create(t.Context(), rbac+"rolebindings", controlplane.Object{"metadata": controlplane.Object{"name": "reader"},
		"roleRef":  controlplane.Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
		"subjects": []any{controlplane.Object{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}}}))
	token, err := p.ServiceAccountToken(t.Context(), "default", "reader")
	must(t, err)
	pods := listsOf("/api/v1/pods", "/api/v1/namespaces/default/pods") // the first is denied
	clusters := map[string]*kube.Cluster{}
	for name, user := range map[string]string{"reader": token, "administrator": p.AdminToken} {
		c, err := kube.Connect(kube.Access{KubeconfigContents: kubeconfigOf(p, "{token: "+user+"}")}, kube.Options{})
		must(t, err)
		t.Cleanup(c.Close)
		id, _, err := c.Identify(t.Context())
		if err != nil || (id.UID == "") != (name == "reader") {
			t.Fatalf("%s: got %+v, %v", name, id, err)
		}
		clusters[name] = c
	}
	for name, c := range clusters {
		for {
			_, err := c.ProbeAny(t.Context(), pods)
			if err == nil {
				break
			}
			if !errors.Is(err, kube.ErrUnproven) || t.Context().Err() != nil { // the API server may not know the role yet
				t.Fatalf("%s: got %v", name, err)
			}
		}
	}
	if _, err := clusters["reader"].ProbeAny(t.Context(), listsOf("/api/v1/pods")); !errors.Is(err, kube.ErrUnproven) {
		t.Errorf("of denied requests only: got %v", err)
	}
	must(t, p.PauseEtcd())
	for name, c := range clusters {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if proof, err := c.ProbeAny(ctx, pods); err == nil || !proof.Sent.IsZero() {
			t.Errorf("%s, without etcd: got %+v, %v", name, proof, err)
		}
		cancel()
	}
	must(t, p.ResumeEtcd())
	for name, c := range clusters {
		proof, err := c.ProbeAny(t.Context(), pods)
		for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); {
			proof, err = c.ProbeAny(t.Context(), pods) // the API server may need a moment to reach etcd again
		}
		if err != nil || proof.Sent.IsZero() {
			t.Errorf("%s, with etcd again: got %+v, %v", name, proof, err)
		}
	}
}
