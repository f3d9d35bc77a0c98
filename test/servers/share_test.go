package servers

import (
	"fmt"
	"io"
	"net"
	"net/http"
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
	"github.com/vedette-io/vedette/test/databases"
)

// cacherOf returns the agent that reports an account, as a server says.
func (s *oneServer) cacherOf(account vedette.AccountName) string {
	s.in.t.Helper()
	for id, accounts := range s.cachers() {
		for _, name := range accounts {
			if name == string(account) {
				return id
			}
		}
	}
	return ""
}

// cachers returns which accounts each agent reports, as a server says.
func (s *oneServer) cachers() map[string][]string {
	s.in.t.Helper()
	var list struct {
		Items []struct {
			ID       string
			Accounts []struct{ Name, Role string }
		}
	}
	s.get("/vedette/v1/agents", &list)
	all := map[string][]string{}
	for _, a := range list.Items {
		for _, account := range a.Accounts {
			if account.Role == "cacher" {
				all[a.ID] = append(all[a.ID], account.Name)
			}
		}
	}
	return all
}

// startSharing starts an agent with several accounts of the control plane.
func (in *installation) startSharing(id vedette.AgentID, target string, accounts ...vedette.AccountName) (stop func()) {
	cfg := agent.Config{Uplink: uplink.Config{Target: target, Creds: insecure.NewCredentials(), Agent: id}}
	for _, name := range accounts {
		cfg.Accounts = append(cfg.Accounts, agent.Account{Name: name, Access: kube.Access{KubeconfigFile: plane.Kubeconfig()},
			Selection: watch.Selection{Kinds: []string{"ConfigMap"}}})
	}
	stop = runInBackground(in.t, agent.New(cfg, in.logger("agent "+string(id))).Run)
	in.t.Cleanup(stop)
	return stop
}

// pausable passes connections on until it is paused: then nothing passes, and no connection ends, as if a machine were frozen.
type pausable struct {
	listener net.Listener
	target   string
	open     sync.WaitGroup

	mu     sync.Mutex
	resume chan struct{} // closed unless it is paused
	conns  []net.Conn
}

func newPausable(t *testing.T, target string) *pausable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pausable{listener: listener, target: target, resume: make(chan struct{})}
	close(p.resume)
	p.open.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *pausable) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = from.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, from, to)
		p.mu.Unlock()
		p.open.Go(func() { p.pass(from, to) })
		p.open.Go(func() { p.pass(to, from) })
	}
}

func (p *pausable) pass(from, to net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		resume := p.resume
		p.mu.Unlock()
		<-resume
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// pause stops all traffic until the returned function is called.
func (p *pausable) pause() (resume func()) {
	paused := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resume = paused
	return sync.OnceFunc(func() { close(paused) })
}

func (p *pausable) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.open.Wait()
}

// TestSilentAgentIsReplacedFromAnotherServer stops all messages of an agent at one server. An agent at the other one takes its account over
// before the connection ends, and the first agent becomes a standby when it is heard again.
func TestSilentAgentIsReplacedFromAnotherServer(t *testing.T) {
	in := newInstallation(t, databases.PostgreSQL(t))
	first, second := in.startServer("s0"), in.startServer("s1")
	p := newPausable(t, first.GRPC().String())
	in.startSharing("a1", p.listener.Addr().String(), "one")
	first.awaitLive("one", 1)
	in.startSharing("a2", second.GRPC().String(), "one")
	in.await("the standby", func() bool { return roleOf(second, "a2", "one") == "standby" })
	in.await("a tenure of five seconds", func() bool { return connectedFor(first, "a1") > 6*time.Second })
	began := time.Now()
	resume := p.pause()
	defer resume()
	in.await("the takeover", func() bool { return second.cacherOf("one") == "a2" })
	t.Logf("the account moved after %v of silence", time.Since(began).Round(time.Millisecond))
	if connectedFor(first, "a1") == 0 {
		t.Error("the connection of the silent agent has ended before")
	}
	second.awaitLive("one", 1)
	resume()
	in.await("the first agent to be a standby", func() bool { return roleOf(first, "a1", "one") == "standby" })
	if out := first.operate("one", configMap("silent", "x")); out.State != "done" {
		t.Errorf("got %+v", out)
	}
	if got := second.readValue("one", "silent"); got != "x" {
		t.Errorf("got %q, want what was written", got)
	}
	if got := first.cacherOf("one"); got != "a2" {
		t.Errorf("the account is with %s, want that it stays with a2", got)
	}
}

func roleOf(s *oneServer, id, account string) (role string) {
	s.eachAgent(func(a agentView) {
		for _, held := range a.Accounts {
			if a.ID == id && held.Name == account {
				role = held.Role
			}
		}
	})
	return role
}

// connectedFor returns how long an agent is connected to a server; 0 if it is not.
func connectedFor(s *oneServer, id string) (d time.Duration) {
	s.eachAgent(func(a agentView) {
		if a.ID == id {
			d = time.Since(a.Connected)
		}
	})
	return d
}

type agentView struct {
	ID, Server string
	Connected  time.Time
	Accounts   []struct{ Name, Role string }
}

func (s *oneServer) eachAgent(yield func(agentView)) {
	s.in.t.Helper()
	var list struct{ Items []agentView }
	s.get("/vedette/v1/agents", &list)
	for _, a := range list.Items {
		yield(a)
	}
}

// TestAccountsAreSpreadOverServers lets a second agent join at a second server. It gets accounts until both have about as many, and keeps
// them.
func TestAccountsAreSpreadOverServers(t *testing.T) {
	in := newInstallation(t, databases.PostgreSQL(t))
	in.balance.Settle, in.balance.Tenure, in.balance.Pause = 2*time.Second, 3*time.Second, time.Second
	first, second := in.startServer("s0"), in.startServer("s1")
	var accounts []vedette.AccountName
	for n := range 6 {
		accounts = append(accounts, vedette.AccountName(fmt.Sprint("shared-", n)))
	}
	in.startSharing("a1", first.GRPC().String(), accounts...)
	for _, name := range accounts {
		first.awaitLive(name, 1)
	}
	in.startSharing("a2", second.GRPC().String(), accounts...)
	began := time.Now()
	isSpread := func() bool {
		got := first.cachers()
		return len(got["a1"]) == 3 && len(got["a2"]) == 3
	}
	in.await("an even share", isSpread)
	t.Logf("six accounts are shared evenly after %v", time.Since(began).Round(time.Millisecond))
	end := time.Now().Add(3 * in.balance.Tenure)
	in.await("three tenures without a move", func() bool {
		if got := second.cachers(); len(got["a1"]) != 3 || len(got["a2"]) != 3 {
			t.Fatalf("accounts have moved again: %v", got)
		}
		return time.Now().After(end)
	})
	for _, name := range accounts {
		second.awaitLive(name, 1)
	}
}

// TestReleasedAccountIsTakenOverElsewhere ends the agent of an account. An agent at another server takes over as soon as the account is
// released.
func TestReleasedAccountIsTakenOverElsewhere(t *testing.T) {
	in := newInstallation(t, databases.PostgreSQL(t))
	first, second := in.startServer("s0"), in.startServer("s1")
	servers := []*oneServer{first, second}
	var took []time.Duration
	stops := []func(){nil, nil}
	stops[0] = in.startSharing("a0", first.GRPC().String(), "one")
	first.awaitLive("one", 1)
	for round := range 6 {
		from, to := round%2, (round+1)%2
		id := vedette.AgentID(fmt.Sprint("a", round+1))
		stops[to] = in.startSharing(id, servers[to].GRPC().String(), "one")
		in.await("the standby", func() bool { return roleOf(servers[from], string(id), "one") == "standby" })
		began := time.Now()
		var stopping sync.WaitGroup
		stopping.Go(stops[from])
		in.await("the takeover", func() bool { return servers[to].cacherOf("one") == string(id) })
		took = append(took, time.Since(began).Round(time.Millisecond))
		stopping.Wait()
		servers[from].awaitLive("one", 1)
	}
	t.Logf("from the end of the agent to the next one, with what the list of agents takes: %v", took)
}

// TestServerThatStopsGivesItsAccountsAway stops a server whose account an agent at the other server could report, too.
func TestServerThatStopsGivesItsAccountsAway(t *testing.T) {
	in := newInstallation(t, databases.PostgreSQL(t))
	first, second := in.startServer("s0"), in.startServer("s1")
	in.startSharing("a1", first.GRPC().String(), "one")
	first.awaitLive("one", 1)
	in.startSharing("a2", second.GRPC().String(), "one")
	in.await("the standby", func() bool { return roleOf(first, "a2", "one") == "standby" })
	var stopping sync.WaitGroup
	began := time.Now()
	stopping.Go(first.stop)
	in.await("the takeover", func() bool { return second.cacherOf("one") == "a2" })
	t.Logf("the account moved %v after the server was told to stop", time.Since(began).Round(time.Millisecond))
	second.awaitLive("one", 1)
	stopping.Wait()
	if want := `vedette_server_cacher_changes_total{reason="drained",result="done"} 1`; !strings.Contains(second.metrics(), want) {
		t.Errorf("the account was not given away by the server that stops: there is no %s", want)
	}
}

// metrics returns the metrics of a server.
func (s *oneServer) metrics() string {
	s.in.t.Helper()
	resp, err := http.Get("http://" + s.Metrics().String() + "/metrics")
	if err != nil {
		s.in.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.in.t.Fatal(err)
	}
	return string(text)
}
