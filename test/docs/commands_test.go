package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
)

var (
	operations = &page{path: "../../docs/operations.md"}
	readme     = &page{path: "../../README.md"}
	securing   = &page{path: "../../docs/securing.md"}
)

// shell is a block of commands without outputs.
var shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// block returns the block of commands of a page that begins with a text, as lines to run: a command that goes on in further lines is one.
func (p *page) block(t *testing.T, begin string) (lines []string) {
	t.Helper()
	for _, m := range shell.FindAllStringSubmatch(p.read(t), -1) {
		if !strings.HasPrefix(m[1], begin) {
			continue
		}
		command := ""
		for line := range strings.Lines(m[1]) {
			command += line
			if isQuoted := strings.Count(command, "'")%2 == 1; !isQuoted && !strings.HasSuffix(line, "\\\n") {
				lines = append(lines, strings.TrimSuffix(command, "\n"))
				command = ""
			}
		}
		return lines
	}
	t.Fatalf("%s has no block that begins with %q", p.path, begin)
	return nil
}

// endless matches commands that go on until they are interrupted.
var endless = regexp.MustCompile(`--watch\b| -f( |$)`)

// typeCommand runs a command as a reader does, who interrupts it if it goes on. It returns what it prints.
func (w *scenario) typeCommand(command string) string {
	w.t.Helper()
	patience := time.Minute
	isEndless := endless.MatchString(command) && !strings.Contains(command, " -f web.yaml")
	if isEndless {
		patience = 5 * time.Second
	}
	ctx, cancel := timeout(patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", w.reveal(strings.ReplaceAll(command, "bin/vedette", "vedette")))
	cmd.Dir = w.root
	cmd.Env = append(os.Environ(), append(w.env, "PATH="+binDir+":"+os.Getenv("PATH"), fmt.Sprintf("VEDETTE_SERVER=http://localhost:%d", w.rest), "HOME="+w.root)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if interrupted := isEndless && errors.Is(ctx.Err(), context.DeadlineExceeded); err != nil && !interrupted {
		w.t.Errorf("%s: %v\n%s\n%s\n%s", command, err, out, w.server.Tail(), w.agent.Tail())
	}
	return string(out)
}

// newFleet returns a server that has the accounts of the pages' commands: two names of one cluster, whose nodes say that pods run.
func newFleet(t *testing.T) *scenario {
	t.Helper()
	ctx, cancel := timeout(2 * time.Minute)
	defer cancel()
	plane, err := controlplane.Start(ctx, controlplane.Options{Controllers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := createNamespace(ctx, plane, "shop"); err != nil {
		t.Fatal(err)
	}
	w := newScenario(t, options{plane: plane, accounts: "  - {name: prod-eu, kubeconfigFile: KUBECONFIG}\n  - {name: prod-us, kubeconfigFile: KUBECONFIG}\n"})
	w.write("/web.yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: example.com/web:1.0}]}
`)
	w.startReady()
	return w
}

// TestOperationsAsDocumented types the commands of the pages about operations, one after the other.
func TestOperationsAsDocumented(t *testing.T) {
	t.Parallel()
	w := newFleet(t)
	for _, command := range operations.block(t, "vedette apply -f web.yaml") {
		if strings.HasPrefix(command, "vedette rollout undo") { // there must be a revision before
			w.typeCommand("vedette set image deployment/web main=example.com/web:2.0 -n shop --account prod-eu")
		}
		if strings.HasPrefix(command, "vedette delete") {
			command += " --ignore-not-found" // both accounts are one cluster
		}
		w.typeCommand(command)
	}
	w.typeCommand("vedette apply -f web.yaml -n shop --account prod-eu --wait")
	for _, command := range operations.block(t, "curl -sS localhost:7002/vedette/v1/operations") {
		if out := w.typeCommand(command); !strings.Contains(out, `"state":"done"`) {
			t.Errorf("got %s, want an operation that is done", out)
		}
	}
	id := regexp.MustCompile(`[0-9A-Z]{26}`)
	known := id.FindString(w.typeCommand("vedette ops --object deployment/web -n shop"))
	for _, command := range operations.block(t, "vedette ops --account 'prod-*'") {
		w.typeCommand(id.ReplaceAllString(command, known))
	}
	for _, command := range readme.block(t, "bin/vedette up --all-contexts") {
		if strings.HasPrefix(command, "bin/vedette rollout undo") {
			w.typeCommand("vedette set image deployment/web main=example.com/web:3.0 -n shop --account prod-eu")
		}
		if !strings.HasPrefix(command, "bin/vedette up") { // TestUp
			w.typeCommand(command)
		}
	}
}

// TestContextsAsDocumented types the commands by which users name servers.
func TestContextsAsDocumented(t *testing.T) {
	t.Parallel()
	w := newScenario(t, options{})
	w.runCertificateScripts()
	for _, p := range []*page{readme, operations} {
		for _, command := range p.block(t, map[*page]string{readme: "bin/", operations: ""}[p]+"vedette config set-context") {
			if strings.Contains(command, "--context staging") { // there is no second server
				continue
			}
			w.typeCommand("unset VEDETTE_SERVER; " + strings.NewReplacer("--cert ann.crt", "--cert agent.crt", "--key ann.key", "--key agent.key").Replace(command))
		}
	}
	if out := w.typeCommand("vedette config get-contexts"); !strings.Contains(out, "https://vedette.example.com:7002") {
		t.Errorf("got\n%s", out)
	}
}

// runCertificateScripts makes the certificates of the page about securing.
func (w *scenario) runCertificateScripts() {
	w.t.Helper()
	scripts := 0
	for _, m := range shell.FindAllStringSubmatch(securing.read(w.t), -1) {
		if strings.HasPrefix(m[1], "openssl req -x509") {
			scripts++
			w.typeCommand(strings.ReplaceAll(m[1], "DNS:vedette.example.com", "DNS:vedette.example.com,IP:127.0.0.1"))
		}
	}
	if scripts != 2 {
		w.t.Fatalf("the page has %d blocks that make certificates, want 2", scripts)
	}
}

// TestCertificatesAsDocumented makes the certificates of the page about securing, and lets server and agent prove themselves by them.
func TestCertificatesAsDocumented(t *testing.T) {
	t.Parallel()
	needs(t, "openssl", "the package openssl")
	w := newScenario(t, options{})
	w.runCertificateScripts()
	w.extend(w.agentConfig, fmt.Sprintf("clouddriver.tls: {cacertFile: %s, clientCertFile: %s, clientKeyFile: %s}\n",
		w.path("ca.crt"), w.path("agent.crt"), w.path("agent.key")))
	w.extend(w.serverConfig, fmt.Sprintf("grpc.server.security: {enabled: true, certificateChain: %s, privateKey: %s, clientAuth: REQUIRE, trustCertCollection: %s}\n",
		w.path("server.crt"), w.path("server.key"), w.path("agents-ca.crt")))
	w.startReady()
	if out := w.run("vedette agents -o wide"); !strings.Contains(out, "agent prod-eu") && !slices.Contains(strings.Fields(out), "agent-eu") {
		t.Errorf("got\n%s", out)
	}
}

// TestChecksAsDocumented types the commands that check configurations.
func TestChecksAsDocumented(t *testing.T) {
	t.Parallel()
	w := newScenario(t, options{})
	w.startReady()
	files := strings.NewReplacer("--config vedette-server.yml", "--config /etc/vedette/server/vedette-server.yml",
		"--config armory-agent.yml", "--config /etc/vedette/agent/armory-agent.yml")
	for _, command := range slices.Concat(operations.block(t, "vedette-server check"), (&page{path: "../../docs/artifacts.md"}).block(t, "vedette-server check")) {
		if out := w.typeCommand(files.Replace(command)); !strings.Contains(out, "ok") && !strings.Contains(out, "is valid") {
			t.Errorf("%s: got\n%s", command, out)
		}
	}
}
