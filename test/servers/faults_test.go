package servers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
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
	"github.com/vedette-io/vedette/test/programs"
	"github.com/vedette-io/vedette/test/sharing"
)

// fleet is servers that run as processes, and agents that reach them by a load balancer.
type fleet struct {
	*installation
	servers  []*sharing.Server
	grpc     string // address of the load balancer for agents
	accounts []vedette.AccountName
}

// settings let operations wait for a minute until an agent is connected: while a server is frozen, the load balancer still sends agents to it.
const settings = `logging.level: info
kubesvc.operations.retry.maxRetries: 30
`

func newFleet(t *testing.T, url string, servers, agents int) *fleet {
	t.Helper()
	f := &fleet{installation: newInstallation(t, url)}
	dir := t.TempDir()
	if err := programs.Build(t.Context(), dir, "vedette-server"); err != nil {
		t.Fatal(err)
	}
	var grpc []string
	for i := range servers {
		s := sharing.NewServer(t, sharing.Options{ID: fmt.Sprint("s", i), Dir: dir, Programs: dir, URL: url, Config: settings})
		t.Cleanup(func() { f.printLog(s) })
		f.servers, grpc = append(f.servers, s), append(grpc, s.GRPC)
		s.Start()
	}
	for i := range servers {
		f.awaitReady(i)
	}
	f.grpc = sharing.NewBalancer(t, grpc, -1).Address()
	for i := range agents {
		account := vedette.AccountName(fmt.Sprint("account-", i))
		f.accounts = append(f.accounts, account)
		for _, replica := range []string{"a", "b"} {
			id := vedette.AgentID(fmt.Sprint("agent-", i, replica))
			a := agent.New(agent.Config{Uplink: uplink.Config{Target: f.grpc, Creds: insecure.NewCredentials(), Agent: id},
				Accounts: []agent.Account{{Name: account, Access: kube.Access{KubeconfigFile: plane.Kubeconfig()},
					Selection: watch.Selection{Kinds: []string{"ConfigMap"}}}}}, f.logger(string(id)))
			t.Cleanup(runInBackground(t, a.Run))
		}
	}
	return f
}

func (f *fleet) printLog(s *sharing.Server) {
	if !f.t.Failed() {
		return
	}
	if text, err := os.ReadFile(s.Log); err == nil {
		f.t.Logf("log of %s:\n%s", s.Name, text)
	}
}

// request is sharing.Server.Request for one of the servers.
func (f *fleet) request(server int, method, path string, body, into any) int {
	return f.servers[server].Request(f.t.Context(), method, path, body, into)
}

func (f *fleet) awaitReady(server int) {
	f.t.Helper()
	f.await(fmt.Sprintf("server %d to be ready", server), func() bool { return f.servers[server].IsReady(f.t.Context()) })
}

// writer writes rising numbers into an object of one account, one after the other, and reads them.
type writer struct {
	f        *fleet
	account  vedette.AccountName
	tried    int    // the last number that was sent
	done     int    // the last one that was answered as done
	lastID   string // of the operation that wrote it
	writes   int
	failures int           // writes that failed
	longest  time.Duration // without a write that was done
	since    time.Time     // the last one
}

// run writes and reads until stop is closed.
func (w *writer) run(stop <-chan struct{}) {
	w.since = time.Now()
	for {
		select {
		case <-stop:
			return
		default:
		}
		w.write()
		for range 3 {
			w.read(rand.IntN(len(w.f.servers)))
		}
	}
}

// object returns the name of the object, which other tests of the cluster do not have.
func (w *writer) object() string {
	return strings.ToLower(filepath.Base(w.f.t.Name())) + "-config-of-" + string(w.account)
}

func (w *writer) write() {
	w.tried++
	op := configMap(w.object(), strconv.Itoa(w.tried))
	op["account"], op["timeout"] = w.account, "5s"
	var out outcome
	status := w.f.request(rand.IntN(len(w.f.servers)), http.MethodPost, "/vedette/v1/operations", op, &out)
	if status != 0 && out.State == "done" {
		w.done, w.lastID = w.tried, out.ID
		w.writes++
		w.longest, w.since = max(w.longest, time.Since(w.since)), time.Now()
		return
	}
	w.failures++
	time.Sleep(20 * time.Millisecond) // as a client does that tries again
}

// read reads the number from a server. An answer must have what was written before.
func (w *writer) read(server int) {
	before, after := w.done, w.tried
	got, isAnswered := w.readOnce(server)
	if !isAnswered || got >= before && got <= after {
		return
	}
	at := time.Now().UTC().Format(time.RFC3339Nano)
	var operation json.RawMessage
	w.f.request(server, http.MethodGet, "/vedette/v1/operations/"+w.lastID, nil, &operation)
	w.f.t.Errorf("%s: at %s, server %d answers %d after %d was written; %d was tried last: %s", w.account, at, server, got, before, after, operation)
}

// readOnce returns the number that a server answers; false if it does not answer.
func (w *writer) readOnce(server int) (number int, isAnswered bool) {
	var answer struct {
		Manifest struct{ Data struct{ Value string } }
	}
	if w.f.request(server, http.MethodGet, fmt.Sprintf("/vedette/v1/objects/%s/configmaps/default/%s", w.account, w.object()), nil, &answer) != http.StatusOK {
		return 0, false
	}
	number, err := strconv.Atoi(answer.Manifest.Data.Value)
	if err != nil {
		w.f.t.Errorf("%s: server %d answers %q", w.account, server, answer.Manifest.Data.Value)
	}
	return number, err == nil
}

// TestFaults kills, freezes, stops and starts servers while all accounts are written and read at all servers.
func TestFaults(t *testing.T) {
	onSharedDatabasesAtOnce(t, func(t *testing.T, url string) {
		f := newFleet(t, url, 3, 4)
		var writers []*writer
		var running sync.WaitGroup
		stop := make(chan struct{})
		for _, account := range f.accounts {
			w := &writer{f: f, account: account, since: time.Now()}
			f.await("a first write to "+string(account), func() bool { w.write(); return w.done > 0 })
			writers = append(writers, w)
		}
		for _, w := range writers {
			running.Go(func() { w.run(stop) })
		}
		phase := func(name string, do func()) {
			began := time.Now()
			do()
			t.Logf("%s: %v", name, time.Since(began).Round(time.Millisecond))
		}
		pause := func(d time.Duration) { time.Sleep(d) } // how long a fault lasts; writers and readers go on
		phase("nothing fails", func() { pause(2 * time.Second) })
		phase("kill -9", func() {
			f.servers[0].Kill()
			pause(6 * time.Second)
			f.servers[0].Start()
			f.awaitReady(0)
		})
		phase("frozen", func() {
			f.servers[1].Pause()
			pause(8 * time.Second)
			f.servers[1].Resume()
			f.await("the frozen server to end", func() bool { return f.servers[1].Exited() != nil })
			f.servers[1].Start()
			f.awaitReady(1)
		})
		phase("rolling restart", func() {
			for i, s := range f.servers {
				s.Stop()
				s.Start()
				f.awaitReady(i)
				pause(time.Second)
			}
		})
		close(stop)
		running.Wait()
		for _, w := range writers {
			t.Logf("%s: %d writes, %d failed, longest time without a write %v", w.account, w.writes, w.failures,
				w.longest.Round(time.Millisecond))
			if w.writes < 20 {
				t.Errorf("%s: got %d writes only", w.account, w.writes)
			}
			f.await("a last write to "+string(w.account), func() bool { before := w.done; w.write(); return w.done > before })
			for i := range f.servers {
				w.read(i)
			}
		}
	})
}
