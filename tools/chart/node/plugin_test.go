package node

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/vedette-io/vedette/test/node"
)

// TestPlugin gives the agent a kubeconfig whose credentials come from a program, which docs/installation.md says how to install.
func TestPlugin(t *testing.T) {
	c := newCluster(t, "plugin")
	pushPrograms(t, registryAddress+"/doctl:1", map[string]string{"bin/cp": "/bin/busybox", "doctl": filepath.Join(node.Dir(), "plugin")})
	token := c.tokenOfAdministrator()
	c.create("/api/v1/namespaces/"+c.namespace+"/secrets", object{"metadata": object{"name": "cloud"}, "data": object{
		"config": base64.StdEncoding.EncodeToString([]byte(c.pluginKubeconfig(token)))}})
	c.createConfigMap(c.namespace, "settings")
	c.volume(serverClaim, c.disk("server"))
	c.install("vedette", "agent.account.name=prod", "agent.kubeconfigs.cloud.secret=cloud", "server.config.cache.kinds={Namespace,ConfigMap}",
		"agent.rbac.kinds={Namespace,ConfigMap}")
	server := "http://" + c.service("spin-clouddriver-vedette")
	shows := func(texts ...string) func() error {
		return func() error {
			out := c.vedette("agents", "--server", server) + c.vedette("accounts", "--server", server)
			for _, text := range texts {
				if !strings.Contains(out, text) {
					return fmt.Errorf("%q is not in\n%s", text, out)
				}
			}
			t.Log(out)
			return nil
		}
	}
	bothAreReady := func() error {
		return errors.Join(c.accountIsReady("prod", "--server", server), c.accountIsReady("cloud", "--server", server))
	}
	c.await("the account of the agent's own cluster is Ready", func() error { return c.accountIsReady("prod", "--server", server) })
	c.await("the agent says that the program is missing", shows("cloud", `"doctl"`, "install it"))

	values := filepath.Join(t.TempDir(), "values.yaml")
	text := strings.ReplaceAll(block(t, "installation.md", "agent:\n  initContainers:"), "registry.example.com", registryAddress)
	if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.helm("upgrade", "vedette", chart, "--reuse-values", "--values", values, "--wait", "--timeout", timeout.String())
	c.await("both accounts are Ready", bothAreReady)
	annotate := func(value string) (string, error) {
		return c.tryVedette("annotate", "configmap", "settings", "turn="+value, "--overwrite", "-n", c.namespace, "--account", "cloud", "--server", server)
	}
	if _, err := annotate("first"); err != nil {
		t.Fatal(err)
	}

	for _, broken := range []struct{ mode, says string }{
		{"fail", "run doctl: exit status 3: the session has ended: log in again"},
		{"hang", "doctl did not end in time"},
	} {
		t.Run(broken.mode, func(t *testing.T) {
			c := c.in(t)
			var agent podObject
			c.await("there is one agent", func() error {
				agents := c.pods(agentPods)
				if len(agents) != 1 {
					return fmt.Errorf("got %d", len(agents))
				}
				agent = agents[0]
				return nil
			})
			mode := fmt.Sprintf("/proc/%d/root/tmp/cloud", c.process(agent))
			if err := os.WriteFile(mode, []byte(broken.mode), 0o644); err != nil {
				t.Fatal(err)
			}
			c.await("the agent says what failed", shows("cloud", broken.says))
			out, err := annotate(broken.mode)
			if err == nil || !strings.Contains(out, "doctl") {
				t.Errorf("got %s (%v), want an operation that fails because of doctl", out, err)
			}
			t.Log(out)
			if err := c.accountIsReady("prod", "--server", server); err != nil {
				t.Error(err)
			}
			if ready := c.ready(agentPods); len(ready) != 1 || c.pods(agentPods)[0].Status.ContainerStatuses[0].RestartCount > 0 {
				t.Errorf("got the agents %v that are ready, want the one that was never started again", ready)
			}
			if err := os.Remove(mode); err != nil {
				t.Fatal(err)
			}
			c.await("both accounts are Ready", bothAreReady)
			if _, err := annotate("after " + broken.mode); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("tokenCommand", func(t *testing.T) {
		c := c.in(t)
		upgrade := func(program string) {
			c.helm("upgrade", "vedette", chart, "--reuse-values", "--set", "agent.env[0].name=TOKEN", "--set", "agent.env[0].value=secret",
				"--set", "agent.config.clouddriver.auth.tokenCommand.command="+program, "--set", "agent.config.clouddriver.auth.tokenCommand.args={cloud}")
		}
		upgrade("other")
		c.await("the new agent says that the program is missing", func() error {
			out, err := c.Plane.KubectlCombinedOutput(c.ctx, "-n", c.namespace, "logs", "-l", "app.kubernetes.io/component=agent", "--tail=-1")
			if !strings.Contains(string(out), "tokenCommand: run other: ") {
				return errors.Join(err, fmt.Errorf("got %s", out))
			}
			t.Log(lineWith(string(out), "tokenCommand: run other: "))
			return nil
		})
		if err := bothAreReady(); err != nil {
			t.Errorf("the agent from before does not go on: %v", err)
		}
		upgrade("doctl")
		c.kubectl("rollout", "status", "deployment/spin-armory-agent", "--timeout="+timeout.String())
		c.await("both accounts are Ready", bothAreReady)
	})
	c.helm("uninstall", "vedette", "--wait")
}

// pushPrograms makes an image of programs of this machine, by their paths in it.
func pushPrograms(t *testing.T, reference string, programs map[string]string) {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for path, program := range programs {
		content, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, content)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config = "linux", runtime.GOARCH, v1.Config{Env: []string{"PATH=/bin"}}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(reference, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
}

// tokenOfAdministrator returns a token that may do everything.
func (c *cluster) tokenOfAdministrator() string {
	c.t.Helper()
	c.kubectl("create", "serviceaccount", "administrator")
	c.kubectl("create", "clusterrolebinding", c.namespace, "--clusterrole=cluster-admin", "--serviceaccount="+c.namespace+":administrator")
	return strings.TrimSpace(c.kubectl("create", "token", "administrator"))
}

// pluginKubeconfig returns a kubeconfig of the cluster that runs the plugin.
func (c *cluster) pluginKubeconfig(token string) string {
	c.t.Helper()
	authority, err := os.ReadFile(c.Plane.CA())
	if err != nil {
		c.t.Fatal(err)
	}
	return encode(c.t, object{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": []object{{"name": "a", "context": object{
		"cluster": "a", "user": "a"}}}, "clusters": []object{{"name": "a", "cluster": object{"server": "https://kubernetes.default.svc", "certificate-authority-data": authority}}},
		"users": []object{{"name": "a", "user": object{"exec": object{"apiVersion": "client.authentication.k8s.io/v1", "command": "doctl",
			"args": []string{"cloud"}, "env": []object{{"name": "TOKEN", "value": token}}, "interactiveMode": "Never"}}}}})
}
