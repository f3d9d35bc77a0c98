package journey

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/queue"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/test/apistub"
)

// startHeldCluster starts a cluster whose lists of pods wait until release is closed, and returns an
// account of it.
func startHeldCluster(t *testing.T, name string, release <-chan struct{}) agent.Account {
	t.Helper()
	cluster, err := apistub.New([]json.RawMessage{
		json.RawMessage(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "%s", "resourceVersion": "5"}}`, name)),
		json.RawMessage(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "kube-system", "uid": "%s-p", "resourceVersion": "7"}}`, name)),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("watch") == "" {
			select {
			case <-release:
			case <-r.Context().Done():
				return
			}
		}
		cluster.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: t}}], clusters: [{name: a, cluster: {server: %q, insecure-skip-tls-verify: true}}]}`,
		server.URL)
	return agent.Account{Name: vedette.AccountName(name), Access: kube.Access{KubeconfigContents: []byte(kubeconfig)},
		Selection: watch.Selection{Kinds: []string{"pods"}}}
}

// TestPositionInTheQueueIsVisible lets an agent list one account at a time. The other one says to people
// how many accounts are before it, and is not shown as failing.
func TestPositionInTheQueueIsVisible(t *testing.T) {
	h := startServer(t, assignment.BalanceConfig{})
	release := make(chan struct{})
	a := agent.New(agent.Config{
		Uplink:   uplink.Config{Target: h.srv.GRPC().String(), Creds: insecure.NewCredentials(), Agent: "a1"},
		Accounts: []agent.Account{startHeldCluster(t, "one", release), startHeldCluster(t, "two", release)},
		Watch:    watch.Config{Limiter: watch.NewLimiter(queue.Budget{Total: 1})},
	}, h.newLogger("agent"))
	stop := runInBackground(t, a.Run)
	t.Cleanup(stop)
	const position = "waits to list its objects: " // and how many are before it: one that reads may have its turn again
	h.await("an account that waits", func() bool {
		return slices.ContainsFunc([]string{"one", "two"}, func(name string) bool {
			account := h.account(name)
			return strings.Contains(account.Message, position) && account.Status == "Stale"
		})
	})
	cli := buildCLI(t, "http://"+h.srv.REST().String())
	h.await("the command line to show it", func() bool { // now it may be the other one
		code, out := cli.run("", "accounts")
		return code == 0 && (strings.Contains(out, "one: "+position) || strings.Contains(out, "two: "+position))
	})
	close(release)
	h.await("both accounts to be ready, without a message", func() bool {
		one, two := h.account("one"), h.account("two")
		return one.Status == "Ready" && two.Status == "Ready" && one.Message == "" && two.Message == ""
	})
}
