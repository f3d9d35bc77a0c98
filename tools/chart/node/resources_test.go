package node

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet"
	"github.com/vedette-io/vedette/test/node"
)

// TestResources gives one agent twenty clusters with kubeconfigs, as docs/installation.md shows it, with 60,000 objects that change, and
// compares the memory of both programs with what the chart asks for them.
func TestResources(t *testing.T) {
	c := newCluster(t, "resources")
	const clusters = 20
	objects := map[vedette.Kind]int{{Name: "Pod"}: 2000, {Group: "apps", Name: "ReplicaSet"}: 800, {Group: "apps", Name: "Deployment"}: 200}
	f, err := fleet.Start(fleet.Config{Clusters: clusters, Objects: objects, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	address := c.publish(strings.TrimPrefix(strings.TrimSuffix(f.URL(0), "/clusters/0"), "https://"))
	settings := []string{"agent.rbac.kinds={Pod,ReplicaSet,Deployment}"}
	for i := range clusters {
		name := fmt.Sprintf("cluster-%d", i)
		kubeconfig := strings.Replace(string(f.Kubeconfig(i)), "server: ", "tls-server-name: 127.0.0.1, server: ", 1)
		kubeconfig = strings.Replace(kubeconfig, f.URL(i), fmt.Sprintf("https://%s/clusters/%d", address, i), 1)
		c.create("/api/v1/namespaces/"+c.namespace+"/secrets", object{"metadata": object{"name": name}, "data": object{
			"config": base64.StdEncoding.EncodeToString([]byte(kubeconfig))}})
		settings = append(settings, "agent.kubeconfigs."+name+".secret="+name)
	}
	c.volume(serverClaim, c.disk("server"))
	c.install("vedette", settings...)
	server := "http://" + c.service("spin-clouddriver-vedette")
	for i := range clusters {
		c.await("the account is Ready", func() error { return c.accountIsReady(fmt.Sprintf("cluster-%d", i), "--server", server) })
	}
	const changes = 20_000
	before := f.Steps()
	go f.Churn(t.Context(), 50)
	c.await("the clusters have changed", func() error {
		if n := f.Steps() - before; n < changes {
			return fmt.Errorf("%d changes", n)
		}
		return nil
	})
	for _, selector := range []string{serverPods, agentPods} {
		p := c.pods(selector)[0]
		if n := p.Status.ContainerStatuses[0].RestartCount; n > 0 {
			t.Errorf("%s was started %d times again: %s", p.Metadata.Name, n, p.Status.ContainerStatuses[0].LastState.Terminated.Reason)
		}
		m := c.memory(p)
		t.Logf("%s with %d clusters: anonymous memory %d MiB, peak with files %d MiB, limit %d MiB", p.Metadata.Name, clusters, m.anonymous>>20, m.peak>>20,
			m.limit>>20)
		if m.anonymous > m.limit*3/4 {
			t.Errorf("%s takes %d of %d bytes", p.Metadata.Name, m.anonymous, m.limit)
		}
	}
	c.helm("uninstall", "vedette", "--wait")
}

// publish forwards a port of the node's address to one of the loopback address.
func (c *cluster) publish(target string) string {
	c.t.Helper()
	listener, err := net.Listen("tcp", node.Address.String()+":0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", target)
			if err != nil {
				from.Close()
				continue
			}
			for _, ends := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(ends[0], ends[1])
					ends[0].Close()
					ends[1].Close()
				}()
			}
		}
	}()
	return listener.Addr().String()
}

// usage is the memory of a container, as its control group counts it.
type usage struct{ anonymous, peak, limit int }

func (c *cluster) memory(p podObject) (m usage) {
	c.t.Helper()
	group := c.controlGroup(p, "memory")
	read := func(file string) string {
		content, err := os.ReadFile(filepath.Join(group, file))
		if err != nil {
			c.t.Fatal(err)
		}
		return strings.TrimSpace(string(content))
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			c.t.Fatal(err)
		}
		return n
	}
	m.peak, m.limit = number(read("memory.max_usage_in_bytes")), number(read("memory.limit_in_bytes"))
	for line := range strings.Lines(read("memory.stat")) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), "total_rss "); found {
			m.anonymous = number(value)
		}
	}
	if m.anonymous == 0 || m.limit == 0 {
		c.t.Fatal("the control group of memory does not say how much is used")
	}
	return m
}

// controlGroup returns the directory of a controller for the only container of a Pod.
func (c *cluster) controlGroup(p podObject, controller string) string {
	c.t.Helper()
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", c.process(p)))
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(groups)) {
		// Number, controllers, path.
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); f[1] == controller {
			return filepath.Join("/sys/fs/cgroup", controller, f[2])
		}
	}
	c.t.Fatalf("the container has no control group of %s:\n%s", controller, groups)
	return ""
}
