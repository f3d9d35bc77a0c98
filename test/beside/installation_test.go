package beside

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/test/beside/standin"
	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/proxy"
)

// installation is a server with SQLite before an upstream Clouddriver.
type installation struct {
	t      testing.TB
	dir    string // for configurations and logs
	url    string // of the REST API
	grpc   string // address
	server *process.Program
}

const serverConfig = `
dataDir: %q
server: {port: %d}
grpc: {server: {port: %d}}
accounts: {gracePeriod: %s}
upstream: {baseUrl: %q%s}
%s
`

// settings are the parts of the server's configuration that differ.
type settings struct {
	upstream string        // URL
	timeouts string        // further keys of upstream, which begin with a comma
	further  string        // further settings
	grace    time.Duration // of accounts without agents
}

// shortTimeouts let requests fail before a short freeze ends.
var shortTimeouts = fmt.Sprintf(", mergeTimeout: %v, timeout: 3s", mergeTimeout)

const mergeTimeout = 2 * time.Second

// shortTasks ends operations soon whose agent has gone.
const shortTasks = "tasks: {timeout: 10s}"

// newInstallation starts a server. If the test fails, the logs are kept.
func newInstallation(t testing.TB, s settings) *installation {
	t.Helper()
	in := &installation{t: t, dir: keptDir(t)}
	rest, grpc := freePort(t), freePort(t)
	in.url, in.grpc = fmt.Sprintf("http://127.0.0.1:%d", rest), fmt.Sprintf("127.0.0.1:%d", grpc)
	config := in.write("server.yml", fmt.Sprintf(serverConfig, in.dir, rest, grpc, s.grace, s.upstream, s.timeouts, s.further))
	in.server = &process.Program{T: t, Name: "vedette-server", Path: program("vedette-server"), Args: []string{"--config", config}, Log: in.path("server.log")}
	in.server.Start()
	in.awaitServer()
	return in
}

// keptDir returns a directory that is kept if the test fails.
func keptDir(t testing.TB) string {
	t.Helper()
	//nolint:usetesting // the logs are kept if the test fails
	dir, err := os.MkdirTemp("", "beside-"+t.Name()+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs and configurations are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func (in *installation) path(name string) string { return filepath.Join(in.dir, name) }

func (in *installation) write(name, text string) string {
	in.t.Helper()
	if err := os.WriteFile(in.path(name), []byte(text), 0o600); err != nil {
		in.t.Fatal(err)
	}
	return in.path(name)
}

func (in *installation) awaitServer() {
	in.t.Helper()
	await(in.t, time.Minute, "the server answers", func(ctx context.Context) error {
		if err := in.server.Exited(); err != nil {
			in.t.Fatal(err)
		}
		if a := send(ctx, http.MethodGet, in.url+"/health", nil); a.err != nil || a.status != http.StatusOK {
			return errors.New(a.String())
		}
		return nil
	})
}

// agent is an agent of one account, with a link to the server that can be slow.
type agent struct {
	*process.Program
	account string
	link    *proxy.Proxy
}

const agentConfig = `
agentId: agent-%s
clouddriver: {grpc: %q, insecure: true, noProxy: true}
server: {host: 127.0.0.1, port: %d}
kubernetes:
  noProxy: true
  accounts: [{name: %[1]s, kubeconfigFile: %[4]q}]
`

// newAgent returns an agent that was not started. Its link has the latency of two distant places.
func (in *installation) newAgent(account, kubeconfig string) *agent {
	in.t.Helper()
	a := &agent{account: account, link: proxy.New(in.t, in.grpc)}
	a.link.AddLatency(20 * time.Millisecond)
	config := in.write("agent-"+account+".yml", fmt.Sprintf(agentConfig, account, a.link.Address(), freePort(in.t), kubeconfig))
	a.Program = &process.Program{T: in.t, Name: "agent of " + account, Path: program("vedette-agent"), Args: []string{"--config", config}, Log: in.path("agent-" + account + ".log")}
	return a
}

// feeds returns how many feeds an account has by state; nil if the server does not know the account.
func (in *installation) feeds(ctx context.Context, account string) (map[string]int, error) {
	c, err := client.New(in.url)
	if err != nil {
		return nil, err
	}
	list, err := c.Accounts(ctx, account)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0].Feeds, nil
}

// checkSynchronized returns an error unless all feeds of an account have their first snapshot.
func (in *installation) checkSynchronized(ctx context.Context, account string) error {
	feeds, err := in.feeds(ctx, account)
	waiting := feeds[string(vedette.FeedPending)] + feeds[string(vedette.FeedSyncing)]
	if err == nil && (feeds[string(vedette.FeedLive)] == 0 || waiting > 0) {
		err = fmt.Errorf("got the feeds %v, want no pending and no syncing ones", feeds)
	}
	return err
}

// checkFirstFeeds returns an error until feeds of an account are live.
func (in *installation) checkFirstFeeds(ctx context.Context, account string) error {
	feeds, err := in.feeds(ctx, account)
	if err == nil && feeds[string(vedette.FeedLive)] == 0 {
		err = fmt.Errorf("got the feeds %v, want live ones", feeds)
	}
	return err
}

// checkOwner returns an error unless an account is answered by an owner.
func (in *installation) checkOwner(ctx context.Context, account string, want owner) error {
	a := send(ctx, http.MethodGet, in.url+"/credentials/"+account, nil)
	isUpstream := strings.Contains(string(a.body), `"environment":"`+standin.Name+`"`)
	if a.err != nil || a.status != http.StatusOK || isUpstream != (want == upstream) {
		return errors.New(a.String())
	}
	return nil
}
