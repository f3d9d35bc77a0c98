package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakenFilesAreRecognized loads files that users confuse with a configuration of the server.
func TestMistakenFilesAreRecognized(t *testing.T) {
	agentFile, err := os.ReadFile("../../agent/config/testdata/agent-mode.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ file, want string }{
		"empty":       {"# nothing\n", ""},
		"Clouddriver": {"{server.port: 7002, kubernetes: {enabled: true, accounts: [{name: a}]}, redis.connection: x}", ""},
		"a ConfigMap": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vedette-server, namespace: spinnaker}\ndata:\n  vedette-server.yml: |\n    sql: {user: v}\n    grpc.server.port: 9091\n",
			`c.yml:1:1: this is not a configuration of vedette-server: none of its keys (apiVersion, kind, metadata, data) is known. It seems to be a Kubernetes object, ` +
				`ConfigMap spinnaker/vedette-server. The configuration is in it at data["vedette-server.yml"] (line 5)`},
		"a SpinnakerService": {"apiVersion: spinnaker.armory.io/v1alpha2\nkind: SpinnakerService\nmetadata: {name: spinnaker}\nspec:\n  spinnakerConfig:\n    profiles:\n" +
			"      clouddriver:\n        armory.kubesvc: {enabled: true, cache.cacheKinds: [Pod]}\n      gate: {server: {ssl: {enabled: true}}}\n",
			"SpinnakerService spinnaker. The configuration is in it at spec.spinnakerConfig.profiles.clouddriver (line 8): save"},
		"an agent's ConfigMap": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kubesvc}\ndata:\n  kubesvc.yaml: |\n    server: {port: 8082}\n    kubernetes.accounts: [{name: a}]\n",
			`a Kubernetes object, ConfigMap kubesvc. What is in it at data["kubesvc.yaml"] (line 5) seems to be the configuration of vedette-agent, not of vedette-server: name another file with --config`},
		"a Deployment": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: vedette-server}\nspec: {template: {spec: {containers: [{name: server, ports: [{containerPort: 7002}]}]}}}",
			"a Kubernetes object, Deployment vedette-server: apply it with kubectl"},
		"a kubeconfig": {"apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://h'}}]\ncontexts: []\nusers: []", "It seems to be a kubeconfig: name it"},
		"an agent's":   {string(agentFile), "this seems to be the configuration of vedette-agent, not of vedette-server: clouddriver, kubernetes, zoneId, redact, outbox have no effect here"},
	} {
		file := filepath.Join(t.TempDir(), "c.yml")
		if err := os.WriteFile(file, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(file, func(string) (string, bool) { return "", false })
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

// TestUnrelatedFileAfterAChange checks that the configuration before stays if its file becomes another one.
func TestUnrelatedFileAfterAChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("server.port: 7003")
	c, err := Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	write("apiVersion: v1\nkind: ConfigMap\ndata:\n  c.yml: |\n    sql.user: x\n")
	if _, _, err := c.Next(); err == nil || !strings.Contains(err.Error(), `at data["c.yml"] (line 4)`) {
		t.Errorf("got %v", err)
	}
	write("server.port: 7004")
	if next, _, err := c.Next(); err != nil || next.Server.Port != 7004 {
		t.Errorf("got %v", err)
	}
}
