package node

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vedette-io/vedette/test/node"
)

// TestInstall installs server and agent as docs/installation.md says, and uses them.
func TestInstall(t *testing.T) {
	c := newCluster(t, "spinnaker")
	c.volume(serverClaim, c.disk("server"))
	c.install("vedette", "agent.account.name=prod")

	t.Run("processes", func(t *testing.T) {
		c := c.in(t)
		for _, selector := range []string{serverPods, agentPods} {
			for _, p := range c.pods(selector) {
				c.checkProcess(p)
			}
		}
	})
	t.Run("rights", func(t *testing.T) { c.in(t).checkRights() })
	// The port stays forwarded for the following tests.
	t.Run("accounts", func(t *testing.T) {
		c.forward("statefulset/spin-clouddriver-vedette", "7002")
		c := c.in(t)
		c.await("the account is Ready", func() error { return c.accountIsReady("prod") })
		out := c.vedette("feeds")
		if strings.Contains(out, "denied") || !strings.Contains(out, "live") {
			t.Errorf("feeds: got\n%s", out)
		}
	})
	t.Run("deploy", func(t *testing.T) { c.in(t).deployPod("prod") })
	t.Run("network policies", func(t *testing.T) { c.in(t).checkPolicies() })
}

// checkProcess checks what the kernel says of a container's process: it has no rights of root, and cannot write but to its volumes.
func (c *cluster) checkProcess(p podObject) {
	c.t.Helper()
	dir := fmt.Sprintf("/proc/%d/", c.process(p))
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		c.t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		found[key] = strings.Join(strings.Fields(value), " ")
	}
	const none = "0000000000000000"
	for key, want := range map[string]string{"Uid": "65532 65532 65532 65532", "Gid": "65532 65532 65532 65532", "CapInh": none, "CapPrm": none,
		"CapEff": none, "CapBnd": none, "CapAmb": none, "NoNewPrivs": "1", "Seccomp": "2"} {
		if found[key] != want {
			c.t.Errorf("process of Pod %s: %s is %q, want %q", p.Metadata.Name, key, found[key], want)
		}
	}
	mounts, err := os.ReadFile(dir + "mounts")
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		// Source, target, kind, options.
		f := strings.Fields(line)
		ours := f[1] == "/tmp" || f[1] == "/var/lib/vedette" || strings.HasPrefix(f[1], "/dev/")
		if !ours && !strings.HasPrefix(f[3]+",", "ro,") && mayWrite(dir+"root"+f[1]) {
			c.t.Errorf("Pod %s can write to %s (%s)", p.Metadata.Name, f[1], f[3])
		}
	}
	if !mayWrite(dir+"root/tmp") || !mayWrite(dir+"root/var/lib/vedette") {
		c.t.Errorf("Pod %s cannot write to its volumes", p.Metadata.Name)
	}
}

// mayWrite says whether the owner, the group and the mode of a file let the chart's user write. A device, such as the one that hides
// files of the kernel, keeps nothing.
func mayWrite(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeDevice != 0 {
		return false
	}
	const user = 65532
	owner, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	return ok && (mode&0o002 != 0 || owner.Uid == user && mode&0o200 != 0 || owner.Gid == user && mode&0o020 != 0)
}

// checkRights checks that the agent's process has the rights of the chart's roles and no others, and that of the server none.
func (c *cluster) checkRights() {
	c.t.Helper()
	agent := c.tokenOf(c.pods(agentPods)[0])
	for question, want := range map[string]string{
		"list pods": "yes", "patch deployments.apps": "yes", "create secrets": "yes", "get pods --subresource=log": "yes",
		"delete nodes": "no", "create clusterrolebindings": "no", "create pods --subresource=exec": "no",
		"impersonate users": "no", "create serviceaccounts --subresource=token": "no", "get leases": "no"} {
		args := append([]string{"--token", agent, "auth", "can-i", "-A"}, strings.Fields(question)...)
		out, err := c.Plane.KubectlAs(c.ctx, c.anonymous(), args...)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			c.t.Fatal(err)
		}
		if got := strings.TrimSpace(string(out)); got != want {
			c.t.Errorf("may the agent %s: %q (%v), want %q", question, got, err, want)
		}
	}
	server := c.pods(serverPods)[0]
	if _, err := os.Stat(tokenFile(c.process(server))); !errors.Is(err, os.ErrNotExist) {
		c.t.Errorf("the server has a token for the API server (%v)", err)
	}
}

func tokenFile(pid int) string {
	return fmt.Sprintf("/proc/%d/root/var/run/secrets/kubernetes.io/serviceaccount/token", pid)
}

func (c *cluster) tokenOf(p podObject) string {
	c.t.Helper()
	token, err := os.ReadFile(tokenFile(c.process(p)))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(token)
}

// anonymous returns a kubeconfig without credentials.
func (c *cluster) anonymous() string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a"}}],
"clusters": [{"name": "a", "cluster": {"server": %q, "certificate-authority": %q}}]}`, c.Plane.URL, c.Plane.CA())
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// forward forwards a port of this machine to a Pod, as a user does, until the test ends.
func (c *cluster) forward(target, port string) {
	c.t.Helper()
	cmd := c.Plane.KubectlCommand(c.ctx, "-n", c.namespace, "port-forward", target, port)
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c.await("the port is forwarded", func() error {
		answer, err := http.Get("http://127.0.0.1:" + port + "/health")
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}

// vedette runs the command-line tool of this version. Its server is by default the one at this machine's port 7002.
func (c *cluster) vedette(args ...string) string {
	c.t.Helper()
	out, err := c.tryVedette(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c *cluster) tryVedette(args ...string) (string, error) {
	program := filepath.Join(node.Dir(), newVersion, "bin", "vedette_"+strings.ReplaceAll(platform, "/", "_"))
	out, err := exec.CommandContext(c.ctx, program, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("vedette %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// accountIsReady looks at the line of an account.
func (c *cluster) accountIsReady(name string, flags ...string) error {
	out, err := c.tryVedette(append([]string{"accounts"}, flags...)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name && f[1] == "Ready" {
			return nil
		}
	}
	return fmt.Errorf("the account is not Ready:\n%s", out)
}

// deployPod deploys a Deployment through the server, and looks at its Pod there and in the cluster.
func (c *cluster) deployPod(account string) {
	c.t.Helper()
	c.create("/api/v1/namespaces", object{"metadata": object{"name": "shop"}})
	manifest := filepath.Join(c.t.TempDir(), "web.json")
	spec := podSpec("serve", "8080", "hello")
	content := fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": %s}}}`, encode(c.t, spec))
	if err := os.WriteFile(manifest, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.vedette("apply", "-f", manifest, "-n", "shop", "--account", account, "--wait")
	var list struct{ Items []podObject }
	c.get("/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb", &list)
	if len(list.Items) != 1 || list.Items[0].Status.Phase != "Running" {
		c.t.Fatalf("got the Pods %v, want one that runs", list.Items)
	}
	ip := list.Items[0].Status.PodIP
	answer, err := http.Get("http://" + ip + ":8080")
	if err != nil {
		c.t.Fatal(err)
	}
	answer.Body.Close()
	c.await("the server shows the Pod", func() error {
		out, err := c.tryVedette("get", "pods", "-n", "shop", "-o", "wide")
		if err == nil && (!strings.Contains(out, "Running") || !strings.Contains(out, ip)) {
			err = fmt.Errorf("got\n%s", out)
		}
		return err
	})
	c.vedette("logs", "deployment/web", "-n", "shop", "--account", account)
	c.vedette("scale", "deployment", "web", "--replicas", "0", "-n", "shop", "--account", account)
	c.await("the Pod ends", func() error {
		c.get("/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb", &list)
		if len(list.Items) > 0 {
			return errors.New("there is a Pod")
		}
		return nil
	})
}

// checkPolicies tries each port of server and agent from Pods in this namespace and in another one, and from outside the cluster.
func (c *cluster) checkPolicies() {
	c.t.Helper()
	c.pod("gate", object{"app": "spin"})
	c.pod("orca", object{"app.kubernetes.io/part-of": "spinnaker"})
	c.pod("stranger", object{"app": "other"})
	other := *c
	other.namespace = "elsewhere"
	other.create("/api/v1/namespaces", object{"metadata": object{"name": other.namespace}})
	other.pod("gate", object{"app": "spin"})
	server, agent := c.pods(serverPods)[0].Status.PodIP, c.pods(agentPods)[0].Status.PodIP
	sources := []struct {
		name string
		dial func(address string) error
	}{
		{"a Pod of Spinnaker", func(address string) error { _, err := c.inside("gate", "dial", address); return err }},
		{"a Pod that is part of Spinnaker", func(address string) error { _, err := c.inside("orca", "dial", address); return err }},
		{"a Pod without labels", func(address string) error { _, err := c.inside("stranger", "dial", address); return err }},
		{"a Pod of another namespace", func(address string) error { _, err := other.inside("gate", "dial", address); return err }},
		{"a machine outside", func(address string) error {
			return node.Outside(exec.CommandContext(c.ctx, filepath.Join(node.Dir(), "pod"), "dial", address)).Run()
		}},
	}
	for _, port := range []struct {
		name, ip string
		number   int
		allowed  string // by source
	}{
		{"REST API", server, 7002, "++---"},
		{"port for agents", server, 9091, "+++++"},
		{"server's metrics", server, 7003, "++++-"},
		{"agent's health", agent, 8082, "++++-"},
		{"agent's metrics", agent, 8008, "++++-"},
		{"port that nobody listens on", server, 7004, "-----"},
	} {
		for i, source := range sources {
			address := port.ip + ":" + strconv.Itoa(port.number)
			allowed := port.allowed[i] == '+'
			if err := source.dial(address); allowed != (err == nil) {
				c.t.Errorf("%s at %s from %s: got %v, want it to be allowed: %t", port.name, address, source.name, err, allowed)
			}
		}
	}
	// By name, as Spinnaker's services do.
	if out, err := c.inside("gate", "get", "http://spin-clouddriver-vedette:7002/credentials"); err != nil || !strings.Contains(out, `"prod"`) {
		c.t.Errorf("/credentials from a Pod of Spinnaker: got %s (%v)", out, err)
	}
	// The server reads artifacts, databases and Vaults anywhere: it is not kept from the network outside.
	for _, name := range []string{"gate", "orca", "stranger"} {
		c.kubectl("delete", "pod", name, "--wait=false")
	}
}
