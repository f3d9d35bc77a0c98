package convergence

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/faults"
	"github.com/vedette-io/vedette/test/proxy"
)

// The clusters of a world accept the same tokens, and kubeconfigs trust the certificates of all of them.
// So only the identity of a cluster tells an agent where a link leads.

// writeTokens writes tokens of all agents, which are administrators, and returns the path.
func writeTokens(t *testing.T, dir string) string {
	path := filepath.Join(dir, "tokens.csv")
	var text strings.Builder
	for _, id := range []string{"a0", "a1", "a2"} {
		fmt.Fprintf(&text, "token-%s,%s,%s,\"system:masters\"\n", id, id, id)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sharedKubeconfig returns a kubeconfig by which an agent reaches any cluster of the world at an address.
func (w *world) sharedKubeconfig(a *agent, address string) string {
	var authorities []byte
	for _, c := range w.clusters {
		authority, err := os.ReadFile(c.CA())
		if err != nil {
			w.t.Fatal(err)
		}
		authorities = append(authorities, authority...)
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"users: [{name: u, user: {token: token-%s}}]\nclusters:\n- name: c\n  cluster:\n    server: %q\n    certificate-authority-data: %s\n",
		a.id, "https://"+address, base64.StdEncoding.EncodeToString(authorities))
}

// switchFault makes a link lead to another cluster.
func switchFault(link *proxy.Proxy, from, to *cluster) faults.Fault {
	leadTo := func(c *cluster) func(context.Context) error {
		return faults.Infallible(func() {
			link.SetTarget(strings.TrimPrefix(c.URL, "https://"))
			link.Cut()
		})
	}
	return faults.New("leads to "+to.name, leadTo(to), leadTo(from), 8*time.Second, 4)
}

// checkStrays checks that no operation reached a cluster that is not its account's.
func (e *operationLoad) checkStrays() {
	t := e.w.t
	for _, c := range e.w.clusters {
		if c == e.cluster {
			continue
		}
		for _, path := range []string{"/api/v1/configmaps", "/apis/apps/v1/deployments"} {
			var list struct{ Items []item }
			if err := c.Get(t.Context(), path, &list); err != nil {
				t.Error(err)
			}
			for _, o := range list.Items {
				if strings.HasPrefix(o.Metadata.Name, "ops-") {
					t.Errorf("an operation of %s reached %s: %s", e.account, c.name, o.Metadata.Name)
				}
			}
		}
	}
}

// TestStoreConvergesWhenClustersSwitch runs a world in which the link of the only agent leads to another cluster for some
// time, while operations are sent, and the agent restarts meanwhile.
func TestStoreConvergesWhenClustersSwitch(t *testing.T) {
	t.Parallel()
	s := topology{clusters: 2, accounts: []int{0, 1}, agents: [][]int{{0}, {1}}, grace: "10m", outbox: "1MiB"}
	runWorld(t, "sqlite", 1, s, func(parts []faults.Part) (plan []faults.Incident) {
		for _, p := range parts {
			for _, f := range p.Faults {
				switch {
				case p.Name == "a0's link to c0" && f.Name == "leads to c1":
					plan = append(plan, faults.Incident{Part: p.Name, Fault: f, At: time.Second, Duration: 4 * time.Second}, faults.Incident{Part: p.Name, Fault: f, At: 7 * time.Second, Duration: 4 * time.Second})
				case p.Name == "a0" && f.Name == "is killed":
					plan = append(plan, faults.Incident{Part: p.Name, Fault: f, At: 8 * time.Second, Duration: time.Second})
				}
			}
		}
		if len(plan) != 3 {
			t.Fatalf("got %d incidents, want 3", len(plan))
		}
		return plan
	})
}
