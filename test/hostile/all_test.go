package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/program"
	"github.com/vedette-io/vedette/test/programs"
	"github.com/vedette-io/vedette/test/tcpserver"
)

// duration is how long TestAllEntryPoints attacks: `make hostile DURATION=10m`.
var duration = flag.Duration("duration", 10*time.Second, "how long all entry points are attacked at once")

// attackedServerLimit and attackedAgentLimit are the maximum memory of a server all of whose entry points are attacked,
// and of an agent all of whose clusters but one are hostile. The aims are 512 and 160 MiB. 449 to 469 and 145 to 154 were
// measured: the budgets of the server add up to more, and those of the agent are 80 MiB for operations and 32 for
// each of three objects of feeds, besides the buffers of seventy clusters. So the limits leave room for slow machines.
const (
	attackedServerLimit = 576 << 20
	attackedAgentLimit  = 192 << 20
)

// latencyLimit only ends a test that makes no progress. How long honest requests took is printed.
const latencyLimit = 90 * time.Second

// allServerConfig connects the server to everything that may be hostile.
const allServerConfig = `
server: {port: %d}
management: {server: {port: %d}}
prometheus: {enabled: true, port: 0}
grpc: {server: {port: %d}}
sql: {url: "sqlite:%s"}
services:
  fiat: {enabled: true, baseUrl: %q, retry: {maxBackoffMillis: 30000}}
  front50: {baseUrl: %q}
cache: {checkApplicationInFront50: true}
upstream: {baseUrl: %q}
artifacts:
  network: {allowedAddresses: [127.0.0.1]}
  github: {enabled: true, accounts: [{name: github}]}
  git-repo: {enabled: true, accounts: [{name: git}]}
  http: {enabled: true, accounts: [{name: files}]}
  helm: {enabled: true, accounts: [{name: helm, repository: %q}]}
artifact-store: {type: s3, s3: {bucket: store, region: us-east-1, url: %q, accessKey: a, secretKey: b}}
secrets: {vault: {enabled: true, url: %q, authMethod: TOKEN, token: t}}
spring: {config: {import: ["optional:file:more.yml"]}}
`

// battlefield is what the attackers and the test tell each other.
type battlefield struct {
	// From the attackers, before the programs start.
	Services map[string]string // URLs of services that the server uses
	Clusters map[string]string // kubeconfigs, by account
	Hostile  string            // address of a hostile server for an agent
	// From the test, when they have.
	REST, GRPC string
	Management []string // URLs of the ports for probes and metrics, of the server and of the attacked agent
}

// attackers is the process of all attackers.
type attackers struct {
	t      *testing.T
	stdin  io.WriteCloser
	stdout *bufio.Reader
	field  battlefield
	ended  chan error
}

// startAttackers starts the attackers' process. Their attacks begin with begin. A hostile host takes no
// processor time from the others, so the process has a low priority.
func startAttackers(t *testing.T) *attackers {
	t.Helper()
	a := &attackers{t: t, ended: make(chan error, 1)}
	cmd := exec.Command("nice", "-n", "10", os.Args[0])
	cmd.Env = append(os.Environ(), attackVariable+"="+allAttacks, directoryVariable+"="+t.TempDir())
	cmd.Stderr = os.Stderr
	stdin, stdinErr := cmd.StdinPipe()
	stdout, stdoutErr := cmd.StdoutPipe()
	if err := errors.Join(stdinErr, stdoutErr); err != nil {
		t.Fatal(err)
	}
	a.stdin, a.stdout = stdin, bufio.NewReader(stdout)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	a.read(&a.field)
	return a
}

func (a *attackers) read(to any) {
	a.t.Helper()
	line, err := a.stdout.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, to)
	}
	if err != nil {
		a.t.Fatalf("read what the attackers say: %v", err)
	}
}

// begin begins all attacks.
func (a *attackers) begin() {
	a.t.Helper()
	line, err := json.Marshal(a.field)
	if err == nil {
		_, err = a.stdin.Write(append(line, '\n'))
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// counts returns how often each attack has happened.
func (a *attackers) counts() (counts map[string]int64) {
	a.t.Helper()
	if _, err := a.stdin.Write([]byte("\n")); err != nil {
		a.t.Fatal(err)
	}
	a.read(&counts)
	return counts
}

// awaitAll waits until each attack has happened, and returns how often.
func (a *attackers) awaitAll(others *counts) (counts map[string]int64) {
	a.t.Helper()
	await(a.t, "all attacks have happened", func() (err error) {
		counts = a.counts()
		maps.Copy(counts, others.values())
		for _, e := range entryPoints {
			for _, name := range e.attacks {
				if counts[name] == 0 {
					err = errors.Join(err, fmt.Errorf("%s: %q has not", e.row, name))
				}
			}
		}
		time.Sleep(100 * time.Millisecond)
		return err
	})
	return counts
}

// startConfigured builds and starts a server with everything that may be hostile.
func startConfigured(t *testing.T, a *attackers) (s *server, dir string) {
	t.Helper()
	dir = t.TempDir()
	rest, grpc, management := freePort(t), freePort(t), freePort(t)
	of := a.field.Services
	of["fiat"] = honestFiat(t, of["fiat"])
	config := fmt.Sprintf(allServerConfig, rest, management, grpc, filepath.Join(dir, "v.db"), of["fiat"], of["front50"], of["upstream"], of["helm"], of["store"], of["vault"])
	if err := os.WriteFile(filepath.Join(dir, "server.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s = &server{measuredProcess: measuredProcess{t: t, management: fmt.Sprintf("http://127.0.0.1:%d", management)},
		grpc: fmt.Sprintf("127.0.0.1:%d", grpc), rest: fmt.Sprintf("http://127.0.0.1:%d", rest)}
	cmd := exec.Command(build(t, dir), "--config", filepath.Join(dir, "server.yml"))
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, goLimit(memoryLimit))
	s.start("server", dir, cmd)
	await(t, "the server is ready", func() error {
		s.checkRunning()
		_, err := s.get("/vedette/v1/accounts")
		return err
	})
	a.field.REST, a.field.GRPC = s.rest, s.grpc
	return s, dir
}

// honestFiat starts a Fiat that knows the honest user, and asks a hostile one about others. It returns its URL.
func honestFiat(t *testing.T, hostile string) string {
	to, err := url.Parse(hostile)
	if err != nil {
		t.Fatal(err)
	}
	others := httputil.NewSingleHostReverseProxy(to)
	others.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/authorize/anonymous" {
			fmt.Fprint(w, `{"name":"anonymous","admin":true}`)
			return
		}
		defer func() { _ = recover() }() // the proxy panics when an answer breaks off
		others.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// goLimit returns the variable with the limit that a program sets for itself in a container of so many bytes.
func goLimit(container int64) string {
	return fmt.Sprint("GOMEMLIMIT=", program.GoLimit(uint64(container)))
}

// agentOf is an agent's process with the accounts of some kubeconfigs.
func agentOf(t *testing.T, id, address string, kubeconfigs map[string]string) (agent *measuredProcess, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := programs.Build(t.Context(), dir, "vedette-agent"); err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	management := freePort(t)
	fmt.Fprintf(&config, "agentId: %s\nclouddriver: {grpc: %q, insecure: true, noProxy: true}\nserver: {host: 127.0.0.1, port: 0}\n"+
		"management: {server: {port: %d}}\nprometheus: {enabled: true, host: 127.0.0.1, port: 0}\nspring: {config: {import: [\"optional:file:more.yml\"]}}\nkubernetes:\n  noProxy: true\n  accounts:\n", id, address, management)
	for name, kubeconfig := range kubeconfigs {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&config, "  - {name: %q, kubeconfigFile: %q, kinds: [all]}\n", name, file)
	}
	file := filepath.Join(dir, "agent.yml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	agent = &measuredProcess{t: t, management: fmt.Sprintf("http://127.0.0.1:%d", management)}
	cmd := exec.Command(filepath.Join(dir, "vedette-agent"), "--config", file)
	cmd.Env = append(os.Environ(), goLimit(operatingAgentLimit))
	agent.start("agent", dir, cmd)
	return agent, dir
}

// honestCluster is an API server that nobody attacks, with an account.
type honestCluster struct {
	*apiServer
	account    string
	visible    latencies // from a change until it is visible
	operations latencies
}

func startHonestCluster(t *testing.T, account string) *honestCluster {
	t.Helper()
	return &honestCluster{apiServer: startAPIServer(t, onRequest(requestsPath(objectX), respond(configMap("x", 5, "")))), account: account}
}

// latencies are measured, and printed. They fail a test only if nothing happens any more.
type latencies struct {
	mu    sync.Mutex
	times []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times = append(l.times, d)
}

func (l *latencies) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.times)
	if n == 0 {
		return "none"
	}
	slices.Sort(l.times)
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("%d, p50 %v, p99 %v, at most %v", n, round(l.times[n/2]), round(l.times[n*99/100]), round(l.times[n-1]))
}

// live changes the cluster's object and runs operations until ctx ends. Each change must become visible, and
// each operation must have its outcome.
func (h *honestCluster) live(ctx context.Context, t *testing.T, s *server) {
	var both sync.WaitGroup
	repeat := func(what string, l *latencies, do func() error) {
		both.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				err := do()
				took := time.Since(began)
				if err != nil || took > latencyLimit {
					t.Errorf("%s of %s: after %v: %v", what, h.account, took.Round(time.Millisecond), err)
					return
				}
				l.add(took)
				pause(ctx, 20*time.Millisecond)
			}
		})
	}
	repeat("a change", &h.visible, func() error { return h.changeIsVisible(s) })
	repeat("an operation", &h.operations, func() error {
		outcome, err := s.operate(fmt.Sprintf(`{"account":%q,"timeout":"80s",%s}`, h.account, getOperation))
		for strings.Contains(outcome, "nothing was done") && ctx.Err() == nil { // the agent connects again; who waits tries again
			outcome, err = s.operate(fmt.Sprintf(`{"account":%q,"timeout":"80s",%s}`, h.account, getOperation))
		}
		if err == nil && !strings.Contains(outcome, `"x"`) {
			err = fmt.Errorf("got %.300s", outcome)
		}
		return err
	})
	both.Wait()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// changeIsVisible changes the object, and reads it until it is changed.
func (h *honestCluster) changeIsVisible(s *server) error {
	version := fmt.Sprint(h.change())
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		body, err := s.get("/vedette/v1/objects/" + h.account + "/configmaps/n/a")
		var object struct{ ResourceVersion string }
		if err == nil {
			err = json.Unmarshal(body, &object)
		}
		if err == nil && object.ResourceVersion == version {
			return nil
		}
		if time.Since(began) > latencyLimit {
			return fmt.Errorf("got version %s, want %s: %w", object.ResourceVersion, version, err)
		}
	}
}

// link passes connections of an agent on to the server, from another address: the agent's clusters are hostile, and
// no other agent is on its host.
func link(t *testing.T, server string) (address string) {
	return tcpserver.New(t, func(conn net.Conn) {
		onward, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}).Dial("tcp", server)
		if err != nil {
			return
		}
		defer onward.Close()
		go func() {
			_, _ = io.Copy(onward, conn)
			_ = onward.Close()
		}()
		_, _ = io.Copy(conn, onward)
	})
}

// attackConfiguration replaces a file that a program's configuration imports. What is in effect stays in effect.
func attackConfiguration(ctx context.Context, file string, hit func()) {
	bombs := []string{
		"a: [" + strings.Repeat("{},", 5<<20) + "]\n",
		"a: &a [x,x,x,x,x,x,x,x,x]\n" + aliases(12),
		strings.Repeat("[", 4<<20),
		"prometheus: {x: \"" + strings.Repeat("${a:", 1<<20) + "\"}\n",
		"credentials: {primaryAccountTypes: [\"encrypted:vault!e:kv!p:bomb!k:x\"]}\nclouddriver: {auth: {token: \"encrypted:vault!e:kv!p:bomb!k:x\"}}\n",
	}
	for i := 0; ctx.Err() == nil; i++ {
		if os.WriteFile(file, []byte(bombs[i%len(bombs)]), 0o600) == nil {
			hit()
		}
		pause(ctx, time.Second)
	}
	_ = os.Remove(file)
}

// aliases returns anchors of which each has nine times the values of the one before.
func aliases(n int) string {
	var b strings.Builder
	for i := range n {
		name := func(i int) string { return string(rune('a' + i)) }
		fmt.Fprintf(&b, "%s: &%s [%s]\n", name(i+1), name(i+1), strings.TrimSuffix(strings.Repeat("*"+name(i)+",", 9), ","))
	}
	return b.String()
}

// TestAllEntryPoints attacks every entry point of docs/security.md at once, each at its limit, beside an honest
// agent, an honest account of the attacked agent, and honest readers and callers. Memory must stay
// within the limits, changes must become visible, and operations must have their outcomes.
func TestAllEntryPoints(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is not installed: it makes the repositories of the attacks on artifacts")
	}
	a := startAttackers(t)
	s, serverDir := startConfigured(t, a)
	beside, within := startHonestCluster(t, "beside"), startHonestCluster(t, "within")
	kubeconfig := func(h *honestCluster) string { return string(h.apiServer.account(h.account).Access.KubeconfigContents) }
	agentOf(t, "honest", s.grpc, map[string]string{"beside": kubeconfig(beside)})
	honest := []*honestCluster{beside, within}
	clusters := a.field.Clusters
	clusters["within"] = kubeconfig(within)
	attacked, agentDir := agentOf(t, "attacked", link(t, s.grpc), clusters)
	deceived, _ := agentOf(t, "deceived", a.field.Hostile, map[string]string{"deceived": clusters["operations-0"]})
	for _, h := range honest {
		await(t, h.account+" is visible", func() error {
			_, err := s.get("/vedette/v1/objects/" + h.account + "/configmaps/n/a")
			return err
		})
	}
	a.field.Management = []string{s.management, attacked.management}
	a.begin()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	configurations := &counts{}
	all.Go(func() {
		attackConfiguration(ctx, filepath.Join(serverDir, "more.yml"), func() { configurations.hit("configuration"); configurations.hit("documents of secret engines") })
	})
	all.Go(func() {
		attackConfiguration(ctx, filepath.Join(agentDir, "more.yml"), func() { configurations.hit("configuration of the agent") })
	})
	for _, h := range honest {
		all.Go(func() { h.live(ctx, t, s) })
	}
	for _, address := range a.field.Management {
		all.Go(func() { probeRepeatedly(ctx, t, address) })
	}
	all.Go(func() {
		samplePeaks(ctx, t, map[string]*measuredProcess{"server": &s.measuredProcess, "attacked agent": attacked, "deceived agent": deceived})
	})
	pause(ctx, *duration)
	counts := a.awaitAll(configurations)
	cancel()
	all.Wait()
	verifyHonest(t, s, honest)
	for _, h := range honest {
		t.Logf("%s: changes visible after: %v; operations: %v", h.account, &h.visible, &h.operations)
	}
	for _, p := range []struct {
		name string
		*measuredProcess
		limit int64
	}{{"server", &s.measuredProcess, attackedServerLimit}, {"attacked agent", attacked, attackedAgentLimit}, {"deceived agent", deceived, operatingAgentLimit}} {
		if peak := p.peak(); peak > p.limit {
			t.Errorf("%s: got %d MiB of memory, want at most %d", p.name, peak>>20, p.limit>>20)
		}
	}
	t.Logf("memory: server %d MiB, attacked agent %d MiB, deceived agent %d MiB", s.peak()>>20, attacked.peak()>>20, deceived.peak()>>20)
	t.Logf("attacks: %v", counts)
}

// probeRepeatedly probes a program as a kubelet does. Each probe must be answered, because three that are not
// restart a program.
func probeRepeatedly(ctx context.Context, t *testing.T, address string) {
	for ; ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		response, err := client.Get(address + "/health/liveness")
		if err != nil {
			t.Errorf("a probe of %s: %v", address, err)
			return
		}
		_, err = readBody(response)
		if err != nil {
			t.Errorf("a probe of %s: %v", address, err)
			return
		}
	}
}

// verifyHonest checks that exactly the objects of the honest clusters are stored in their accounts.
func verifyHonest(t *testing.T, s *server, honest []*honestCluster) {
	t.Helper()
	for _, h := range honest {
		await(t, h.account+" is as its cluster", func() error {
			versions, err := s.versions(h.account)
			if want := map[string]string{"a": fmt.Sprint(h.current())}; err == nil && fmt.Sprint(versions) != fmt.Sprint(want) {
				err = fmt.Errorf("got %v, want %v", versions, want)
			}
			return err
		})
	}
}

// samplePeaks logs each time that the maximum memory of a program has grown by 64 MiB.
func samplePeaks(ctx context.Context, t *testing.T, of map[string]*measuredProcess) {
	logged := map[string]int64{}
	for began := time.Now(); ctx.Err() == nil; pause(ctx, 100*time.Millisecond) {
		for name, p := range of {
			if peak := p.peak() >> 20; peak > logged[name]+64 {
				logged[name] = peak
				t.Logf("%v: %s: %d MiB", time.Since(began).Round(100*time.Millisecond), name, peak)
			}
		}
	}
}
