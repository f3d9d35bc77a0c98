package docs

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/programs"
	"github.com/vedette-io/vedette/test/proxy"
)

// binDir is where the programs under test are.
var binDir string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "docs-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binDir = dir
	defer stopCluster()
	return databases.Main(m)
}

// build builds the programs once.
var build = sync.OnceValue(func() error {
	ctx, cancel := timeout(10 * time.Minute)
	defer cancel()
	return programs.Build(ctx, binDir, "vedette", "vedette-agent", "vedette-server")
})

// sharedCluster is a control plane for all tests. They change objects only in a namespace of their own.
var sharedCluster = sync.OnceValues(func() (*controlplane.Plane, error) {
	ctx, cancel := timeout(20 * time.Minute) // the first build of a control plane takes some ten minutes
	defer cancel()
	plane, err := controlplane.Start(ctx, controlplane.Options{Log: os.Stderr})
	if err == nil {
		started = plane
		err = createShop(ctx, plane)
	}
	return plane, err
})

var started *controlplane.Plane // nil if no test needed it

func stopCluster() {
	if started == nil {
		return
	}
	if err := started.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the control plane:", err)
	}
}

// scenario is a server with an agent for a cluster, and how its addresses and files are shown on pages.
type scenario struct {
	t      *testing.T
	root   string // of the files
	names  []shownName
	server *process.Program
	agent  *process.Program
	plane  *controlplane.Plane
	uplink *proxy.Proxy // between agent and server; nil unless proxied
	api    *proxy.Proxy // between agent and API server

	rest, grpc, health        int    // ports
	grpcAddress               string // where the agent reaches the server
	dataDir                   string // of the server
	serverConfig, agentConfig string // files
	serverPorts, agentPorts   string // lines of configurations

	database, owner string   // names in the database server; empty for SQLite
	env             []string // for commands of the database server
}

// shownName is an address or a path, as it is and as a page shows it.
type shownName struct{ real, shown string }

// options change a scenario.
type options struct {
	server   string              // lines of the configuration of the server, with names like server.port
	agent    string              // the same of the agent
	proxied  bool                // there is a proxy between agent and server
	accounts string              // of the agent; default: prod-eu with the namespace shop
	user     string              // of the cluster, with the rights that the test grants; default: an administrator
	dataDir  string              // of the server
	plane    *controlplane.Plane // default: the one that all tests share
}

const defaultAccounts = `  - name: prod-eu
    kubeconfigFile: KUBECONFIG
    kinds: [Deployment, ConfigMap]
    namespaces: [shop]
`

// newScenario starts nothing yet.
func newScenario(t *testing.T, o options) *scenario {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	plane := o.plane
	if plane == nil {
		var err error
		if plane, err = sharedCluster(); err != nil {
			t.Fatal(err)
		}
	}
	w := &scenario{t: t, root: t.TempDir(), plane: plane, rest: reserve(t), grpc: reserve(t), health: reserve(t)}
	w.grpcAddress = fmt.Sprintf("127.0.0.1:%d", w.grpc)
	if o.proxied {
		w.uplink = proxy.New(t, w.grpcAddress)
		w.grpcAddress = w.uplink.Address()
	}
	w.api = proxy.New(t, strings.TrimPrefix(plane.URL, "https://"))
	w.dataDir = cmp.Or(o.dataDir, w.path("/var/lib/vedette"))
	w.names = w.addresses()
	for _, dir := range directories {
		if err := os.MkdirAll(w.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.configure(o)
	return w
}

// directories are those of the services.
var directories = []string{"/etc/vedette/server", "/etc/vedette/agent", "/var/lib/vedette", "/var/backups/vedette", "/var/log"}

// addresses returns how pages show the addresses and paths of the scenario.
func (w *scenario) addresses() []shownName {
	return []shownName{
		{fmt.Sprintf("127.0.0.1:%d", w.rest), "127.0.0.1:7002"}, {fmt.Sprintf("localhost:%d", w.rest), "localhost:7002"},
		{w.grpcAddress, "10.20.0.2:9091"}, {fmt.Sprintf("127.0.0.1:%d", w.grpc), "127.0.0.1:9091"},
		{fmt.Sprintf("127.0.0.1:%d", w.health), "127.0.0.1:8082"}, {fmt.Sprintf("localhost:%d", w.health), "localhost:8082"},
		{w.api.Address(), "10.20.0.10:6443"}, {w.dataDir, "/var/lib/vedette"}, {w.root, ""},
	}
}

// configure writes the configurations of both programs.
func (w *scenario) configure(o options) {
	w.t.Helper()
	w.serverPorts = fmt.Sprintf("dataDir: %q\nserver.port: %d\ngrpc.server.port: %d\n", w.dataDir, w.rest, w.grpc)
	w.agentPorts = fmt.Sprintf("server.port: %d\nclouddriver.noProxy: true\nkubernetes.noProxy: true\n", w.health)
	kubeconfig := w.write("/etc/vedette/agent/prod-eu.yml", w.kubeconfig(o.user))
	accounts := strings.ReplaceAll(cmp.Or(o.accounts, defaultAccounts), "KUBECONFIG", kubeconfig)
	w.serverConfig = w.write("/etc/vedette/server/vedette-server.yml", w.serverPorts+o.server)
	w.agentConfig = w.write("/etc/vedette/agent/armory-agent.yml", fmt.Sprintf(
		"agentId: agent-eu\nclouddriver.grpc: %q\nserver.host: 127.0.0.1\n%s%skubernetes:\n  accounts:\n%s", w.grpcAddress, w.agentPorts, o.agent, accounts))
	w.server = w.program("vedette-server", "--config", w.serverConfig)
	w.agent = w.program("vedette-agent", "--config", w.agentConfig)
}

func reserve(t *testing.T) int {
	t.Helper()
	port, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// program returns one of our programs, which is not started yet.
func (w *scenario) program(name string, args ...string) *process.Program {
	return &process.Program{T: w.t, Name: name, Path: filepath.Join(binDir, name), Args: args, Log: w.path("/var/log/" + name + ".log")}
}

// path returns where a file is that a page shows.
func (w *scenario) path(shown string) string { return filepath.Join(w.root, shown) }

func (w *scenario) write(shown, text string) string {
	w.t.Helper()
	path := w.path(shown)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// kubeconfig returns a kubeconfig with which the agent reaches the cluster through the proxy.
func (w *scenario) kubeconfig(user string) string {
	w.t.Helper()
	from := w.plane.Kubeconfig()
	if user != "" {
		var err error
		if from, err = w.plane.UserKubeconfig(user); err != nil {
			w.t.Fatal(err)
		}
	}
	text, err := os.ReadFile(from)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), w.plane.URL, "https://"+w.api.Address())
}

// start starts server and agent.
func (w *scenario) start() {
	w.server.Start()
	w.agent.Start()
}

// startReady starts server and agent, and waits until the account is ready.
func (w *scenario) startReady() {
	w.t.Helper()
	w.start()
	w.awaitOutput("vedette accounts", "Ready")
}

// awaitOutput waits until a command prints a text.
func (w *scenario) awaitOutput(command, text string) {
	w.t.Helper()
	var got string
	w.eventually(func() bool {
		got = w.run(command)
		return strings.Contains(got, text)
	}, func() string { return fmt.Sprintf("%s: got\n%s\nwant %q", command, got, text) })
}

// hostName matches the name of this machine, which is also the server's.
var hostName = sync.OnceValue(func() *regexp.Regexp {
	name, err := os.Hostname()
	if err != nil {
		panic(err)
	}
	return regexp.MustCompile(`(^|[\s=])` + regexp.QuoteMeta(name) + `( +|[,:\n]|$)`)
})

// hideHost replaces the name of this machine. Columns stay where they are.
func hideHost(match string) string {
	m := hostName().FindStringSubmatch(match)
	if m[2] == "" || m[2][0] != ' ' {
		return m[1] + "host-1" + m[2]
	}
	return m[1] + fmt.Sprintf("%-*s", max(len(match)-len(m[1]), len("host-1 ")), "host-1")
}

// hide returns a text as a page shows it.
func (w *scenario) hide(text string) string {
	for _, n := range w.names {
		text = strings.ReplaceAll(text, n.real, n.shown)
	}
	return hostName().ReplaceAllStringFunc(text, hideHost)
}

// rename lets pages show another name for an address.
func (w *scenario) rename(address, shown string) {
	w.names = append([]shownName{{address, shown}}, w.names...)
}

// reveal returns a command of a page as it can be run.
func (w *scenario) reveal(command string) string {
	for _, n := range w.names {
		if strings.HasPrefix(n.shown, "/") || n.shown == "" {
			continue
		}
		command = strings.ReplaceAll(command, n.shown, n.real)
	}
	for _, dir := range []string{"/etc/vedette", "/var/lib/vedette", "/var/backups/vedette", "/var/log"} {
		command = strings.ReplaceAll(command, dir, w.path(dir))
	}
	return command
}

// run runs a command of a page, and returns what it prints on a terminal.
func (w *scenario) run(command string) string {
	w.t.Helper()
	ctx, cancel := timeout(2 * time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", w.reveal(command))
	cmd.Dir = w.root
	cmd.Env = append(os.Environ(), "PATH="+binDir+":"+os.Getenv("PATH"), fmt.Sprintf("VEDETTE_SERVER=http://localhost:%d", w.rest), "HOME="+w.root)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		w.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return w.hide(string(out))
}

// command is a part of an output: a command that is repeated until it prints all of the texts, and then what the page shows.
func (w *scenario) command(line string, until ...string) func(string) string {
	return func(shown string) string {
		w.t.Helper()
		return "$ " + line + "\n" + w.await(strings.TrimPrefix(shown, "$ "+line+"\n"), func() string { return w.run(line) }, until)
	}
}

// once is a part of an output: a command that must not be repeated.
func (w *scenario) once(line string) func(string) string {
	return func(string) string { return "$ " + line + "\n" + w.run(line) }
}

// log is a part of an output: the last line of a program's log that contains each of the texts.
func (w *scenario) log(p *process.Program, contains ...string) func(string) string {
	return func(shown string) string {
		w.t.Helper()
		return w.await(shown, func() string { return w.lastLine(p, contains) }, contains)
	}
}

func (w *scenario) lastLine(p *process.Program, contains []string) string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, line := range slices.Backward(strings.Split(string(text), "\n")) {
		line = w.hide(line)
		if containsAll(line, contains) {
			return line + "\n"
		}
	}
	return ""
}

// patience is how long a test waits for what a page shows.
const patience = 90 * time.Second

// settled is for how long a command must have printed the same before -update writes that: two heartbeats.
const settled = 6 * time.Second

// await repeats something until it prints all of the texts, and what the page shows; with -update, until it does not
// change anymore.
func (w *scenario) await(shown string, run func() string, until []string) (got string) {
	w.t.Helper()
	since, last := time.Now(), ""
	w.eventually(func() bool {
		got = run()
		if text := normalize(got); text != last {
			since, last = time.Now(), text
		}
		return containsAll(got, until) && (last == normalize(shown) || golden.Updates() && time.Since(since) > settled)
	}, func() string { return fmt.Sprintf("got\n%s\nwant %q, and\n%s", got, until, shown) })
	return got
}

// eventually polls a condition.
func (w *scenario) eventually(condition func() bool, explain func() string) {
	w.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			w.t.Fatalf("after %s (update the page with -update): %s\n%s\n%s", patience, explain(), w.server.Tail(), w.agent.Tail())
		}
	}
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
