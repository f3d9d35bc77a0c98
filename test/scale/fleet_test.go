package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/test/fleet"
	"github.com/vedette-io/vedette/test/process"
)

// fleetVariable is the environment variable that tells a process of this test which agents it has.
const fleetVariable = "VEDETTE_TEST_FLEET"

// TestMain runs the tests, or agents if a test has started this process for them.
func TestMain(m *testing.M) {
	text := os.Getenv(fleetVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var s share
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.serve()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1) // the test kills a process that works
}

// share is which agents a process has, and the clusters of their accounts. Agents take accounts in turn, and processes agents.
type share struct {
	Number, Processes         int
	Agents, Accounts, Objects int // in all processes
	Servers                   []string
	Bookmarks                 time.Duration
	Socket                    string // where the process listens
}

// agentOf returns the number of the agent that has an account.
func (s *share) agentOf(account int) int { return account % s.Agents }

// processOf returns the number of the process that has an agent.
func (s *share) processOf(number int) int { return number % s.Processes }

// fleetProcess is what a process of agents does for the test. Its methods are called by package net/rpc.
type fleetProcess struct {
	clusters *fleet.Fleet
	agents   map[int]*agent.Agent
	accounts map[int][]agent.Account // by agent
	cluster  map[int]int             // the number of an account's cluster

	mu        sync.Mutex
	stopChurn context.CancelFunc
	churning  sync.WaitGroup
}

// serve runs the agents until the process is killed.
func (s *share) serve() error {
	p := &fleetProcess{agents: map[int]*agent.Agent{}, accounts: map[int][]agent.Account{}, cluster: map[int]int{}, stopChurn: func() {}}
	for i := range s.Accounts {
		if s.processOf(s.agentOf(i)) == s.Number {
			p.cluster[i] = len(p.cluster)
		}
	}
	objects := map[vedette.Kind]int{}
	var names []string
	for _, k := range kinds {
		objects[k.kind] = max(1, int(k.share*float64(s.Objects)))
		names = append(names, k.kind.Name)
	}
	var err error
	p.clusters, err = fleet.Start(fleet.Config{Clusters: len(p.cluster), Objects: objects, Seed: uint64(23 + s.Number), Bookmarks: s.Bookmarks})
	if err != nil {
		return fmt.Errorf("start clusters: %w", err)
	}
	for i := range s.Accounts {
		if n, isOurs := p.cluster[i]; isOurs {
			of := s.agentOf(i)
			p.accounts[of] = append(p.accounts[of], agent.Account{Name: accountName(i), Access: kube.Access{KubeconfigContents: p.clusters.Kubeconfig(n)},
				Selection: watch.Selection{Kinds: names}})
		}
	}
	p.startAgents(s)
	return p.listen(s.Socket)
}

// startAgents starts the agents, without accounts yet. Each chooses one of the servers.
func (p *fleetProcess) startAgents(s *share) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for i := range s.Agents {
		if s.processOf(i) != s.Number {
			continue
		}
		id := vedette.AgentID(fmt.Sprintf("agent-%04d", i))
		a := agent.New(agent.Config{Uplink: uplink.Config{Target: "servers.invalid:9091", Creds: insecure.NewCredentials(), Agent: id,
			Addresses: func(context.Context) ([]string, error) { return s.Servers, nil }},
			// No watch ends meanwhile, so that those which begin are known to have a reason.
			Watch: watch.Config{VerifyInterval: never, MinWatchTimeout: never, MaxWatchTimeout: never}}, log.With("agent", id))
		p.agents[i] = a
		go func() {
			fmt.Fprintf(os.Stderr, "agent %s has ended: %v\n", id, a.Run(context.Background()))
			os.Exit(1)
		}()
	}
}

func (p *fleetProcess) listen(socket string) error {
	var listen net.ListenConfig
	l, err := listen.Listen(context.Background(), "unix", socket)
	if err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName(fleetService, &fleetCalls{p}); err != nil {
		return err
	}
	server.Accept(l)
	return errors.New("the test does not connect any more")
}

// fleetService is the name of fleetCalls.
const fleetService = "Fleet"

// fleetCalls has only methods that net/rpc calls.
type fleetCalls struct{ p *fleetProcess }

// Nothing is for calls without an argument or a result. Package net/rpc wants exported types.
type Nothing struct{}

// Give lets an agent serve its accounts.
func (c *fleetCalls) Give(number int, accounts *int) error {
	c.p.agents[number].SetAccounts(context.Background(), c.p.accounts[number])
	*accounts = len(c.p.accounts[number])
	return nil
}

// Connected returns how many agents are connected.
func (c *fleetCalls) Connected(_ Nothing, n *int) error {
	for _, a := range c.p.agents {
		if a.Status().Error == "" {
			*n++
		}
	}
	return nil
}

// Counts returns the requests to the clusters.
func (c *fleetCalls) Counts(_ Nothing, counts *fleet.Counts) error {
	*counts = c.p.clusters.Counts()
	return nil
}

// Steps returns the number of changes.
func (c *fleetCalls) Steps(_ Nothing, n *int) error {
	*n = c.p.clusters.Steps()
	return nil
}

// Profile writes a profile of the processor time of the next seconds into a file.
func (c *fleetCalls) Profile(file string, _ *Nothing) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	time.Sleep(profileTime)
	pprof.StopCPUProfile()
	return nil
}

// Advance raises the versions of all clusters, which bookmarks then show.
func (c *fleetCalls) Advance(Nothing, *Nothing) error {
	c.p.clusters.Advance()
	return nil
}

// Churn changes objects of each cluster so many times a second, until it is called again; 0 changes none.
func (c *fleetCalls) Churn(perSecond float64, _ *Nothing) error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.stopChurn()
	c.p.churning.Wait()
	if perSecond > 0 {
		var ctx context.Context
		ctx, c.p.stopChurn = context.WithCancel(context.Background())
		c.p.churning.Go(func() { c.p.clusters.Churn(ctx, perSecond) })
	}
	return nil
}

// Key returns the key of an object of an account's cluster.
func (c *fleetCalls) Key(account int, key *vedette.Key) error {
	n, isOurs := c.p.cluster[account]
	if !isOurs {
		return fmt.Errorf("account %d belongs to another process", account)
	}
	for o := range c.p.clusters.Cluster(n).Objects(configMaps) {
		*key = o.Key
		return nil
	}
	return errors.New("the cluster has no object")
}

// agents are the processes that have the agents and the clusters.
type agents struct {
	t         *testing.T
	share     share
	processes []*process.Process
	clients   []*rpc.Client
}

// startAgents starts the processes and waits until they listen.
func (in *installation) startAgents() {
	in.t.Helper()
	in.agents = &agents{t: in.t, share: share{Processes: min(*processes, *agentCount), Agents: *agentCount, Accounts: *accountCount, Objects: *objectCount,
		Bookmarks: *bookmarks}}
	for _, s := range in.servers {
		in.agents.share.Servers = append(in.agents.share.Servers, s.grpc)
	}
	dir := in.t.TempDir()
	for i := range in.agents.share.Processes {
		s := in.agents.share
		s.Number, s.Socket = i, filepath.Join(dir, fmt.Sprint(i))
		in.agents.start(dir, s)
		in.await("agents to be started", func() bool { return in.agents.connect(s.Socket) })
	}
}

func (a *agents) start(dir string, s share) {
	a.t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		a.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(a.t.Context()), os.Args[0])
	cmd.Dir, cmd.Env = dir, append(os.Environ(), fleetVariable+"="+string(text))
	p, err := process.Start(fmt.Sprint("agents-", s.Number), cmd)
	if err != nil {
		a.t.Fatal(err)
	}
	a.processes = append(a.processes, p)
	a.t.Cleanup(func() {
		if a.t.Failed() {
			a.t.Log(p.Tail())
		}
		p.Kill()
	})
}

func (a *agents) connect(socket string) bool {
	a.t.Helper()
	if err := a.processes[len(a.processes)-1].Exited(); err != nil {
		a.t.Fatal(err)
	}
	client, err := rpc.Dial("unix", socket)
	if err != nil {
		return false
	}
	a.clients = append(a.clients, client)
	a.t.Cleanup(func() { _ = client.Close() }) // the process is killed too
	return true
}

// call calls a method of a process.
func (a *agents) call(number int, method string, argument, result any) {
	a.t.Helper()
	if err := a.clients[number].Call(fleetService+"."+method, argument, result); err != nil {
		a.t.Fatalf("%s of the agents' process %d: %v", method, number, err)
	}
}

// give lets an agent serve its accounts, and returns their number.
func (a *agents) give(number int) (accounts int) {
	a.t.Helper()
	a.call(a.share.processOf(number), "Give", number, &accounts)
	return accounts
}

// saveProfile writes a profile of one of the processes into the directory of the flag profiles. It does nothing without that.
func (a *agents) saveProfile(when string) {
	if *profiles != "" {
		a.call(0, "Profile", filepath.Join(*profiles, when+"-agents.pprof"), &Nothing{})
	}
}

func (a *agents) connected() (total int) {
	a.t.Helper()
	for i := range a.clients {
		var n int
		a.call(i, "Connected", Nothing{}, &n)
		total += n
	}
	return total
}

func (a *agents) counts() (total fleet.Counts) {
	a.t.Helper()
	for i := range a.clients {
		var c fleet.Counts
		a.call(i, "Counts", Nothing{}, &c)
		total = total.Plus(c)
	}
	return total
}

func (a *agents) steps() (total int) {
	a.t.Helper()
	for i := range a.clients {
		var n int
		a.call(i, "Steps", Nothing{}, &n)
		total += n
	}
	return total
}

// advance raises the versions of all clusters.
func (a *agents) advance() {
	a.t.Helper()
	for i := range a.clients {
		a.call(i, "Advance", Nothing{}, &Nothing{})
	}
}

// churn changes objects of all clusters so many times a second; 0 changes none.
func (a *agents) churn(perSecond float64) {
	a.t.Helper()
	for i := range a.clients {
		a.call(i, "Churn", perSecond/float64(a.share.Accounts), &Nothing{})
	}
}

// key returns the key of an object of an account's cluster. It may be called by goroutines of the test.
func (a *agents) key(account int) (key vedette.Key, err error) {
	err = a.clients[a.share.processOf(a.share.agentOf(account))].Call(fleetService+".Key", account, &key)
	return key, err
}

// memory returns the resident memory of all processes.
func (a *agents) memory() (total int64) {
	a.t.Helper()
	for _, p := range a.processes {
		u, err := p.Usage()
		if err != nil {
			a.t.Fatal(err)
		}
		total += u.RSS
	}
	return total
}
