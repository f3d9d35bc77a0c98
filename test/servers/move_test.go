package servers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
)

// movingAgent is an agent that chooses one of the servers that run.
type movingAgent struct {
	*agent.Agent
	in *installation

	mu      sync.Mutex
	servers map[vedette.ServerID]*oneServer
}

func (m *movingAgent) add(id vedette.ServerID) {
	s := m.in.startServer(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.servers[id] = s
}

// addresses returns the addresses of all servers, as a Service has them.
func (m *movingAgent) addresses(context.Context) (all []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.servers {
		all = append(all, s.GRPC().String())
	}
	return all, nil
}

// split returns the server of the agent, and the other one.
func (m *movingAgent) split() (own, other *oneServer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := vedette.ServerID(m.Status().Server)
	for name, s := range m.servers {
		if name == id {
			own = s
		} else {
			other = s
		}
	}
	return own, other
}

// TestAgentMovesBetweenServers stops the server of an agent twice, while the cluster changes and operations come in through the other
// server. The agent is at the other server before its own one ends: it is never without a server, connects once for each move, and no
// operation and no change is lost.
func TestAgentMovesBetweenServers(t *testing.T) {
	onSharedDatabases(t, func(t *testing.T, url string) {
		in := newInstallation(t, url)
		m := &movingAgent{in: in, servers: map[vedette.ServerID]*oneServer{}}
		m.add("s0")
		m.add("s1")
		m.Agent = agent.New(agent.Config{
			Uplink: uplink.Config{Target: "servers.invalid:9091", Creds: insecure.NewCredentials(), Agent: "mover", Addresses: m.addresses},
			Accounts: []agent.Account{{Name: "one", Access: kube.Access{KubeconfigFile: plane.Kubeconfig()},
				Selection: watch.Selection{Kinds: []string{"ConfigMap"}}}},
		}, in.logger("agent mover"))
		t.Cleanup(runInBackground(t, m.Run))
		in.await("the agent's server", func() bool { return m.Status().Server != "" })
		_, other := m.split()
		other.awaitLive("one", 1)
		for round := range 2 {
			m.move(t, round)
		}
		if lines := strings.Count(in.log.String(), `msg=connected program="agent mover"`); lines != 3 {
			t.Errorf("the agent has connected %d times, want 3: at the start, and once for each move", lines)
		}
	})
}

// move stops the server of the agent under load, and starts it again.
func (m *movingAgent) move(t *testing.T, round int) {
	own, other := m.split()
	before := m.Status().Server
	load := m.startLoad(t, other, round)
	m.in.await("operations", func() bool { return load.operations.Load() > 20 })
	own.stop()
	atStop := load.operations.Load()
	m.in.await("operations after the move", func() bool { return t.Failed() || load.operations.Load() > atStop+20 })
	load.stop()
	if after := m.Status(); after.Server == before || after.Error != "" {
		t.Errorf("round %d: the agent is at %s, %q, want another server than %s", round, after.Server, after.Error, before)
	}
	t.Logf("round %d: %d operations, the slowest took %v; %d changes, the slowest was visible after %v", round, load.operations.Load(),
		load.slowestOperation.Round(time.Millisecond), load.changes, load.slowestChange.Round(time.Millisecond))
	m.add(vedette.ServerID(before))
}

// load is operations and changes without a pause.
type load struct {
	stop             func()
	operations       atomic.Int64
	changes          int
	slowestOperation time.Duration
	slowestChange    time.Duration
}

// startLoad sends operations to a server, changes the cluster, and looks whether the agent is connected, until stop is called.
func (m *movingAgent) startLoad(t *testing.T, to *oneServer, round int) *load {
	l := &load{}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	l.stop = func() { cancel(); running.Wait() }
	var mu sync.Mutex
	for worker := range 3 {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name, value, began := fmt.Sprintf("move-%d", worker), fmt.Sprintf("%d-%d", round, n), time.Now()
				if out := to.operate("one", configMap(name, value)); out.State != "done" {
					t.Errorf("operation %s of worker %d: got %+v", value, worker, out)
				}
				if got := to.readValue("one", name); got != value {
					t.Errorf("read %q after %q was written", got, value)
				}
				l.operations.Add(1)
				mu.Lock()
				l.slowestOperation = max(l.slowestOperation, time.Since(began))
				mu.Unlock()
			}
		})
	}
	const changed = "move-changed"
	path := "/api/v1/namespaces/default/configmaps"
	if round == 0 {
		if err := plane.Create(ctx, path, object{"metadata": object{"name": changed + pathSuffix(t)}, "data": object{"value": ""}}); err != nil {
			t.Fatal(err)
		}
	}
	running.Go(func() {
		for ; ctx.Err() == nil; l.changes++ {
			value, began := fmt.Sprintf("changed-%d-%d", round, l.changes), time.Now()
			if err := plane.Patch(t.Context(), path+"/"+changed+pathSuffix(t), object{"data": object{"value": value}}); err != nil {
				t.Error(err)
				return
			}
			m.in.await(value, func() bool { return to.readValue("one", changed+pathSuffix(t)) == value })
			l.slowestChange = max(l.slowestChange, time.Since(began))
		}
	})
	running.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if ctx.Err() != nil {
				return
			}
			if s := m.Status(); s.Error != "" {
				t.Errorf("the agent is not connected: %s", s.Error)
				return
			}
		}
	})
	return l
}

// pathSuffix returns a suffix of names for one test.
func pathSuffix(t *testing.T) string {
	return "-" + strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
}
