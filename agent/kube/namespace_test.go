package kube_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/kube"
)

const kubeconfigTemplate = `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: c, cluster: {server: "https://elsewhere"}}],
	contexts: [{name: a, context: {cluster: c NAMESPACE}}, {name: b, context: {cluster: c, namespace: team-b}}]}`

func kubeconfigWithNamespace(namespace string) []byte {
	return []byte(strings.Replace(kubeconfigTemplate, "NAMESPACE", namespace, 1))
}

func TestContextGivesTheNamespace(t *testing.T) {
	for _, tt := range []struct {
		name   string
		access kube.Access
		want   string
	}{
		{"the context's", kube.Access{KubeconfigContents: kubeconfigWithNamespace(", namespace: team-a")}, "team-a"},
		{"of the chosen context", kube.Access{KubeconfigContents: kubeconfigWithNamespace(""), Context: "b"}, "team-b"},
		{"none", kube.Access{KubeconfigContents: kubeconfigWithNamespace("")}, "default"},
	} {
		c, err := kube.Connect(tt.access, kube.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if got := c.Namespace(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestChangedNamespaceReconnects checks that an account reconnects if the namespace of its context
// changes.
func TestChangedNamespaceReconnects(t *testing.T) {
	access := kube.Access{KubeconfigFile: filepath.Join(t.TempDir(), "kubeconfig")}
	write := func(namespace string) {
		if err := os.WriteFile(access.KubeconfigFile, kubeconfigWithNamespace(namespace), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	c, err := kube.Connect(access, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for namespace, want := range map[string]bool{"": false, ", namespace: default": false, ", namespace: team-a": true} {
		write(namespace)
		if changed, err := c.AccessChanged(access); err != nil || changed != want {
			t.Errorf("%q: got %t, %v, want %t", namespace, changed, err, want)
		}
	}
}
