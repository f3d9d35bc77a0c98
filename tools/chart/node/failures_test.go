package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/vedette-io/vedette/test/node"
)

// TestTwoReleases runs two releases in one namespace, the second with two agents, and kills, evicts and drains what it can.
func TestTwoReleases(t *testing.T) {
	c := newCluster(t, "two")
	c.install("first", "server.persistence.enabled=false", "agent.account.name=first")
	c.install("second", "namePrefix=other", "server.persistence.enabled=false", "agent.account.name=second", "agent.replicas=2",
		"server.podDisruptionBudget.enabled=true")
	first, second := "http://"+c.service("spin-clouddriver-vedette"), "http://"+c.service("other-clouddriver-vedette")

	t.Run("each has its own account", func(t *testing.T) {
		c := c.in(t)
		for server, accounts := range map[string][2]string{first: {"first", "second"}, second: {"second", "first"}} {
			c.await("the account is Ready", func() error { return c.accountIsReady(accounts[0], "--server", server) })
			if out := c.vedette("accounts", "--server", server); strings.Contains(out, accounts[1]) {
				t.Errorf("%s also has the account of the other release:\n%s", server, out)
			}
		}
	})
	t.Run("kill -9", func(t *testing.T) {
		c := c.in(t)
		for _, p := range append(c.pods(serverPods), c.pods(agentPods)...) {
			if err := syscall.Kill(c.process(p), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			c.await("the container runs again and is ready", func() error { return c.hasRestarted(p) })
		}
		for server, account := range map[string]string{first: "first", second: "second"} {
			c.await("the account is Ready", func() error { return c.accountIsReady(account, "--server", server) })
		}
	})
	t.Run("one of two agents is evicted", func(t *testing.T) {
		c := c.in(t)
		agents := c.pods(agentPods + ",app.kubernetes.io/instance%3Dsecond")
		if len(agents) != 2 {
			t.Fatalf("got %d agents, want 2", len(agents))
		}
		if err := c.evict(agents[0].Metadata.Name); err != nil {
			t.Fatal(err)
		}
		// One agent may be missing at a time. The eviction of the other one is refused until a new one is ready.
		if err := c.evict(agents[1].Metadata.Name); err == nil && len(c.ready(agentPods+",app.kubernetes.io/instance%3Dsecond")) == 0 {
			t.Error("both agents were evicted at once")
		}
		c.await("there are two agents", func() error {
			if n := len(c.ready(agentPods + ",app.kubernetes.io/instance%3Dsecond")); n != 2 {
				return fmt.Errorf("%d agents are ready", n)
			}
			return nil
		})
		c.await("the account is Ready", func() error { return c.accountIsReady("second", "--server", second) })
	})
	t.Run("drain", func(t *testing.T) {
		c := c.in(t)
		// The server of the second release has a budget, so the node cannot be drained; that of the first one leaves.
		out, err := c.Plane.KubectlCombinedOutput(c.ctx, "drain", node.Name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=20s",
			"--pod-selector=app.kubernetes.io/name=vedette,app.kubernetes.io/component=server")
		t.Cleanup(func() { c.kubectl("uncordon", node.Name) })
		if err == nil || !strings.Contains(string(out), "Cannot evict pod as it would violate the pod's disruption budget") {
			t.Errorf("got %v, want the budget of the server to keep the node from being drained:\n%s", err, out)
		}
		c.kubectl("uncordon", node.Name)
		c.await("the account is Ready", func() error { return c.accountIsReady("first", "--server", first) })
		c.await("the account is Ready", func() error { return c.accountIsReady("second", "--server", second) })
	})
	c.helm("uninstall", "first", "--wait")
	c.helm("uninstall", "second", "--wait")
}

// service returns address and port of a Service.
func (c *cluster) service(service string) string {
	c.t.Helper()
	var s struct {
		Spec struct {
			ClusterIP string
			Ports     []struct{ Port int }
		}
	}
	c.get("/api/v1/namespaces/"+c.namespace+"/services/"+service, &s)
	return fmt.Sprintf("%s:%d", s.Spec.ClusterIP, s.Spec.Ports[0].Port)
}

// hasRestarted fails unless the container of a Pod was started again and is ready.
func (c *cluster) hasRestarted(before podObject) error {
	var p podObject
	c.get("/api/v1/namespaces/"+c.namespace+"/pods/"+before.Metadata.Name, &p)
	for i, s := range p.Status.ContainerStatuses {
		if !s.Ready || s.RestartCount <= before.Status.ContainerStatuses[i].RestartCount {
			return fmt.Errorf("container %s: ready is %t, and it was started %d times", s.Name, s.Ready, s.RestartCount+1)
		}
		if s.LastState.Terminated.ExitCode != 137 {
			return fmt.Errorf("container %s ended with %d, want 137", s.Name, s.LastState.Terminated.ExitCode)
		}
	}
	return nil
}

func (c *cluster) evict(pod string) error {
	return c.Plane.Create(c.ctx, "/api/v1/namespaces/"+c.namespace+"/pods/"+pod+"/eviction", object{"apiVersion": "policy/v1", "kind": "Eviction",
		"metadata": object{"name": pod, "namespace": c.namespace}})
}

// ready returns the names of Pods that are ready.
func (c *cluster) ready(selector string) (names []string) {
	for _, p := range c.pods(selector) {
		for _, s := range p.Status.ContainerStatuses {
			if s.Ready {
				names = append(names, p.Metadata.Name)
			}
		}
	}
	return names
}

// TestVolumes runs the server on volumes that cannot be written, and looks at what a user sees.
func TestVolumes(t *testing.T) {
	t.Run("read-only", func(t *testing.T) {
		c := newCluster(t, "readonly")
		dir := c.disk("server")
		c.mount("tmpfs", dir, "size=16m,mode=777")
		c.mount("", dir, "remount,ro")
		c.volume(serverClaim, dir)
		c.installWithout("vedette")
		c.await("the Pod says why", func() error { return c.says("read-only file system") })
	})
	t.Run("full", func(t *testing.T) {
		c := newCluster(t, "nospace")
		dir := c.disk("server")
		c.mount("tmpfs", dir, "size=16m,mode=777")
		c.fill(filepath.Join(dir, "other"))
		c.volume(serverClaim, dir)
		c.installWithout("vedette")
		c.await("the Pod says why", func() error { return c.says("is full", "no space left on device") })
		// Once there is room, it starts by itself.
		if err := os.Remove(filepath.Join(dir, "other")); err != nil {
			t.Fatal(err)
		}
		c.await("the server is ready", func() error {
			if len(c.ready(serverPods)) == 0 {
				return errors.New("the server is not ready")
			}
			return nil
		})
		// A volume that fills up while the server runs makes it unready: it answers what it has.
		c.fill(filepath.Join(dir, "other"))
		c.await("the server is not ready", func() error {
			if len(c.ready(serverPods)) > 0 {
				return errors.New("the server is ready")
			}
			return nil
		})
		if err := os.Remove(filepath.Join(dir, "other")); err != nil {
			t.Fatal(err)
		}
		c.await("the server is ready", func() error {
			if len(c.ready(serverPods)) == 0 {
				return errors.New("the server is not ready")
			}
			return nil
		})
	})
}

// installWithout installs only the server, and waits for nothing.
func (c *cluster) installWithout(release string) {
	c.t.Helper()
	c.helm(append([]string{"install", release, chart}, values([]string{"agent.enabled=false"})...)...)
}

// mount mounts a file system, or changes one, in the namespaces of the node only.
func (c *cluster) mount(kind, dir, options string) {
	c.t.Helper()
	args := []string{"-o", options, dir}
	if kind != "" {
		args = []string{"-t", kind, "-o", options, kind, dir}
	}
	if out, err := exec.CommandContext(c.ctx, "mount", args...).CombinedOutput(); err != nil {
		c.t.Fatalf("mount %v: %v: %s", args, err, out)
	}
}

func (c *cluster) fill(file string) {
	c.t.Helper()
	if out, err := exec.CommandContext(c.ctx, filepath.Join(node.Dir(), "pod"), "fill", file).CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
}

// says fails unless what a user looks at of the server's Pod has one of some texts: its state, its events, and the log of the last
// container.
func (c *cluster) says(texts ...string) error {
	var said strings.Builder
	for _, args := range [][]string{
		{"describe", "pods"}, {"logs", "-l", "app.kubernetes.io/component=server", "--tail=-1"},
		{"logs", "-l", "app.kubernetes.io/component=server", "--tail=-1", "--previous"}} {
		out, _ := c.Plane.KubectlCombinedOutput(c.ctx, append([]string{"-n", c.namespace}, args...)...)
		said.Write(out)
	}
	for _, text := range texts {
		if strings.Contains(said.String(), text) {
			c.t.Logf("%s: %s", c.namespace, lineWith(said.String(), text))
			return nil
		}
	}
	return fmt.Errorf("none of %q is in\n%s", texts, said.String())
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// TestOtherArchitecture installs an image that is there only for another architecture, as after a build on a machine of another kind.
func TestOtherArchitecture(t *testing.T) {
	c := newCluster(t, "architecture")
	tag, err := name.NewTag(images+"/vedette-agent:other", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(mustTag(t, "vedette-agent", newVersion))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Architecture = "s390x"
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: image,
		Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}})
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	c.helm(append([]string{"install", "vedette", chart}, values([]string{"server.enabled=false", "agent.server.insecure=true", "agent.image.tag=other"})...)...)
	c.await("the Pod says why", func() error { return c.says("no match for platform in manifest") })
	c.await("the state of the Pod says it, too", func() error {
		for _, p := range c.pods(agentPods) {
			for _, s := range p.Status.ContainerStatuses {
				if r := s.State.Waiting.Reason; r == "ErrImagePull" || r == "ImagePullBackOff" {
					return nil
				}
			}
		}
		return errors.New("no container waits for its image")
	})
}

func mustTag(t *testing.T, image, version string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(images+"/"+image+":"+version, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}
