package chart

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestProgramsAcceptConfigurations lets the programs check the configurations that the chart renders, for each case alone. Only the files of
// a pod are elsewhere.
func TestProgramsAcceptConfigurations(t *testing.T) {
	notInShort(t)
	t.Parallel()
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-tags", "grpcnotrace,disable_grpc_modules", "-o", bin, "./cmd/vedette-server", "./cmd/vedette-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := load(t)
	files := newPodFiles(t, objects(t, mustRender(t, c, set("agent.account.name", "prod"))))
	checked := map[string]int{}
	for i, test := range slices.Concat([]valueCase{{}}, cases(t)) {
		values := merge(set("agent.account.name", "prod"), test.Values)
		for _, o := range objects(t, mustRender(t, c, values)) {
			for key, content := range o.Data {
				program, isConfig := strings.CutSuffix(key, ".yml")
				if o.Kind != "ConfigMap" || !isConfig {
					continue
				}
				checked[program]++
				path := filepath.Join(t.TempDir(), key)
				if err := os.WriteFile(path, []byte(files.inPod(content)), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), filepath.Join(bin, program), "check", "--config", path)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("case %d, %v: %v\n%s\n%s", i, test.Values, err, out, content)
				}
			}
		}
	}
	if checked["vedette-server"] < 50 || checked["vedette-agent"] < 50 {
		t.Errorf("checked %v configurations", checked)
	}
}

// podFiles is a directory with what is mounted into pods.
type podFiles string

// inPod returns a configuration that finds the files in the directory. The credentials of a cluster are always the same kubeconfig.
func (dir podFiles) inPod(config string) string {
	config = credentials.ReplaceAllString(config, "kubeconfigFile: "+string(dir)+"/kubeconfig")
	config = strings.ReplaceAll(config, "/etc/vedette/", string(dir)+"/")
	return strings.ReplaceAll(config, "/var/lib/vedette", string(dir)+"/data")
}

var credentials = regexp.MustCompile(`serviceAccount: true|kubeconfigFile: \S+`)

// newPodFiles writes the files. The certificates are those that the chart generates.
func newPodFiles(t *testing.T, rendered []object) podFiles {
	t.Helper()
	root := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range rendered {
		if o.Metadata.Name != "spin-clouddriver-grpc-tls" {
			continue
		}
		for key, encoded := range o.Data {
			decoded, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				t.Fatal(err)
			}
			write("tls/"+key, string(decoded))
		}
	}
	write("kubeconfig", `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://10.0.0.1"}}]
users: [{name: a, user: {token: secret}}]
`)
	return podFiles(root)
}
