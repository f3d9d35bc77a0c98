package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/tables"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/test/logbuffer"
)

var plane *controlplane.Plane

func TestMain(m *testing.M) {
	p, err := controlplane.Start(context.Background(), controlplane.Options{Controllers: true, Log: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	plane = p
	code := m.Run()
	_ = p.Stop()
	os.Exit(code)
}

// onSharedDatabases runs a test on each database that servers can share.
func onSharedDatabases(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("PostgreSQL", func(t *testing.T) { test(t, databases.PostgreSQL(t)) })
	t.Run("MariaDB", func(t *testing.T) { test(t, databases.MariaDB(t)) })
}

// onSharedDatabasesAtOnce is onSharedDatabases for a test that waits most of the time, and whose objects have names of their own.
func onSharedDatabasesAtOnce(t *testing.T, test func(t *testing.T, url string)) {
	onSharedDatabases(t, func(t *testing.T, url string) {
		t.Parallel()
		test(t, url)
	})
}

// installation is several servers on one database.
type installation struct {
	t   testing.TB
	url string
	log *logbuffer.Buffer
	// shards are further databases, over which accounts are spread.
	shards []sqldb.Shard
	// balance is of the servers that are started from then on.
	balance assignment.BalanceConfig
}

func newInstallation(t testing.TB, url string) *installation {
	in := &installation{t: t, url: url, log: &logbuffer.Buffer{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(in.log.String())
		}
	})
	return in
}

func (in *installation) logger(program string) *slog.Logger {
	return slog.New(slog.NewTextHandler(in.log, &slog.HandlerOptions{Level: slog.LevelDebug})).With("program", program)
}

// oneServer is a server of an installation.
type oneServer struct {
	*server.Server
	in   *installation
	stop func()
}

// startServer starts a server, and waits until it is ready.
func (in *installation) startServer(id vedette.ServerID) *oneServer {
	in.t.Helper()
	return in.startServerWith(id, func(*server.Config) {})
}

// startServerWith does the same with a configuration that is changed before.
func (in *installation) startServerWith(id vedette.ServerID, change func(*server.Config)) *oneServer {
	in.t.Helper()
	log := in.logger(string(id))
	cfg := server.Config{ID: id, Host: string(id), Version: "test", REST: "127.0.0.1:0", GRPC: "127.0.0.1:0",
		Store:       sqldb.Config{URL: in.url, Shards: in.shards, Log: log},
		AgentServer: agentserver.Config{Projections: tables.Projections()},
		Peers:       &server.PeersConfig{Address: "127.0.0.1:0"},
		Balance:     in.balance, MetricsAddress: "127.0.0.1:0",
	}
	change(&cfg)
	srv, err := server.Listen(cfg, log)
	if err != nil {
		in.t.Fatal(err)
	}
	s := &oneServer{Server: srv, in: in, stop: runInBackground(in.t, srv.Run)}
	in.t.Cleanup(func() { s.stop() })
	in.await(string(id)+" to be ready", func() bool { return s.get("/vedette/v1/accounts", nil) == http.StatusOK })
	return s
}

// startAgent starts an agent of the control plane that connects to a server, until stop is called or the test ends.
func (in *installation) startAgent(id vedette.AgentID, to *oneServer, account vedette.AccountName, kinds ...string) (stop func()) {
	in.t.Helper()
	a := agent.New(agent.Config{
		Uplink:   uplink.Config{Target: to.GRPC().String(), Creds: insecure.NewCredentials(), Agent: id},
		Accounts: []agent.Account{{Name: account, Access: kube.Access{KubeconfigFile: plane.Kubeconfig()}, Selection: watch.Selection{Kinds: kinds}}},
	}, in.logger("agent "+string(id)))
	stop = runInBackground(in.t, a.Run)
	in.t.Cleanup(stop)
	return stop
}

// runInBackground runs a function until stop is called, which may be called again.
func runInBackground(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error { return run(ctx) })
	return func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// get decodes an answer of a server, and returns its status; 0 if the server does not answer.
func (s *oneServer) get(path string, into any) int {
	s.in.t.Helper()
	return s.do(http.MethodGet, path, nil, into)
}

func (s *oneServer) do(method, path string, body, into any) int {
	s.in.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.in.t.Fatal(err)
	}
	req, err := http.NewRequest(method, "http://"+s.REST().String()+path, bytes.NewReader(text))
	if err != nil {
		s.in.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	if raw, ok := into.(*[]byte); ok {
		*raw = answer
	} else if resp.StatusCode == http.StatusOK && into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			s.in.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
		}
	}
	return resp.StatusCode
}

// await polls until done returns true, for at most a minute.
func (in *installation) await(what string, done func() bool) {
	in.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			in.t.Fatalf("timeout waiting for %s", what)
		case <-tick.C:
		}
	}
}

// awaitLive waits until a server says that all feeds of an account are live and fresh.
func (s *oneServer) awaitLive(account vedette.AccountName, feeds int) {
	s.in.t.Helper()
	s.in.await(fmt.Sprintf("%d live feeds of %s", feeds, account), func() bool {
		var list struct {
			Items []struct {
				State string
				Stale bool
			}
		}
		if s.get("/vedette/v1/feeds?account="+string(account), &list) != http.StatusOK {
			return false
		}
		live := 0
		for _, f := range list.Items {
			if f.State == string(vedette.FeedLive) && !f.Stale {
				live++
			}
		}
		return live == feeds
	})
}
