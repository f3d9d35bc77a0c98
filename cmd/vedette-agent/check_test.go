package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/config"
)

// TestCheck checks what is wrong with configurations whose text is valid.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	text := "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	good := "kubernetes.accounts: [{name: a, kubeconfigFile: " + kubeconfig + "}]\n"
	for _, tt := range []struct {
		name, file string
		want       []string
	}{
		{"valid", good, nil},
		{"no accounts", "clouddriver.grpc: server:9091", []string{"there are no accounts"}},
		{"a missing kubeconfig", "kubernetes.accounts: [{name: a, kubeconfigFile: /no/file}]", []string{"account a: kubeconfig file /no/file does not exist"}},
		{"a missing context", "kubernetes.accounts: [{name: a, kubeconfigFile: " + kubeconfig + ", context: y}]", []string{`has no context "y": choose one of x`}},
		{"a rejected account", good[:len(good)-2] + ", {name: a}]", []string{"must be unique"}},
		{"a missing certificate of the port for metrics", "prometheus: {enabled: true, ssl: {enabled: true, certFile: /no/cert}}\n" + good,
			[]string{"prometheus.ssl: the file /no/cert does not exist"}},
		{"metrics that are not served", "prometheus: {ssl: {enabled: true, certFile: /no/cert}}\n" + good, nil},
		{"missing files of TLS, and of an account", "clouddriver.tls.cacertFile: /no/ca\nserver.ssl: {enabled: true, certFile: /no/cert}\nkubernetes.accounts: [{name: a, kubeconfigFile: /no/file}]",
			[]string{"server.ssl: the file /no/cert does not exist", "clouddriver.tls: the file /no/ca does not exist", "/no/file does not exist"}},
	} {
		file := filepath.Join(dir, "agent.yml")
		if err := os.WriteFile(file, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		err = check(cfg)
		if (err == nil) != (tt.want == nil) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
		for _, want := range tt.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", tt.name, err, want)
			}
		}
	}
}
