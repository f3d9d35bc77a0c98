package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/clockskew"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/faults"
	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/proxy"
	"github.com/vedette-io/vedette/test/sharing"
)

type object = controlplane.Object

const (
	serverCount = 3
	maxPairs    = 3 // of agents with the same accounts
)

// world holds everything that takes part in a run. The control planes are not disturbed.
type world struct {
	t       *testing.T
	dir     string
	planes  []*controlplane.Plane // by account
	db      *database
	servers []*server
	agents  []*agent
	// restored are the accounts whose clusters were restored in any round, because logs are of all rounds.
	restored map[string]time.Duration
}

// server is a server with a proxy on each of its links.
type server struct {
	*sharing.Server
	*supervised
	database, peers *proxy.Proxy
	clock           *clockskew.Clock // nil if clocks do not jump
}

// agent is an agent with a proxy on its link to the servers.
type agent struct {
	*process.Program
	id       string
	accounts []int
	link     *proxy.Proxy
	health   string           // URL of its health check
	clock    *clockskew.Clock // nil if clocks do not jump
}

func accountName(i int) string { return fmt.Sprint("account-", i) }

// newWorld starts everything, and waits until all servers answer.
func newWorld(t *testing.T, database string, planes []*controlplane.Plane) *world {
	t.Helper()
	w := &world{t: t, dir: logDir(t), planes: planes, db: newDatabase(t, database, serverCount), restored: map[string]time.Duration{}}
	for i := range serverCount {
		w.addServer(i)
	}
	for i, s := range w.servers {
		if !w.eventually(time.Minute, func(ctx context.Context) bool { return s.IsReady(ctx) }) {
			t.Fatalf("server %d does not answer:\n%s", i, s.Tail())
		}
	}
	for i := range 2 * w.pairs() {
		w.addAgent(i)
	}
	return w
}

func logDir(t *testing.T) string {
	//nolint:usetesting // the logs are kept if the test fails
	dir, err := os.MkdirTemp("", "chaos-"+strings.ReplaceAll(t.Name(), "/", "-")+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() || *keepLogs {
			t.Logf("the logs of all processes are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func logLevel() string {
	if *debug {
		return "debug"
	}
	return "info"
}

func (w *world) addServer(i int) {
	s := &server{}
	url := w.db.urls[i]
	s.database = proxy.New(w.t, hostOf(w.t, url))
	s.clock = w.newClock(fmt.Sprint("s", i))
	s.Server = sharing.NewServer(w.t, sharing.Options{ID: fmt.Sprint("s", i), Dir: w.dir, Programs: programDir,
		URL: strings.Replace(url, hostOf(w.t, url), s.database.Address(), 1),
		Advertise: func(address string) string {
			s.peers = proxy.New(w.t, address)
			return s.peers.Address()
		},
		Config: fmt.Sprintf("agents: {heartbeatSeconds: 1}\nlogging: {level: %s}\n", logLevel()),
		Env:    clockEnv(s.clock),
	})
	s.supervised = newSupervised(w.t, s.Program)
	w.servers = append(w.servers, s)
	s.supervised.Start()
}

// newClock returns a clock that can jump; nil if clocks do not.
func (w *world) newClock(name string) *clockskew.Clock {
	if !*withClocks {
		return nil
	}
	c, err := clockskew.NewClock(w.dir, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func clockEnv(c *clockskew.Clock) func(int) string {
	if c == nil {
		return nil
	}
	return func(int) string { return c.Env() }
}

const agentConfig = `
agentId: %s
clouddriver: {grpc: "%s", insecure: true, noProxy: true}
server: {host: 127.0.0.1, port: %d}
logging: {level: %s}
kubernetes:
  noProxy: true
  verifyIntervalSeconds: 10
  accounts:
%s`

// pairs returns how many pairs of agents there are: one for each account, and three at most.
func (w *world) pairs() int { return min(maxPairs, len(w.planes)) }

// accountsOf returns the accounts of an agent, by their indexes. Two agents that follow each other have the same ones, and begin at different
// servers.
func (w *world) accountsOf(agent int) (accounts []int) {
	for account := range w.planes {
		if account%w.pairs() == agent/2 {
			accounts = append(accounts, account)
		}
	}
	return accounts
}

func (w *world) addAgent(i int) {
	port, err := ports.Reserve()
	if err != nil {
		w.t.Fatal(err)
	}
	var addresses []string
	for _, s := range w.servers {
		addresses = append(addresses, s.GRPC)
	}
	id := fmt.Sprint("a", i)
	balancer := sharing.NewBalancer(w.t, addresses, i%serverCount)
	a := &agent{id: id, accounts: w.accountsOf(i), link: proxy.New(w.t, balancer.Address()), health: fmt.Sprintf("http://127.0.0.1:%d/health", port), clock: w.newClock(id)}
	var list strings.Builder
	for _, account := range a.accounts {
		fmt.Fprintf(&list, "  - {name: %s, kubeconfigFile: %q, kinds: [ConfigMap, Deployment]}\n", accountName(account), w.planes[account].Kubeconfig())
	}
	config := filepath.Join(w.dir, id+".yml")
	text := fmt.Sprintf(agentConfig, id, a.link.Address(), port, logLevel(), list.String())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	a.Program = &process.Program{T: w.t, Name: id, Path: filepath.Join(programDir, "vedette-agent"), Args: []string{"--config", config},
		Log: filepath.Join(w.dir, id+".log"), Env: clockEnv(a.clock)}
	w.agents = append(w.agents, a)
	a.Start()
}

// agentsOf returns the agents of an account.
func (w *world) agentsOf(account int) (agents []*agent) {
	for _, a := range w.agents {
		for _, of := range a.accounts {
			if of == account {
				agents = append(agents, a)
			}
		}
	}
	return agents
}

// supervised is a program that is started again when it ends by itself, as a Deployment does. A server ends when it was frozen for so long that
// others took its place, or when the database has another history.
type supervised struct {
	program *process.Program

	mu      sync.Mutex // held while the program starts or ends
	endings []string   // the last lines of each process that has ended by itself
}

func newSupervised(t *testing.T, p *process.Program) *supervised {
	s := &supervised{program: p}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

func (s *supervised) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.restartIfEnded()
		sleep(ctx, 100*time.Millisecond)
	}
}

func (s *supervised) restartIfEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.program.Exited(); err != nil {
		s.endings = append(s.endings, err.Error())
		s.program.Start()
	}
}

func (s *supervised) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *supervised) Start() { s.locked(s.program.Start) }
func (s *supervised) Stop()  { s.locked(s.program.Stop) }
func (s *supervised) Kill()  { s.locked(s.program.Kill) }

// Pause and Resume do not wait for the lock: whoever has it may wait for a paused program to end.
func (s *supervised) Pause()  { s.program.Pause() }
func (s *supervised) Resume() { s.program.Resume() }

// restart stops the program and starts it again, unless it is stopped already. It reports whether it has.
func (s *supervised) restart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.program.IsRunning() {
		return false
	}
	s.program.Stop()
	s.program.Start()
	return true
}

// ended returns how often the program has ended by itself.
func (s *supervised) ended() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.endings)
}

// longest returns how long a fault lasts at most; it is shorter in a short run.
func longest(d time.Duration) time.Duration {
	if *isLong {
		return 3 * d
	}
	return d
}

// parts returns everything that can fail.
func (w *world) parts() []faults.Part {
	all := []faults.Part{faults.NewPart("all servers", faults.New("are restarted one after the other", w.rollingRestart, nil, 0, 1))}
	for _, s := range w.servers {
		name := s.Name
		list := faults.OfProcess(s.supervised)
		if *isLong {
			list = append(list, faults.New("is paused for up to a minute", faults.Infallible(s.supervised.Pause), faults.Infallible(s.supervised.Resume), time.Minute, 1))
		}
		all = append(all, faults.NewPart(name, list...), faults.NewPart(name+"'s link to the database", faults.OfLink(s.database)...),
			faults.NewPart("the others' links to "+name, faults.OfLink(s.peers)...))
		all = append(all, clockPart(name, s.clock)...)
	}
	for _, a := range w.agents {
		all = append(all, faults.NewPart(a.id, faults.OfProcess(a.Program)...), faults.NewPart(a.id+"'s link", faults.OfLink(a.link)...))
		all = append(all, clockPart(a.id, a.clock)...)
	}
	for range serverCount { // as often as a server, although there is one database
		all = append(all, w.db.parts...)
	}
	return all
}

// etcdParts returns the clusters, whose etcd is put back to how it was when the fault began. All that was done in between is undone, and
// resourceVersions come a second time.
func (w *world) etcdParts(r *recorder) (all []faults.Part) {
	if !*withRestores {
		return nil
	}
	for _, p := range r.planes {
		backup := filepath.Join(w.dir, "backup-of-"+p.account)
		var saved clusterState
		save := func(ctx context.Context) error {
			p.plane.KillAPIServer()
			if err := r.drain(ctx, p); err != nil {
				return err
			}
			saved = r.state(p)
			return p.plane.Backup(ctx, backup)
		}
		restore := func(ctx context.Context) error {
			r.noteRestore(p.account)
			p.plane.KillAPIServer()
			if err := r.drain(ctx, p); err != nil {
				return err
			}
			p.stop()
			if err := p.plane.RestoreEtcd(ctx, backup); err != nil {
				return err
			}
			r.rewind(p, saved)
			r.start(w.t.Context(), p)
			return errors.Join(p.plane.StartAPIServer(ctx), os.RemoveAll(backup))
		}
		all = append(all, faults.NewPart("etcd of "+p.account, faults.New("is backed up, and restored", save, restore, 12*time.Second, 1)))
	}
	return all
}

// clockPart returns a clock that jumps, and jumps back.
func clockPart(name string, c *clockskew.Clock) []faults.Part {
	if c == nil {
		return nil
	}
	set := func(d time.Duration) func(context.Context) error {
		return func(context.Context) error { return c.Set(d) }
	}
	return []faults.Part{faults.NewPart(name+"'s clock",
		faults.New("jumps an hour ahead", set(time.Hour), set(0), 10*time.Second, 1),
		faults.New("jumps an hour back", set(-time.Hour), set(0), 10*time.Second, 1),
		faults.New("jumps five seconds ahead", set(5*time.Second), set(0), 10*time.Second, 1),
		faults.New("jumps five seconds back", set(-5*time.Second), set(0), 10*time.Second, 1),
	)}
}

// rollingRestart restarts one server after the other. It waits until each answers, but not for long, because something else may fail too.
func (w *world) rollingRestart(ctx context.Context) error {
	for _, s := range w.servers {
		if !s.restart() {
			continue
		}
		ready, cancel := context.WithTimeout(ctx, 10*time.Second)
		for ready.Err() == nil && !s.IsReady(ready) {
			sleep(ready, 50*time.Millisecond)
		}
		cancel()
	}
	return nil
}

// eventually polls a condition, and reports whether it became true in time.
func (w *world) eventually(d time.Duration, condition func(ctx context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	for {
		if condition(ctx) {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// sleep waits for a fixed time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// namesAny reports whether a line of a log is about one of the accounts.
func namesAny(line string, accounts map[string]time.Duration) bool {
	for account := range accounts {
		if strings.Contains(line, " account="+account+" ") {
			return true
		}
	}
	return false
}

// crashes returns what the programs' logs show of crashes, which no fault excuses. That a cluster was restored excuses what verifications find in it.
func (w *world) crashes(restored map[string]time.Duration) (found []string, err error) {
	logs, err := filepath.Glob(filepath.Join(w.dir, "*.log"))
	for _, log := range logs {
		text, readErr := os.ReadFile(log)
		err = errors.Join(err, readErr)
		for line := range strings.Lines(string(text)) {
			isDrift := strings.Contains(line, "the store differs from the cluster") && !namesAny(line, restored)
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || isDrift {
				found = append(found, filepath.Base(log)+": "+strings.TrimSpace(line))
			}
		}
	}
	return found, err
}
