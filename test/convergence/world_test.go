package convergence

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/proxy"
)

// world holds everything that takes part in a test.
type world struct {
	t             *testing.T
	dir           string // for logs and configurations
	programs      string // directory of our programs
	db            *database
	server        *process.Program
	serverAddress string // address of its gRPC port
	rest          string // URL of its REST API
	clusters      []*cluster
	agents        []*agent
	accounts      []*account
}

// cluster is one control plane with an audit log of all requests.
type cluster struct {
	*controlplane.Plane
	name  string
	audit string
}

// account is an account of a cluster.
type account struct {
	name       string
	cluster    *cluster
	kinds      []string // as in the configuration
	namespaces []string // empty means all
}

// agent is one process, with a proxy on each of its links.
type agent struct {
	*process.Program
	id       string
	accounts []*account
	link     *proxy.Proxy              // to the server
	api      map[*cluster]*proxy.Proxy // to API servers
	health   string                    // URL of its health check
}

// topology is the size and structure of a world.
type topology struct {
	controllers bool
	clusters    int
	agents      [][]int // by agent: the indexes of its accounts
	accounts    []int   // by account: the index of its cluster
	outbox      string  // bytes of an agent's outbox
	grace       string  // grace period of accounts
	verify      int     // seconds between verifications of a feed; 0 for never
	programs    string  // directory of the programs to begin with; empty for those under test
}

// randomTopology draws a topology.
func randomTopology(rng *rand.Rand) topology {
	s := topology{clusters: 1, accounts: []int{0, 0}, agents: [][]int{{0, 1}, {0}}, grace: "10m"}
	switch rng.IntN(4) {
	case 0:
		s.controllers = true
	case 1:
		s.clusters, s.accounts = 2, []int{0, 1}
	}
	if rng.IntN(2) == 0 {
		s.agents = append(s.agents, []int{1})
	}
	s.outbox = []string{"256KiB", "1MiB", "8MiB"}[rng.IntN(3)]
	return s
}

// newWorld starts everything except the agents. If the test fails, the logs are kept.
func newWorld(t *testing.T, db *database, s topology) *world {
	w := &world{t: t, dir: logDir(t), db: db, programs: cmp.Or(s.programs, programDir)}
	for i := range s.clusters {
		w.clusters = append(w.clusters, newCluster(t, w.dir, fmt.Sprintf("c%d", i), s.controllers))
	}
	for i, c := range s.accounts {
		w.accounts = append(w.accounts, newAccount(i, w.clusters[c]))
	}
	w.startServer(s)
	for i, accounts := range s.agents {
		w.addAgent(fmt.Sprintf("a%d", i), accounts, s)
	}
	return w
}

// logDir returns a directory that is kept if the test fails.
func logDir(t *testing.T) string {
	//nolint:usetesting // the logs are kept if the test fails
	dir, err := os.MkdirTemp("", "convergence-"+strings.ReplaceAll(t.Name(), "/", "-")+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() || *keepLogsFlag {
			t.Logf("the logs of all processes are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// auditPolicy logs each request of agents. A watch is logged when it is answered and when it ends.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
	"rules": [{"level": "Metadata", "users": ["a0", "a1", "a2"]}, {"level": "None"}]}`

func newCluster(t *testing.T, dir, name string, controllers bool) *cluster {
	c := &cluster{name: name, audit: filepath.Join(dir, name+"-audit.log")}
	policy := filepath.Join(dir, name+"-audit.json")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Plane = controlplane.New(t, controlplane.Options{Controllers: controllers, APIServerFlags: []string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + c.audit, "--audit-log-mode=blocking",
		"--token-auth-file=" + writeTokens(t, dir),
	}})
	t.Cleanup(func() {
		if t.Failed() || *keepLogsFlag {
			keepLogs(t, c.Dir, dir, name)
		}
	})
	return c
}

func keepLogs(t *testing.T, from, to, prefix string) {
	logs, err := filepath.Glob(filepath.Join(from, "*.log"))
	if err != nil {
		t.Error(err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, prefix+"-"+filepath.Base(log)), text, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// newAccount returns an unrestricted account for i = 0 and restricted ones otherwise, because feeds
// of namespaces use other code.
func newAccount(i int, c *cluster) *account {
	a := &account{name: fmt.Sprintf("account-%d", i), cluster: c, kinds: configuredKinds()}
	if i > 0 {
		a.namespaces = namespaces[:2]
	}
	return a
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, text string) string {
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return w.path(name)
}

const serverConfig = `
dataDir: "%s"
server: {port: %d}
grpc: {server: {port: %d}}
sql: {url: "%s"%s}
agents: {heartbeatSeconds: 1}
accounts: {gracePeriod: %s}
logging: {level: debug}
`

func (w *world) startServer(s topology) {
	rest, grpc := freePort(w.t), freePort(w.t)
	further := ""
	if w.db.shard != nil {
		further = fmt.Sprintf(", shards: [{name: other, url: %q}]", w.db.shard.url)
	}
	config := w.write("server.yml", fmt.Sprintf(serverConfig, w.dir, rest, grpc, w.db.url, further, s.grace))
	w.serverAddress, w.rest = fmt.Sprintf("127.0.0.1:%d", grpc), fmt.Sprintf("http://127.0.0.1:%d", rest)
	w.server = w.start("server", "vedette-server", "--config", config)
}

// start starts one of our programs. Its clock is wrong by the flag -skew.
func (w *world) start(name, binary string, args ...string) *process.Program {
	p := &process.Program{T: w.t, Name: name, Path: filepath.Join(w.programs, binary), Args: args, Log: w.path(name + ".log"),
		Env: func(start int) string { return skewEnv(*skew, name, start) }}
	p.Start()
	return p
}

const agentConfig = `
agentId: %s
clouddriver: {grpc: "%s", insecure: true, noProxy: true}
server: {host: 127.0.0.1, port: %d}
outbox: {maxBytes: %s}
logging: {level: debug}
kubernetes:
  noProxy: true
  verifyIntervalSeconds: %d
  accounts:
%s`

func (w *world) addAgent(id string, accounts []int, s topology) {
	port := freePort(w.t)
	a := &agent{id: id, link: proxy.New(w.t, w.serverAddress), api: map[*cluster]*proxy.Proxy{}, health: fmt.Sprintf("http://127.0.0.1:%d/health", port)}
	var list strings.Builder
	for _, i := range accounts {
		account := w.accounts[i]
		a.accounts = append(a.accounts, account)
		fmt.Fprintf(&list, "  - {name: %s, kubeconfigFile: %q, kinds: [%s], namespaces: [%s]}\n", account.name,
			w.kubeconfig(a, account.cluster), strings.Join(account.kinds, ", "), strings.Join(account.namespaces, ", "))
	}
	config := w.write(id+".yml", fmt.Sprintf(agentConfig, id, a.link.Address(), port, s.outbox, s.verify, list.String()))
	w.agents = append(w.agents, a)
	a.Program = w.start(id, "vedette-agent", "--config", config)
}

// kubeconfig writes a kubeconfig with which an agent reaches a cluster through a proxy, as its own
// user.
func (w *world) kubeconfig(a *agent, c *cluster) string {
	if a.api[c] == nil {
		a.api[c] = proxy.New(w.t, strings.TrimPrefix(c.URL, "https://"))
	}
	name := a.id + "-" + c.name + ".kubeconfig"
	if len(w.clusters) > 1 {
		return w.write(name, w.sharedKubeconfig(a, a.api[c].Address()))
	}
	path, err := c.UserKubeconfig(a.id, "system:masters")
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.write(name, strings.ReplaceAll(string(text), c.URL, "https://"+a.api[c].Address()))
}

// agentsOf returns the agents of an account.
func (w *world) agentsOf(a *account) []*agent {
	var agents []*agent
	for _, agent := range w.agents {
		if slices.Contains(agent.accounts, a) {
			agents = append(agents, agent)
		}
	}
	return agents
}

func freePort(t *testing.T) int {
	port, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
