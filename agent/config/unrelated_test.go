package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakenFilesAreRecognized loads files that users confuse with a configuration of the agent.
func TestMistakenFilesAreRecognized(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ file, want string }{
		"empty":       {"", ""},
		"Clouddriver": {"{kubernetes.accounts: [{name: a}], sql.enabled: true, services.fiat.enabled: true}", ""},
		"a ConfigMap": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kubesvc-config}\ndata:\n  kubesvc.yaml: |\n    server: {port: 8082}\n    kubernetes:\n      accounts: [{name: a}]\n",
			`a Kubernetes object, ConfigMap kubesvc-config. The configuration is in it at data["kubesvc.yaml"] (line 5): save that part as a file of its own`},
		"a server's ConfigMap": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vedette-server}\ndata:\n  vedette-server.yml: |\n    sql: {url: 'sqlite:x'}\n    grpc.server.port: 9091\n    server: {port: 7002}\n",
			`a Kubernetes object, ConfigMap vedette-server. What is in it at data["vedette-server.yml"] (line 5) seems to be the configuration of vedette-server, not of vedette-agent: name another file with --config`},
		"a list": {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  data: {armory-agent.yml: 'clouddriver.grpc: h:1'}\n", `at items[0].data["armory-agent.yml"] (line 6)`},
		"values": {"image: {tag: x}\nconfig: {clouddriver: {grpc: 'h:1'}}\n", "none of its keys (image, config) is known. The configuration is in it at config (line 2)"},
		"a kubeconfig": {"apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://h'}}]\ncontexts: []\nusers: []",
			"It seems to be a kubeconfig: name it as kubeconfigFile of an entry of kubernetes.accounts"},
		"a server's": {"server.port: 7002\ngrpc.server.port: 9091\nsql: {url: 'sqlite:x'}\n", "this seems to be the configuration of vedette-server, not of vedette-agent: grpc, sql have no effect here"},
		"a plugin's": {"kubesvc: {cluster: kubernetes, cache: {cacheKinds: [Pod]}}\n", "this seems to be the configuration of vedette-server"},
	} {
		file := filepath.Join(dir, "c.yml")
		if err := os.WriteFile(file, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(file, testEnv)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
