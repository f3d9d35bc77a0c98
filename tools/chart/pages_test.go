package chart

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/vedette-io/vedette/test/controlplane"
)

// commands is a block of commands on a page.
var commands = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// notHere begin lines that need what an API server alone has not: images, pods that run, and programs of ours. Other tests run them.
var notHere = []string{"make ", "bin/vedette ", "vedette ", "kubectl -n spinnaker port-forward", "apt ", "systemctl "}

// blocks returns the blocks of commands in sections of a page, without lines that do not run here.
func blocks(t *testing.T, page string, headings ...string) (found []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n## ")
	for _, heading := range headings {
		i := slices.IndexFunc(sections, func(s string) bool { return strings.HasPrefix(s, heading+"\n") })
		if i < 0 {
			t.Fatalf("%s has no section %q", page, heading)
		}
		for _, m := range commands.FindAllStringSubmatch(sections[i], -1) {
			if block := withoutLines(m[1]); block != "" {
				found = append(found, block)
			}
		}
	}
	return found
}

// withoutLines leaves out commands that do not run here, with the lines on which they are continued.
func withoutLines(block string) string {
	var kept, command strings.Builder
	isHere := true
	for line := range strings.Lines(block) {
		command.WriteString(line)
		isHere = isHere && !slices.ContainsFunc(notHere, func(prefix string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), prefix) })
		if strings.HasSuffix(line, "\\\n") || strings.HasSuffix(line, "|\n") {
			continue
		}
		if isHere {
			kept.WriteString(command.String())
		}
		command.Reset()
		isHere = true
	}
	return kept.String()
}

// fleet is two clusters as a reader of the pages has them.
type fleet struct {
	t             *testing.T
	server, other *controlplane.Plane
	env           []string
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, server: startPlane(t), other: startPlane(t)}
	volume := controlplane.Object{"metadata": controlplane.Object{"name": "volume"}, "spec": controlplane.Object{"capacity": controlplane.Object{"storage": "10Gi"},
		"accessModes": []string{"ReadWriteOnce"}, "hostPath": controlplane.Object{"path": "/var/lib/vedette"}}}
	if err := f.server.Create(t.Context(), "/api/v1/persistentvolumes", volume); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "helm.sh/helm/v4/cmd/helm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build helm: %v\n%s", err, out)
	}
	if err := os.Symlink(f.server.KubectlPath(), filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	f.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+f.kubeconfig(), "HOME="+t.TempDir())
	return f
}

func startPlane(t *testing.T) *controlplane.Plane {
	t.Helper()
	p, err := controlplane.Start(t.Context(), controlplane.Options{Controllers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// kubeconfig returns a file with the contexts that the pages name. The current one is the server's.
func (f *fleet) kubeconfig() string {
	f.t.Helper()
	merged := map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "server"}
	for name, plane := range map[string]*controlplane.Plane{"server": f.server, "other": f.other} {
		text, err := os.ReadFile(plane.Kubeconfig())
		if err != nil {
			f.t.Fatal(err)
		}
		var config struct {
			Clusters, Users []map[string]any
		}
		if err := yaml.Unmarshal(text, &config); err != nil || len(config.Clusters) != 1 || len(config.Users) != 1 {
			f.t.Fatalf("%v: %s", err, text)
		}
		add := func(key, below string, content any) {
			list, _ := merged[key].([]any)
			merged[key] = append(list, map[string]any{"name": name, below: content})
		}
		add("clusters", "cluster", config.Clusters[0]["cluster"])
		add("users", "user", config.Users[0]["user"])
		add("contexts", "context", map[string]any{"cluster": name, "user": name})
	}
	text, err := yaml.Marshal(merged)
	if err != nil {
		f.t.Fatal(err)
	}
	path := filepath.Join(f.t.TempDir(), "config")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// run runs a block as a reader types it, at the root of a clone, and returns what it prints.
func (f *fleet) run(block string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", block)
	cmd.Dir, cmd.Env = "../..", f.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("%v\n%s\n%s", err, block, out)
	}
	return string(out)
}

// TestQuickStart runs the commands of the quick start on two empty clusters. Their nodes run nothing, but say that pods are ready.
func TestQuickStart(t *testing.T) {
	notInShort(t)
	t.Parallel()
	f := newFleet(t)
	for _, block := range blocks(t, "quickstart.md", "Install the server", "The first remote cluster") {
		f.run(block)
	}
	if got := f.run("helm --kube-context other -n vedette list -q; helm -n spinnaker list -q"); got != "vedette\nvedette\n" {
		t.Errorf("got the releases %q", got)
	}
	same := `[ "$(kubectl --context server -n spinnaker get secret spin-armory-agent-tls -o jsonpath='{.data}')" = "$(kubectl --context other -n vedette get secret spin-armory-agent-tls -o jsonpath='{.data}')" ]`
	f.run(same)
}

// TestInstallation runs the commands of the page about installation one after the other, beside a Clouddriver.
func TestInstallation(t *testing.T) {
	notInShort(t)
	t.Parallel()
	f := newFleet(t)
	f.run(`kubectl create namespace spinnaker
kubectl -n spinnaker create service clusterip spin-clouddriver --tcp=7002
kubectl -n spinnaker patch service spin-clouddriver --type merge -p '{"spec":{"selector":{"app":"spin","cluster":"spin-clouddriver"}}}'`)
	selector := "kubectl -n spinnaker get service spin-clouddriver -o jsonpath='{.spec.selector}'"
	before := f.run(selector)
	east := filepath.Join(t.TempDir(), "east.yml")
	if err := os.WriteFile(east, []byte("kind: Config\napiVersion: v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var front bool
	for _, block := range blocks(t, "installation.md", "Server and agent in one cluster", "An agent in another cluster", "Clusters by kubeconfigs", "Spinnaker", "Databases") {
		block = strings.ReplaceAll(block, "spin-clouddriver.yml", filepath.Join(t.TempDir(), "spin-clouddriver.yml"))
		f.run(strings.ReplaceAll(strings.ReplaceAll(block, "=east.yml", "="+east), "password=…", "password=secret"))
		if strings.Contains(block, "mode=front") {
			if got := f.run(selector); !strings.Contains(got, `"app.kubernetes.io/component":"server"`) || strings.Contains(got, `"app":"spin"`) {
				t.Errorf("in front, the Service selects %s", got)
			}
			front = true
		}
	}
	if got := f.run(selector); got != before || !front {
		t.Errorf("got the selector %s after the way to the front (%t) and back, want %s", got, front, before)
	}
	got := f.run("helm upgrade vedette deploy/helm/vedette --namespace spinnaker --reset-then-reuse-values --set 'server.grpc.hosts={other.example.com}' 2>&1 || true")
	if !strings.Contains(got, "is for server.grpc.hosts [vedette.example.com], and not for [other.example.com]: delete the Secrets") {
		t.Errorf("with another name in an existing certificate, Helm says %s", got)
	}
	for _, block := range blocks(t, "upgrade.md", "In which order", "Back") {
		f.run(block)
	}
	if got := f.run("helm -n spinnaker get values vedette"); !strings.Contains(got, "postgres://") || strings.Contains(got, "v0.1.1") {
		t.Errorf("got the values %s", got)
	}
	for _, block := range blocks(t, "installation.md", "Remove") {
		f.run(block)
	}
	left := f.run("kubectl get clusterroles,clusterrolebindings -l app.kubernetes.io/name=vedette -o name; " +
		"kubectl -n spinnaker get all,configmaps,secrets,persistentvolumeclaims,networkpolicies,roles,rolebindings,serviceaccounts -l app.kubernetes.io/name=vedette -o name")
	if left != "service/spin-clouddriver\n" {
		t.Errorf("after the removal, these are left: %s", left)
	}
}

// TestInstallationWithoutHelm runs the commands of the page about manifests and Kustomize, and checks the certificates that they make.
func TestInstallationWithoutHelm(t *testing.T) {
	notInShort(t)
	t.Parallel()
	f := newFleet(t)
	for _, o := range []controlplane.Object{customKind("cert-manager.io", "v1", "Certificate", "certificates"), customKind("cert-manager.io", "v1", "Issuer", "issuers")} {
		if err := f.server.Create(t.Context(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", o); err != nil {
			t.Fatal(err)
		}
	}
	// Keys are written where the reader is: in a directory of this test that has what a clone has.
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "deploy"), filepath.Join(directory, "deploy")); err != nil {
		t.Fatal(err)
	}
	here := "cd " + directory + "\n"
	f.run("kubectl --context other create namespace vedette")
	for _, block := range blocks(t, "manifests.md", "Certificates", "Manifests", "Kustomize") {
		f.run(here + block)
	}
	f.run(here + `openssl verify -CAfile ca.crt -purpose sslserver -verify_hostname spin-clouddriver-grpc.spinnaker.svc spin-clouddriver-grpc.crt
openssl verify -CAfile ca.crt -purpose sslclient spin-armory-agent.crt
kubectl -n spinnaker get secret spin-armory-agent-tls -o jsonpath='{.data.tls\.key}' | base64 -d | cmp - spin-armory-agent.key`)
	for command, want := range map[string]string{
		"kubectl -n spinnaker get configmap spin-armory-agent -o yaml":               "name: prod\n",
		"kubectl --context other -n vedette get configmap spin-armory-agent -o yaml": "grpc: vedette.example.com:443\n",
		"kubectl -n spinnaker get issuer vedette -o yaml":                            "secretName: vedette-ca\n",
	} {
		if got := f.run(command); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %q", command, got, want)
		}
	}
}
