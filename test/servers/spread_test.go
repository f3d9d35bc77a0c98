package servers

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/test/databases"
)

// spreadBalance lets agents be asked to connect to another server within seconds.
var spreadBalance = assignment.BalanceConfig{Settle: time.Second, Tenure: 2 * time.Second, Pause: time.Second, Stable: 3 * time.Second}

// spreadAgents are agents with an account each, at which operations come in without a pause.
type spreadAgents struct {
	in       *installation
	agents   []*agent.Agent
	accounts []vedette.AccountName
}

// start starts an agent.
func (sp *spreadAgents) start(t *testing.T, link uplink.Config) {
	account := vedette.AccountName(fmt.Sprint("spread-", len(sp.agents)))
	link.Creds, link.Agent = insecure.NewCredentials(), vedette.AgentID(account)
	a := agent.New(agent.Config{Uplink: link, Accounts: []agent.Account{{Name: account, Access: kube.Access{KubeconfigFile: plane.Kubeconfig()},
		Selection: watch.Selection{Kinds: []string{"ConfigMap"}}}}}, sp.in.logger("agent "+string(account)))
	t.Cleanup(runInBackground(t, a.Run))
	sp.agents, sp.accounts = append(sp.agents, a), append(sp.accounts, account)
}

// operate sends operations to servers, none of which may fail, until stop is called.
func (sp *spreadAgents) operate(t *testing.T, servers ...*oneServer) (stop func()) {
	stopped := make(chan struct{})
	var operating sync.WaitGroup
	for i, account := range sp.accounts {
		to := servers[i%len(servers)]
		operating.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stopped:
					return
				default:
				}
				if out := to.operate(account, configMap(string(account), fmt.Sprint(n))); out.State != "done" {
					t.Errorf("operation %d on %s: got %+v", n, account, out)
				}
			}
		})
	}
	return func() { close(stopped); operating.Wait() }
}

// counts returns how many agents each server has.
func (sp *spreadAgents) counts() map[string]int {
	all := map[string]int{}
	for _, a := range sp.agents {
		all[a.Status().Server]++
	}
	return all
}

func (sp *spreadAgents) connections() int {
	return strings.Count(sp.in.log.String(), "msg=connected program=")
}

// TestAgentsAreSpreadOverServers has a server join while all agents are connected to another one. Half of them connect to it, one after the
// other, while operations come in. No operation fails, and each agent that moves connects once.
func TestAgentsAreSpreadOverServers(t *testing.T) {
	in := newInstallation(t, databases.PostgreSQL(t))
	in.balance = spreadBalance
	servers := &movingAgent{in: in, servers: map[vedette.ServerID]*oneServer{}}
	servers.add("s0")
	sp := &spreadAgents{in: in}
	for range 4 {
		sp.start(t, uplink.Config{Target: "servers.invalid:9091", Addresses: servers.addresses})
	}
	first := servers.servers["s0"]
	for _, account := range sp.accounts {
		first.awaitLive(account, 1)
	}
	servers.add("s1")
	second := servers.servers["s1"]
	stop := sp.operate(t, first, second)
	isEven := func() bool { all := sp.counts(); return all["s0"] == 2 && all["s1"] == 2 }
	in.await("as many agents at both servers", isEven)
	calm := time.Now().Add(3 * in.balance.Stable)
	in.await("three times the time after which agents are asked", func() bool {
		if !isEven() {
			t.Fatalf("agents are at %v now", sp.counts())
		}
		return time.Now().After(calm)
	})
	stop()
	if n := sp.connections(); n != len(sp.agents)+2 {
		t.Errorf("agents have connected %d times, want %d: at the start, and once for each of two moves", n, len(sp.agents)+2)
	}
	for _, account := range sp.accounts {
		second.awaitLive(account, 1)
	}
}

// TestAgentsThatComeBackStay has agents that know the address of one server only. Each is asked once to connect to another one, and comes back.
// No operation fails meanwhile.
func TestAgentsThatComeBackStay(t *testing.T) {
	in := newInstallation(t, databases.PostgreSQL(t))
	in.balance = spreadBalance
	first, second := in.startServer("s0"), in.startServer("s1")
	sp := &spreadAgents{in: in}
	for range 3 {
		sp.start(t, uplink.Config{Target: first.GRPC().String()})
	}
	for _, account := range sp.accounts {
		second.awaitLive(account, 1)
	}
	stop := sp.operate(t, first, second)
	in.await("a second connection of each agent", func() bool { return sp.connections() >= 2*len(sp.agents) })
	calm := time.Now().Add(3 * in.balance.Stable)
	in.await("three times the time after which agents are asked", func() bool { return time.Now().After(calm) })
	stop()
	if n := sp.connections(); n != 2*len(sp.agents) {
		t.Errorf("agents have connected %d times, want each twice", n)
	}
	for _, account := range sp.accounts {
		second.awaitLive(account, 1)
	}
}
