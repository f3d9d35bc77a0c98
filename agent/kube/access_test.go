package kube

import (
	"os"
	"path/filepath"
	"testing"
)

// TestServiceAccountTakesPrecedence checks that serviceAccount takes precedence over a
// kubeconfig, as in Clouddriver.
func TestServiceAccountTakesPrecedence(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	dir := t.TempDir()
	kubeconfig := []byte(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "https://elsewhere"}}]}`)
	file := filepath.Join(dir, "kubeconfig")
	for name, content := range map[string][]byte{"token": []byte("t"), "ca.crt": []byte("c"), "kubeconfig": kubeconfig} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range []Access{{KubeconfigContents: kubeconfig}, {KubeconfigFile: file}} {
		for _, inCluster := range []bool{false, true} {
			a.InCluster, a.ServiceAccountDir = inCluster, dir
			want := map[bool]string{false: "https://elsewhere", true: "https://10.0.0.1:443"}[inCluster]
			if cfg, _, err := a.restConfig(); err != nil || cfg.Host != want {
				t.Errorf("serviceAccount %t: got %v, %v, want host %s", inCluster, cfg, err, want)
			}
		}
	}
}
