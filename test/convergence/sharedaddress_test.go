package convergence

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/proxy"
)

// TestSecondClusterWithSameAddressIsRejected has two clusters that are reached by the same address,
// as with in-cluster addresses, and that hide their identity. The second agent uses the account
// name of the first. It must get nothing and change nothing, even while the first is disconnected.
func TestSecondClusterWithSameAddressIsRejected(t *testing.T) {
	t.Parallel() // because it waits most of the time
	s := topology{clusters: 2, accounts: []int{0}, outbox: "8MiB", grace: "10m"}
	for _, name := range anyDatabase() {
		w := newWorld(t, newDatabase(t, name), s)
		apiProxy := proxy.New(t, address(w.clusters[0]))
		for i, c := range w.clusters {
			c.prepareRestrictedAccess(w, fmt.Sprintf("in-c%d", i))
		}
		first := w.addRestrictedAgent("a0", w.clusters[0], apiProxy)
		stored := func(names ...string) func(context.Context) bool {
			return func(ctx context.Context) bool { return slices.Equal(w.configMaps(ctx), names) }
		}
		if !w.eventually(convergenceTimeout, stored("in-c0")) {
			t.Fatalf("got %v stored", w.configMaps(t.Context()))
		}
		apiProxy.SetTarget(address(w.clusters[1]))
		apiProxy.Cut()
		second := w.addRestrictedAgent("a1", w.clusters[1], apiProxy)
		if !w.eventually(convergenceTimeout, func(ctx context.Context) bool { return strings.HasPrefix(second.role(ctx, "account-0"), "refused") }) {
			t.Errorf("second cluster: got role %q, want refused", second.role(t.Context(), "account-0"))
		}
		first.Stop() // so that no agent holds the name
		second.Kill()
		second.Start()
		if !w.eventually(convergenceTimeout, func(ctx context.Context) bool { return strings.HasPrefix(second.role(ctx, "account-0"), "refused") }) {
			t.Errorf("second cluster without the first agent: got role %q, want refused", second.role(t.Context(), "account-0"))
		}
		apiProxy.SetTarget(address(w.clusters[0]))
		apiProxy.Cut()
		first.Start()
		if err := w.clusters[0].Create(t.Context(), configMap.list(namespaces[0]), namedConfigMap("later")); err != nil {
			t.Fatal(err)
		}
		if !w.eventually(convergenceTimeout, stored("in-c0", "later")) {
			t.Errorf("got %v stored", w.configMaps(t.Context()))
		}
	}
}

func address(c *cluster) string { return strings.TrimPrefix(c.URL, "https://") }

func namedConfigMap(name string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}}
}

// prepareRestrictedAccess creates one object, and lets the group guests read only ConfigMaps.
func (c *cluster) prepareRestrictedAccess(w *world, name string) {
	rules := []object{{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": []string{"get", "list", "watch"}}}
	for _, step := range []struct {
		path string
		what object
	}{
		{nsKind.list(""), object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespaces[0]}}},
		{configMap.list(namespaces[0]), namedConfigMap(name)},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": object{"name": "guest"}, "rules": rules}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": object{"name": "guest"}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "guest"},
			"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "guests"}}}},
	} {
		must(w.t, c.Create(w.t.Context(), step.path, step.what))
	}
}

// addRestrictedAgent starts an agent that may read the ConfigMaps of one namespace of a cluster,
// and reaches it through a proxy.
func (w *world) addRestrictedAgent(id string, c *cluster, apiProxy *proxy.Proxy) *agent {
	path, err := c.UserKubeconfig(id, "guests")
	must(w.t, err)
	text, err := os.ReadFile(path)
	must(w.t, err)
	kubeconfig := w.write(id+".kubeconfig", strings.ReplaceAll(string(text), c.URL, "https://"+apiProxy.Address()))
	port := freePort(w.t)
	a := &agent{id: id, link: proxy.New(w.t, w.serverAddress), health: fmt.Sprintf("http://127.0.0.1:%d/health", port)}
	account := fmt.Sprintf("  - {name: account-0, kubeconfigFile: %q, kinds: [ConfigMap], namespaces: [%s]}\n", kubeconfig, namespaces[0])
	config := w.write(id+".yml", fmt.Sprintf(agentConfig, id, a.link.Address(), port, "8MiB", 0, account))
	a.Program = w.start(id, "vedette-agent", "--config", config)
	w.agents = append(w.agents, a)
	return a
}

// configMaps returns the names of the stored ConfigMaps, sorted.
func (w *world) configMaps(ctx context.Context) (names []string) {
	err := w.forEachRow(ctx, `SELECT o.name FROM objects o JOIN kinds k ON k.id = o.kind_id WHERE k.name = 'ConfigMap' AND o.name <> 'kube-root-ca.crt' ORDER BY o.name`, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	if err != nil {
		return []string{err.Error()}
	}
	return names
}
