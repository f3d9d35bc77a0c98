package journey

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/test/programs"
)

// cli is the vedette command-line program.
type cli struct {
	t      *testing.T
	path   string
	server string
}

func buildCLI(t *testing.T, server string) *cli {
	t.Helper()
	dir := t.TempDir()
	if err := programs.Build(t.Context(), dir, "vedette"); err != nil {
		t.Fatal(err)
	}
	return &cli{t, filepath.Join(dir, "vedette"), server}
}

// run runs a command line and returns its exit code and output.
func (v *cli) run(stdin, command string) (code int, out string) {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), v.path, append(strings.Fields(command), "--server", v.server)...)
	cmd.Stdin = strings.NewReader(stdin)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		v.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), b.String()
}

// wantOutput checks that a command succeeds, and how its output ends.
func (v *cli) wantOutput(want, stdin, command string) {
	v.t.Helper()
	code, out := v.run(stdin, command)
	if code != 0 || !strings.HasSuffix(strings.TrimSpace(out), want) {
		v.t.Fatalf("$ vedette %s\n%s(exit code %d)\nwant\n%s", command, out, code, want)
	}
}

// webManifests returns a namespace and a Deployment.
func webManifests(image string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata:
  name: tool
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: tool
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: %s
`, image)
}

// TestCommandsOperateADeployment takes a Deployment through its life with vedette commands, in a cluster whose agent is
// connected to a server.
func TestCommandsOperateADeployment(t *testing.T) {
	h := start(t, agent.Account{Name: "one"}, redact.Config{})
	h.awaitLive(12)
	if err := plane.AppendLog("the tool is watching"); err != nil {
		t.Fatal(err)
	}
	v := buildCLI(t, "http://"+h.srv.REST().String())
	v.wantOutput("namespace/tool created\ndeployment.apps/web created", webManifests("web:1"), "apply -f -")
	v.wantOutput(`deployment "web" successfully rolled out`, "", "rollout status deployment/web -n tool --timeout 2m")
	v.wantOutput("one/Deployment.apps/tool/web", "", "get deployment web -n tool -o name")
	v.wantOutput("namespace/tool unchanged\ndeployment.apps/web unchanged", webManifests("web:1"), "apply -f -")
	v.wantOutput("deployment.apps/web scaled", "", "scale deployment web --replicas 3 -n tool")
	v.wantOutput(`deployment "web" successfully rolled out`, "", "rollout status deployment/web -n tool --timeout 2m")
	v.wantOutput(`deployment "web" successfully rolled out`, strings.SplitN(webManifests("web:2"), "---\n", 2)[1], "apply -f - --wait --timeout 2m")
	v.wantOutput("deployment.apps/web rolled back", "", "rollout undo deployment/web -n tool")
	v.wantOutput(`deployment "web" successfully rolled out`, "", "rollout status deployment/web -n tool --timeout 2m")
	v.wantOutput("deployment.apps/web skipped rollback (current template already matches revision 3)", "", "rollout undo deploy/web --to-revision 3 -n tool")
	v.wantOutput("the tool is watching", "", "logs deployment/web -n tool --tail 1 --prefix=false")
	if code, out := v.run("", "logs none -n tool"); code != 1 || !strings.Contains(out, `Error from one (NotFound): read pod/none: pods "none" not found`) {
		t.Errorf("log of a missing pod: got %d %s", code, out)
	}
	v.wantOutput("deployment.apps/web serverside-applied", strings.SplitN(webManifests("web:3"), "---\n", 2)[1], "apply -f - --server-side --force-conflicts")
	if code, out := v.run("kind: Deployment\napiVersion: apps/v1\nmetadata: {name: x}\nspec: {replicas: -1}", "apply -f -"); code != 1 || !strings.Contains(out, "Error from one (Invalid): apply deployment.apps/x of stdin: Deployment.apps \"x\" is invalid") {
		t.Errorf("invalid manifest: got %d %s", code, out)
	}
	v.wantOutput(`deployment.apps "web" deleted from tool namespace`, "", "delete deployment/web -n tool --cascade foreground")
	h.await("the deletion of its pods to be stored", func() bool {
		code, out := v.run("", "get pods -n tool")
		return code == 0 && strings.Contains(out, "No resources found")
	})
	v.wantOutput(`namespace "tool" deleted`, webManifests("web:1"), "delete -f - --ignore-not-found")
	if code, out := v.run("", "ops --verb undo"); code != 0 || !strings.Contains(out, "deployment tool/web") || !strings.Contains(out, "done") {
		t.Errorf("history: got %d %s", code, out)
	}
}
