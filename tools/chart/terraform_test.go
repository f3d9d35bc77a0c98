package chart

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var withTerraform = flag.Bool("terraform", false, "test the module for Terraform; the first time, OpenTofu is compiled for some minutes")

// providerVersion is the last version of the Helm provider that is a Go module.
const providerVersion = "1.3.2"

// A tofu runs OpenTofu in a directory.
type tofu struct {
	program string
	env     []string
}

func (o tofu) run(t *testing.T, directory string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), o.program, append(args, "-no-color")...)
	cmd.Dir, cmd.Env = directory, o.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (o tofu) mustRun(t *testing.T, directory string, args ...string) string {
	t.Helper()
	out, err := o.run(t, directory, args...)
	if err != nil {
		t.Fatalf("tofu %s: %v\n%s", args[0], err, out)
	}
	return out
}

// newTofu builds OpenTofu and the Helm provider from their modules, and lets the one find the other on the disk.
func newTofu(t *testing.T) tofu {
	t.Helper()
	if !*withTerraform {
		t.Skip("make terraform runs it")
	}
	needCluster(t)
	home := t.TempDir()
	o := tofu{program: filepath.Join(home, "tofu")}
	mirror := filepath.Join(home, "registry.opentofu.org/hashicorp/helm", providerVersion, runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-helm_v"+providerVersion)
	for _, build := range [][3]string{
		{"opentofu.mod", o.program, "github.com/opentofu/opentofu/cmd/tofu"},
		{"terraform-provider-helm.mod", mirror, "github.com/hashicorp/terraform-provider-helm"},
	} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "..", "-modfile="+build[0], "-o", build[1], build[2]).CombinedOutput()
		if err != nil {
			t.Fatalf("build %s: %v\n%s", build[2], err, out)
		}
	}
	settings := filepath.Join(home, "tofurc")
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", home)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TF_CLI_CONFIG_FILE=" + settings, "CHECKPOINT_DISABLE=1",
		"KUBE_CONFIG=" + plane.Kubeconfig(), "KUBE_CONFIG_PATH=" + plane.Kubeconfig()}
	return o
}

// root writes a configuration that uses the module with the chart of this repository.
func root(t *testing.T, text string) string {
	t.Helper()
	absolute, err := filepath.Abs(deploy)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, `source = "../.."`, fmt.Sprintf("source = %q\n  chart  = %q\n  wait   = false",
		filepath.Join(absolute, "terraform"), filepath.Join(absolute, "helm", "vedette")), 1)
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "main.tf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return directory
}

// TestTerraformModule applies the examples of the module for Terraform, plans them again, and destroys what they made.
func TestTerraformModule(t *testing.T) {
	o := newTofu(t)
	if out, err := o.run(t, filepath.Join(deploy, "terraform"), "fmt", "-check", "-recursive", "-diff"); err != nil {
		t.Errorf("the module is not formatted: %s", out)
	}
	for example, test := range map[string]struct {
		want   []string // in the release's values and objects
		output string
	}{
		"server-and-agent": {[]string{"StatefulSet/spin-clouddriver-vedette", "Deployment/spin-armory-agent", "name: prod", "url: postgres://vedette@db.example.com",
			"type: LoadBalancer"}, "http://spin-clouddriver-vedette.terraform:7002"},
		"agent": {[]string{"Deployment/spin-armory-agent", "name: staging", "grpc: vedette.example.com:9091", "replicas: 2"}, ""},
	} {
		t.Run(example, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(deploy, "terraform", "examples", example, "main.tf"))
			if err != nil {
				t.Fatal(err)
			}
			// The namespace of the other tests has what no release may take over.
			directory := root(t, strings.ReplaceAll(string(text), `"spinnaker"`, `"terraform"`))
			o.mustRun(t, directory, "init")
			o.mustRun(t, directory, "validate")
			if out := o.mustRun(t, directory, "apply", "-auto-approve"); !strings.Contains(out, test.output) {
				t.Errorf("got %s, want the output %s", out, test.output)
			}
			namespace := map[string]string{"server-and-agent": "terraform", "agent": "vedette"}[example]
			found, err := plane.Kubectl(t.Context(), "get", "statefulsets,deployments,services,configmaps", "-n", namespace, "-l", "app.kubernetes.io/name=vedette", "-o", "yaml")
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if kind, name, isObject := strings.Cut(want, "/"); isObject && !strings.Contains(kind, ":") {
					if _, err := plane.Kubectl(t.Context(), "get", kind, name, "-n", namespace); err != nil {
						t.Error(err)
					}
				} else if !strings.Contains(string(found), want) {
					t.Errorf("no object contains %q:\n%s", want, found)
				}
			}
			if out, err := o.run(t, directory, "plan", "-detailed-exitcode"); err != nil {
				t.Errorf("a second plan has changes: %v\n%s", err, out)
			}
			o.mustRun(t, directory, "destroy", "-auto-approve")
			left, err := plane.Kubectl(t.Context(), "get", "statefulsets,deployments,services", "-n", namespace, "-l", "app.kubernetes.io/name=vedette", "-o", "name")
			if err != nil || len(left) > 0 {
				t.Errorf("destroy left %s, %v", left, err)
			}
		})
	}
}

// TestTerraformModuleRejectsBadInput checks that mistakes are errors before anything is installed.
func TestTerraformModuleRejectsBadInput(t *testing.T) {
	o := newTofu(t)
	const providers = "terraform {\n  required_providers {\n    helm = {\n      source = \"hashicorp/helm\"\n    }\n  }\n}\nmodule \"vedette\" {\n  source = \"../..\"\n"
	for arguments, want := range map[string]string{
		`namespace = "a"`: "Set server, agent or both",
		`namespace = "A B"
		server = {}`: "The namespace must have",
		`namespace = "a"
		name = "` + strings.Repeat("r", 60) + `"
		server = {}`: "The name must have at most 53",
		`namespace = "a"
		server = { mode = "frnt" }`: "The mode must be none, replace or front",
		`namespace = "a"
		server = { tls_mode = "certManager" }`: "needs a tls_issuer",
		`namespace = "a"
		server = { database_url = "postgres://vedette:secret@db/vedette" }`: "without a password",
		`namespace = "a"
		agent = { account = "a", server_address = "https://vedette" }`: "must be a host and a port",
		`namespace = "a"
		agent = { account = "a" }`: "needs agent.server_address",
		`namespace = "a"
		agent = { server_address = "a:1" }`: "needs an account",
		`namespace = "a"
		agent = { account = "a", replicas = "many", server_address = "a:1" }`: "a number is required",
		`namespace = "a"
		server = {}
		values = { agent = { account = { nam = "a" } } }`: "nam",
	} {
		directory := root(t, providers+arguments+"\n}\n")
		o.mustRun(t, directory, "init")
		out, err := o.run(t, directory, "apply", "-auto-approve")
		// Messages are broken into lines.
		if words := strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(out)), " "); err == nil || !strings.Contains(words, want) {
			t.Errorf("%s: got %v, %s\nwant %q", arguments, err, out, want)
		}
	}
}
