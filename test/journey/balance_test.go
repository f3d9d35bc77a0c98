package journey

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/test/fleet"
)

// TestAgentsShareAccounts starts two agents of the same accounts, one after the other, and then stops
// the second. It checks that they share the accounts, that the first takes them back, and that neither
// costs a list.
func TestAgentsShareAccounts(t *testing.T) {
	pods := vedette.Kind{Name: "Pod"}
	clusters, err := fleet.Start(fleet.Config{Clusters: 6, Objects: map[vedette.Kind]int{pods: 50}, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clusters.Close(); err != nil {
			t.Error(err)
		}
	})
	h := startServer(t, assignment.BalanceConfig{Settle: time.Second, Tenure: time.Second, Pause: time.Second})
	stopFirst := h.startSharingAgent("a1", clusters)
	t.Cleanup(stopFirst)
	h.await("six accounts of a1 that are up to date", func() bool { return h.accountsOf("a1") == 6 })
	before := clusters.Counts()
	stopSecond := h.startSharingAgent("a2", clusters)
	t.Cleanup(stopSecond)
	h.await("three accounts of each agent", func() bool { return h.accountsOf("a1") == 3 && h.accountsOf("a2") == 3 })
	h.expectChangesArrive(clusters, pods, 60)
	stopSecond()
	h.await("six accounts of a1 again", func() bool { return h.accountsOf("a1") == 6 })
	h.expectChangesArrive(clusters, pods, 61)
	if n := clusters.Counts().Minus(before).ObjectLists(); n != 0 {
		t.Errorf("got %d lists of objects because of moves, want none", n)
	}
}

// startSharingAgent starts an agent that has all clusters of a fleet.
func (h *stack) startSharingAgent(id vedette.AgentID, clusters *fleet.Fleet) (stop func()) {
	var accounts []agent.Account
	for i := range clusters.Clusters() {
		accounts = append(accounts, agent.Account{Name: vedette.AccountName(fmt.Sprint("shared-", i)),
			Access: kube.Access{KubeconfigContents: clusters.Kubeconfig(i)}, Selection: watch.Selection{Kinds: []string{"pod"}}})
	}
	a := agent.New(agent.Config{Uplink: uplink.Config{Target: h.srv.GRPC().String(), Creds: insecure.NewCredentials(), Agent: id},
		Accounts: accounts}, h.newLogger("agent "+string(id)))
	return runInBackground(h.t, a.Run)
}

// reportedAccount is an account as the API shows it.
type reportedAccount struct {
	Agent  vedette.AgentID
	Status string
}

// accounts returns all accounts, or nil while the server does not answer.
func (h *stack) accounts() []reportedAccount {
	h.t.Helper()
	var list struct{ Items []reportedAccount }
	h.get("/vedette/v1/accounts", &list)
	return list.Items
}

// accountsOf returns how many accounts an agent reports that are up to date.
func (h *stack) accountsOf(id vedette.AgentID) (n int) {
	h.t.Helper()
	for _, a := range h.accounts() {
		if a.Agent == id && a.Status == "Ready" {
			n++
		}
	}
	return n
}

// expectChangesArrive creates a pod in each cluster, and waits until the server has it.
func (h *stack) expectChangesArrive(clusters *fleet.Fleet, kind vedette.Kind, i int) {
	h.t.Helper()
	var before struct{ Total int }
	h.get("/vedette/v1/objects?kind=pods", &before)
	for n := range clusters.Clusters() {
		clusters.Cluster(n).Put(kind, i)
	}
	h.await("a new pod of each cluster", func() bool {
		var after struct{ Total int }
		return h.get("/vedette/v1/objects?kind=pods", &after) && after.Total == before.Total+clusters.Clusters()
	})
}
