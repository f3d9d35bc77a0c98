package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/programs"
)

// kinds are the kinds that each account reports, with their share of its objects.
var kinds = []struct {
	kind  vedette.Kind
	share float64
}{{vedette.Kind{Name: "Pod"}, 0.6}, {configMaps, 0.4}}

var configMaps = vedette.Kind{Name: "ConfigMap"}

// server is a vedette-server that runs as a process.
type server struct {
	*process.Program
	id              vedette.ServerID
	rest, grpc      string // host:port
	profilesAddress string
}

// isUp reports whether the server runs. One that does not get any processor time for three seconds is evicted by the others, and ends.
func (s *server) isUp() bool { return s.IsRunning() && s.Process().Exited() == nil }

// installation is servers that share a database, and processes with agents and simulated clusters.
type installation struct {
	t        *testing.T
	database *database
	servers  []*server
	agents   *agents
	client   *http.Client
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	in := &installation{t: t, database: newDatabase(t), client: &http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 500}}}
	dir := t.TempDir()
	if err := programs.Build(t.Context(), dir, "vedette-server"); err != nil {
		t.Fatal(err)
	}
	for i := range *serverCount {
		in.addServer(dir, vedette.ServerID(fmt.Sprint("s", i)))
	}
	return in
}

func (in *installation) addServer(dir string, id vedette.ServerID) {
	in.t.Helper()
	restPort, grpcPort, peerPort, pprofPort := in.port(), in.port(), in.port(), in.port()
	peers, cluster := "", "local"
	if *serverCount > 1 {
		peers, cluster = fmt.Sprintf(", peers: {port: %d, address: 127.0.0.1}", peerPort), "database"
	}
	text := fmt.Sprintf(`dataDir: %s
server: {id: %s, port: %d, address: 127.0.0.1%s}
grpc.server: {port: %d, address: 127.0.0.1}
sql.url: %q
pprof: {enabled: true, port: %d}
kubesvc.cluster: %s
`, filepath.Join(dir, string(id)), id, restPort, peers, grpcPort, in.database.url, pprofPort, cluster)
	config := filepath.Join(dir, string(id)+".yml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		in.t.Fatal(err)
	}
	s := &server{id: id, rest: fmt.Sprint("127.0.0.1:", restPort), grpc: fmt.Sprint("127.0.0.1:", grpcPort), profilesAddress: fmt.Sprint("127.0.0.1:", pprofPort),
		Program: &process.Program{T: in.t, Name: string(id), Path: filepath.Join(dir, "vedette-server"), Args: []string{"--config", config},
			Log: filepath.Join(dir, string(id)+".log")}}
	in.servers = append(in.servers, s)
	in.t.Cleanup(func() {
		if in.t.Failed() {
			in.t.Log(s.Tail())
		}
	})
	s.Start()
	in.awaitReady(s)
}

func (in *installation) port() int {
	in.t.Helper()
	port, err := ports.Reserve()
	if err != nil {
		in.t.Fatal(err)
	}
	return port
}

func (in *installation) awaitReady(s *server) {
	in.t.Helper()
	in.await(string(s.id)+" to be ready", func() bool {
		return in.request(s, http.MethodGet, "/vedette/v1/accounts?limit=1", nil, nil) == http.StatusOK
	})
}

// never is longer than a test takes. Verifications go on while nothing happens, and would be counted as what idle servers
// write, and as what reconnects read: each reads a feed, and writes a row.
const never = 10_000 * time.Hour

const accountFormat = "account-%04d"

func accountName(i int) vedette.AccountName {
	return vedette.AccountName(fmt.Sprintf(accountFormat, i))
}

// maxConnecting is how many accounts connect to their clusters at once, because that takes most of the processor time.
const maxConnecting = 250

// giveAccounts lets the agents serve their accounts, and waits until all are live.
func (in *installation) giveAccounts() {
	in.t.Helper()
	given := 0
	for i := range *agentCount {
		in.await("accounts to be live", func() bool { return given < maxConnecting || in.database.liveAccounts("") > given-maxConnecting })
		given += in.agents.give(i)
	}
	in.awaitLive("")
}

// awaitConnected waits until all agents are connected.
func (in *installation) awaitConnected() {
	in.t.Helper()
	in.await("all agents to be connected", func() bool { return in.agents.connected() == *agentCount })
}

// awaitLive waits until all accounts are live at other servers than one.
func (in *installation) awaitLive(except vedette.ServerID) {
	in.t.Helper()
	in.await("all accounts to be live", func() bool { return in.database.liveAccounts(except) == *accountCount })
}

// awaitTimeout bounds each wait. It only ends a test that makes no progress.
const awaitTimeout = 5 * time.Minute

// await polls until done returns true.
func (in *installation) await(what string, done func() bool) {
	in.t.Helper()
	if done() {
		return
	}
	deadline := time.NewTimer(awaitTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-deadline.C:
			in.t.Fatalf("timeout waiting for %s", what)
		case <-tick.C:
		}
		if done() {
			return
		}
	}
}

// pause lets the servers work for a time that is measured.
func (in *installation) pause(d time.Duration) {
	in.t.Helper()
	select {
	case <-in.t.Context().Done():
		in.t.Fatal(context.Cause(in.t.Context()))
	case <-time.After(d):
	}
}

// request sends a request to a server, and returns the status; 0 for no answer.
func (in *installation) request(s *server, method, path string, body, into any) int {
	text, err := json.Marshal(body)
	if err != nil {
		in.t.Error(err)
		return 0
	}
	req, err := http.NewRequestWithContext(in.t.Context(), method, "http://"+s.rest+path, bytes.NewReader(text))
	if err != nil {
		in.t.Error(err)
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := in.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || into != nil && json.Unmarshal(answer, into) != nil {
		return 0
	}
	return resp.StatusCode
}

// agentsAt returns how many agents, and cachers of accounts, a server knows at each server. It reports those that it knows twice. The
// answer is not whole if a server has not answered.
func (in *installation) agentsAt(s *server) (agents, cachers map[vedette.ServerID]int, whole bool) {
	in.t.Helper()
	agents, cachers = map[vedette.ServerID]int{}, map[vedette.ServerID]int{}
	known, assigned := map[vedette.AgentID]vedette.ServerID{}, map[vedette.AccountName]vedette.AgentID{}
	for cursor := ""; ; {
		var page struct {
			Items []struct {
				ID       vedette.AgentID
				Server   vedette.ServerID
				Accounts []struct {
					Name vedette.AccountName
					Role string
				}
			}
			Warnings []string
			Cursor   string
		}
		status := in.request(s, http.MethodGet, "/vedette/v1/agents?"+url.Values{"limit": {"1000"}, "cursor": {cursor}}.Encode(), nil, &page)
		if status != http.StatusOK || len(page.Warnings) > 0 {
			return nil, nil, false
		}
		for _, a := range page.Items {
			if other, twice := known[a.ID]; twice {
				in.t.Errorf("%s lists agent %s twice, at %s and %s", s.id, a.ID, other, a.Server)
			}
			known[a.ID] = a.Server
			agents[a.Server]++
			for _, account := range a.Accounts {
				if account.Role != "cacher" {
					continue
				}
				if other, twice := assigned[account.Name]; twice {
					in.t.Errorf("%s lists two cachers of %s, %s and %s", s.id, account.Name, other, a.ID)
				}
				assigned[account.Name] = a.ID
				cachers[a.Server]++
			}
		}
		cursor = page.Cursor
		if cursor == "" {
			return agents, cachers, true
		}
	}
}

// expectEachOnce checks that the running servers know each agent, and a cacher of each account, once.
func (in *installation) expectEachOnce() {
	in.t.Helper()
	for _, s := range in.servers {
		if !s.isUp() {
			continue
		}
		var agents, cachers map[vedette.ServerID]int
		in.await("an answer from all servers about their agents", func() (whole bool) { // the killed one is first evicted
			agents, cachers, whole = in.agentsAt(s)
			return whole || !s.isUp()
		})
		if !s.isUp() {
			continue
		}
		if n, accounts := sum(agents), sum(cachers); n != *agentCount || accounts != *accountCount {
			in.t.Errorf("%s lists %d agents and %d cachers, want %d and %d", s.id, n, accounts, *agentCount, *accountCount)
		}
	}
}

func sum(counts map[vedette.ServerID]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// profile writes a profile of a server into the directory of the flag profiles.
func (in *installation) profile(s *server, name string, query url.Values) []byte {
	in.t.Helper()
	u := url.URL{Scheme: "http", Host: s.profilesAddress, Path: "/debug/pprof/" + name, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(in.t.Context(), http.MethodGet, u.String(), nil)
	if err != nil {
		in.t.Fatal(err)
	}
	resp, err := in.client.Do(req)
	if err != nil {
		in.t.Errorf("read the profile %s of %s: %v", name, s.id, err)
		return nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		in.t.Errorf("read the profile %s of %s: %s, %v", name, s.id, resp.Status, err)
	}
	return text
}

// saveProfile is profile, into the directory of the flag profiles. It does nothing without that.
func (in *installation) saveProfile(s *server, name, when string, query url.Values) {
	if *profiles == "" {
		return
	}
	file := filepath.Join(*profiles, fmt.Sprintf("%s-%s-%s.pprof", when, s.id, name))
	if err := os.WriteFile(file, in.profile(s, name, query), 0o600); err != nil {
		in.t.Error(err)
	}
}

// memory is what all running servers have.
type memory struct {
	resident int64
	inUse    int64 // of the heap and of stacks, after a collection
}

// memory measures the memory of all running servers. Resident memory falls only slowly after work has ended.
func (in *installation) memory() (m memory) {
	in.t.Helper()
	for _, s := range in.servers {
		if !s.isUp() {
			continue
		}
		in.profile(s, "heap", url.Values{"gc": {"1"}}) // pools give up what they keep after the second collection
		text := string(in.profile(s, "heap", url.Values{"gc": {"1"}, "debug": {"1"}}))
		m.inUse += in.number(text, "# HeapInuse = ") + in.number(text, "# Stack = ")
		m.resident += in.usage(s).RSS
	}
	return m
}

// number returns the number that follows a text.
func (in *installation) number(text, after string) (n int64) {
	in.t.Helper()
	_, rest, found := strings.Cut(text, after)
	if _, err := fmt.Sscan(rest, &n); err != nil || !found {
		in.t.Errorf("a profile of the heap has no number after %q", after)
	}
	return n
}

func (in *installation) usage(s *server) process.Usage {
	in.t.Helper()
	u, err := s.Process().Usage()
	if err != nil {
		in.t.Fatal(err)
	}
	return u
}

// cpu returns the processor time of all running servers.
func (in *installation) cpu() (total time.Duration) {
	in.t.Helper()
	for _, s := range in.servers {
		if s.isUp() {
			total += in.usage(s).CPU
		}
	}
	return total
}
