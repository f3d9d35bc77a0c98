package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/config"
)

// TestCheckNamesWhatIsMissing checks what is wrong with configurations whose text is valid.
func TestCheckNamesWhatIsMissing(t *testing.T) {
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
		{"a missing context", "kubernetes.accounts: [{name: a, kubeconfigFile: " + kubeconfig + ", context: y}]", []string{`has no context "y": it has x`}},
		{"a rejected account", good[:len(good)-2] + ", {name: a}]", []string{"must be unique"}},
		{"a missing certificate of the port for metrics", "prometheus: {enabled: true, ssl: {enabled: true, certFile: /no/cert}}\n" + good,
			[]string{"prometheus.ssl: the file /no/cert does not exist"}},
		{"a missing certificate of the port for probes", "management.server: {port: 1, ssl: {enabled: true, certFile: /no/cert}}\n" + good,
			[]string{"management.server.ssl: the file /no/cert does not exist"}},
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

// TestCheckSaysWhoGetsTokens checks that one sees whether a program or the agent gets the tokens of an account, and the error if neither can.
func TestCheckSaysWhoGetsTokens(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := func(name, exec string) string {
		file := filepath.Join(dir, name)
		text := "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n" +
			"users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, " + exec + "}}}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const aws = "command: aws, args: [eks, get-token, --cluster-name, prod, --region, eu-west-1]"
	known, unknown := kubeconfig("known", aws), kubeconfig("unknown", "command: aws, args: [eks, get-token, --cluster-name, prod, --debug]")
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "aws"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, path, account, note, problem string }{
		{"not installed", dir, "kubeconfigFile: " + known, "account a: credentials by EKS cluster prod in eu-west-1: the agent gets tokens itself", ""},
		{"installed", bin, "kubeconfigFile: " + known, "account a: credentials by exec plugin aws", ""},
		{"installed, but not to be run", bin, "cloud.tokens: native, kubeconfigFile: " + known,
			"account a: credentials by EKS cluster prod in eu-west-1: the agent gets tokens itself", ""},
		{"to be run, but not installed", dir, "cloud.tokens: program, kubeconfigFile: " + known, "", `exec plugin "aws", which cannot be run here`},
		{"with an argument that is not known", dir, "kubeconfigFile: " + unknown, "",
			"the agent cannot get the token itself as aws does (unknown argument --debug)): install it beside the agent"},
		{"with an argument that is not known, and installed", bin, "kubeconfigFile: " + unknown, "account a: credentials by exec plugin aws", ""},
		{"with an argument that is not known, and not to be run", bin, "cloud.tokens: native, kubeconfigFile: " + unknown, "",
			"(unknown argument --debug): set cloud.tokens of the account to program"},
		{"without kubeconfig", bin, "cloud: {provider: gke, server: 'https://127.0.0.1:1'}", "account a: credentials by GKE cluster: the agent gets tokens itself", ""},
	} {
		t.Setenv("PATH", tt.path)
		cfg := loadConfig(t, "kubernetes.accounts: [{name: a, "+tt.account+"}]")
		if got := strings.Join(notes(cfg), "\n"); got != tt.note {
			t.Errorf("%s: got the notes %q, want %q", tt.name, got, tt.note)
		}
		err := check(cfg)
		if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.problem)
		}
	}
}
