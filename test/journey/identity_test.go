package journey

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/executor"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/proxy"
)

// startGreen starts a control plane that accepts the credentials of plane: only its certificate and its
// objects differ.
func startGreen(t *testing.T) *controlplane.Plane {
	t.Helper()
	return controlplane.New(t, controlplane.Options{APIServerFlags: []string{"--token-auth-file=" + filepath.Join(plane.Dir, "tokens.csv")}})
}

// clusterEnv is an operationsEnv whose account "one" is the cluster behind a proxy. Its agent has one
// worker.
type clusterEnv struct {
	*operationsEnv
	agent    *agent.Agent
	apiProxy *proxy.Proxy
	stack    *stack // for await
}

// accessTo returns the access to a cluster by a token that both control planes accept. cluster is a flow
// mapping of YAML, in addition to the address.
func accessTo(address, cluster string) kube.Access {
	return kube.Access{KubeconfigContents: fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: a\n"+
		"contexts: [{name: a, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: %s}}]\nclusters: [{name: c, cluster: {server: \"https://%s\", %s}}]\n",
		plane.AdminToken, address, cluster)}
}

const insecureCluster = "insecure-skip-tls-verify: true"

// bothAuthorities trusts the certificates of two control planes.
func bothAuthorities(t *testing.T, green *controlplane.Plane) string {
	t.Helper()
	var bundle []byte
	for _, p := range []*controlplane.Plane{plane, green} {
		ca, err := os.ReadFile(p.CA())
		if err != nil {
			t.Fatal(err)
		}
		bundle = append(bundle, ca...)
	}
	return "certificate-authority-data: " + base64.StdEncoding.EncodeToString(bundle)
}

func addressOf(p *controlplane.Plane) string { return strings.TrimPrefix(p.URL, "https://") }

func configMapsOf(access kube.Access) agent.Account {
	return agent.Account{Name: "one", Access: access, Selection: watch.Selection{Kinds: []string{"ConfigMap"}}}
}

func startClusterEnv(t *testing.T, cluster string, others ...agent.Account) *clusterEnv {
	t.Helper()
	w := &clusterEnv{operationsEnv: newOperationsServer(t), apiProxy: proxy.New(t, addressOf(plane)), stack: &stack{t: t}}
	accounts := append(others, configMapsOf(accessTo(w.apiProxy.Address(), cluster)))
	w.agent = agent.New(agent.Config{Uplink: w.uplink(), Accounts: accounts, RereadInterval: time.Hour, Executor: executor.Config{MaxWorkers: 1}}, w.log)
	t.Cleanup(runInBackground(t, w.agent.Run))
	w.awaitOneLive()
	return w
}

func (w *clusterEnv) awaitOneLive() {
	w.t.Helper()
	w.stack.await("a live feed", func() bool {
		feeds, err := w.store.Feeds(w.t.Context(), "one")
		return err == nil && len(feeds) == 1 && feeds[0].State == vedette.FeedLive && w.state("one") == "reporting"
	})
}

// state returns the state of an account in the agent.
func (w *clusterEnv) state(name vedette.AccountName) string {
	for _, account := range w.agent.Status().Accounts {
		if account.Name == name {
			return account.State
		}
	}
	return ""
}

// isStored reports whether an object of account "one" is stored.
func (w *clusterEnv) isStored(name string) bool {
	w.t.Helper()
	page, err := w.store.Objects(w.t.Context(), read.Query{Accounts: []vedette.AccountName{"one"}, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Total > 0
}

func createConfigMap(t *testing.T, p *controlplane.Plane, name string) {
	t.Helper()
	if err := p.Create(t.Context(), "/api/v1/namespaces/default/configmaps", map[string]any{"metadata": map[string]any{"name": name}}); err != nil {
		t.Fatal(err)
	}
}

// exists reports whether a ConfigMap exists in a cluster.
func exists(t *testing.T, p *controlplane.Plane, name string) bool {
	t.Helper()
	return p.Get(t.Context(), "/api/v1/namespaces/default/configmaps/"+name, nil) == nil
}

func applyOf(name string) vedette.ApplyArgs {
	return vedette.ApplyArgs{Manifest: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"}}`, name)}
}

// TestOtherClusterIsLeftAlone switches the address of an account to another cluster and back. Nothing of the
// other cluster may be stored, and nothing may be written to it.
func TestOtherClusterIsLeftAlone(t *testing.T) {
	for name, clusterOf := range map[string]func(*testing.T, *controlplane.Plane) string{
		"any certificate":     func(*testing.T, *controlplane.Plane) string { return insecureCluster },
		"another certificate": bothAuthorities,
	} {
		t.Run(name, func(t *testing.T) {
			green := startGreen(t)
			suffix := strings.ReplaceAll(name, " ", "-")
			createConfigMap(t, green, "in-green")
			createConfigMap(t, plane, "in-blue-"+suffix)
			w := startClusterEnv(t, clusterOf(t, green))
			w.mustDo(applyOf("before-" + suffix))

			w.apiProxy.SetTarget(addressOf(green))
			w.apiProxy.Cut()
			if out := w.do(applyOf("during-" + suffix)); out.State == vedette.Done {
				t.Errorf("got %+v, want a refusal", out)
			} else if strings.Contains(out.Message, "uid") {
				t.Errorf("%q names a cluster", out.Message)
			}
			w.stack.await("the refusal of the other cluster", func() bool { return w.state("one") == "refused" })
			if exists(t, green, "during-"+suffix) {
				t.Error("the operation created its object in the other cluster")
			}
			if w.isStored("in-green") || !w.isStored("in-blue-"+suffix) {
				t.Error("the objects of the other cluster were stored")
			}

			w.apiProxy.SetTarget(addressOf(plane))
			w.apiProxy.Cut()
			w.awaitOneLive()
			w.mustDo(applyOf("after-" + suffix))
			if !exists(t, plane, "after-"+suffix) || !w.isStored("after-"+suffix) || w.isStored("in-green") {
				t.Error("the account does not have its cluster again")
			}
		})
	}
}

// TestOperationsWaitForTheirCluster lets an operation wait for a worker while the configuration gives its
// account another cluster, which the server refuses, and while the account is removed and added again.
func TestOperationsWaitForTheirCluster(t *testing.T) {
	green := startGreen(t)
	hungProxy := proxy.New(t, addressOf(plane))
	hung := configMapsOf(accessTo(hungProxy.Address(), insecureCluster))
	hung.Name = "hung"
	w := startClusterEnv(t, insecureCluster, hung)
	w.stack.await("the other account", func() bool { return w.state("hung") == "reporting" })
	blue, other := configMapsOf(accessTo(w.apiProxy.Address(), insecureCluster)), configMapsOf(accessTo(addressOf(green), insecureCluster))
	for name, tt := range map[string]struct {
		change func()
		state  string // of the account afterwards
		done   bool   // the operation may be executed: the account has its cluster
	}{
		"another-cluster": {func() { w.agent.SetAccounts(t.Context(), []agent.Account{hung, other}) }, "refused", false},
		"removed-and-added": {func() {
			w.agent.SetAccounts(t.Context(), []agent.Account{hung})
			w.agent.SetAccounts(t.Context(), []agent.Account{hung, other})
		}, "refused", false},
		"there-and-back": {func() {
			w.agent.SetAccounts(t.Context(), []agent.Account{hung, other})
			w.agent.SetAccounts(t.Context(), []agent.Account{hung, blue})
		}, "reporting", true},
	} {
		w.agent.SetAccounts(t.Context(), []agent.Account{hung, blue})
		w.awaitOneLive()
		hungProxy.Freeze(proxy.Up)
		held := make(chan vedette.Outcome, 1)
		go func() {
			held <- w.Execute(t.Context(), vedette.Operation{Account: "hung", Args: vedette.ListArgs{Target: vedette.Target{Kind: "configmap", Namespace: "default"}}})
		}()
		w.stack.await("the worker to be used", func() bool { return w.agent.RunningOperations() == 1 })
		waiting := make(chan vedette.Outcome, 1)
		go func() { waiting <- w.do(applyOf(name)) }()
		w.stack.await("the operation to wait", func() bool { return w.agent.RunningOperations() == 2 })
		tt.change()
		w.stack.await(name+": account one to be "+tt.state, func() bool { return w.state("one") == tt.state })
		hungProxy.Heal()
		<-held
		out := <-waiting
		if (out.State == vedette.Done) != tt.done || exists(t, green, name) {
			t.Errorf("%s: got %+v", name, out)
		}
		if !tt.done && (out.Reason != vedette.ReasonAnotherCluster || out.State != vedette.Failed) {
			t.Errorf("%s: got %s %s: %s", name, out.State, out.Reason, out.Message)
		}
	}
}
