package compatibility

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/test/ports"
	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/programs"
)

// startTimeout is how long a server and an agent may take until all objects are stored. It includes
// the minutes that a busy machine needs.
const startTimeout = 3 * time.Minute

// Installation is a server with SQLite, and an agent with accounts of one cluster.
type Installation struct {
	dir      string
	accounts int // how many the agent has
	rest     int // port
	grpc     int // port
	agent    *process.Process
	srv      *process.Process
}

const serverConfig = `server:
  port: %d
grpc:
  server:
    port: %d
tasks:
  persistOutput: true
  persistOutputForAllAccounts: true
services:
  front50:
    baseUrl: %q
  fiat:
    enabled: %v
    baseUrl: %q
`

const agentConfig = `agentId: agent-prod
clouddriver:
  grpc: 127.0.0.1:%d
  insecure: true
server:
  host: 127.0.0.1
  port: %d
kubernetes:
  accounts: %s
`

// Config configures an installation.
type Config struct {
	Dir        string // for programs, data and logs
	Kubeconfig []byte
	Accounts   []Account // all of the same cluster; their KubeconfigFile is filled in
	Front50    string    // URL; "" if there is none
	Fiat       string    // URL; "" if there is none, which allows everything
	Server     string    // YAML that is added to the server's configuration
}

// Start builds the programs and starts them. It returns when all objects are stored.
func Start(ctx context.Context, cfg Config) (*Installation, error) {
	if err := programs.Build(ctx, cfg.Dir, "vedette-agent", "vedette-server"); err != nil {
		return nil, err
	}
	in := &Installation{dir: cfg.Dir, accounts: len(cfg.Accounts)}
	var agentPort int
	for _, port := range []*int{&in.rest, &in.grpc, &agentPort} {
		var err error
		if *port, err = ports.Reserve(); err != nil {
			return nil, err
		}
	}
	accounts, err := cfg.accounts()
	if err != nil {
		return nil, err
	}
	for name, content := range map[string]string{
		"kubeconfig": string(cfg.Kubeconfig),
		"server.yml": fmt.Sprintf(serverConfig, in.rest, in.grpc, cfg.Front50, cfg.Fiat != "", cfg.Fiat) + cfg.Server,
		"agent.yml":  fmt.Sprintf(agentConfig, in.grpc, agentPort, accounts),
	} {
		if err := os.WriteFile(filepath.Join(cfg.Dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	if err := in.start(ctx); err != nil {
		in.Stop()
		return nil, fmt.Errorf("%w\n%s", err, in.Logs())
	}
	return in, nil
}

// accounts returns the accounts as JSON, which is YAML, too.
func (cfg Config) accounts() ([]byte, error) {
	accounts := slices.Clone(cfg.Accounts)
	for i := range accounts {
		accounts[i].KubeconfigFile = filepath.Join(cfg.Dir, "kubeconfig")
	}
	return json.Marshal(accounts)
}

func (in *Installation) start(ctx context.Context) (err error) {
	in.srv, err = in.run("vedette-server", "--config", "server.yml", "--data-dir", "data")
	if err != nil {
		return err
	}
	in.agent, err = in.run("vedette-agent", "--config", "agent.yml")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return in.awaitObjects(ctx)
}

// run starts one of the programs.
func (in *Installation) run(name string, args ...string) (*process.Process, error) {
	cmd := exec.Command(filepath.Join(in.dir, name), args...)
	cmd.Dir = in.dir
	return process.Start(name, cmd)
}

// URL returns the address of the server's REST API.
func (in *Installation) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", in.rest) }

// Logs returns the last lines that the programs logged.
func (in *Installation) Logs() string {
	return in.srv.Tail() + in.agent.Tail()
}

// Stop stops the programs.
func (in *Installation) Stop() {
	in.agent.Stop()
	in.srv.Stop()
}

// awaitObjects returns when no account has a feed that is still syncing.
func (in *Installation) awaitObjects(ctx context.Context) error {
	c, err := client.New(in.URL())
	if err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := c.Accounts(ctx, "")
		if err == nil && in.isSynced(list) {
			return nil
		}
		if exited := errors.Join(in.srv.Exited(), in.agent.Exited()); exited != nil {
			return exited
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until the agent has reported all objects: %w (last answer: %+v, %w)", ctx.Err(), list, err)
		case <-tick.C:
		}
	}
}

func (in *Installation) isSynced(list []client.Account) bool {
	for _, a := range list {
		if a.Feeds[string(vedette.FeedLive)] == 0 || a.Feeds[string(vedette.FeedPending)] > 0 || a.Feeds[string(vedette.FeedSyncing)] > 0 {
			return false
		}
	}
	return len(list) == in.accounts
}

// Header returns the headers of a Spinnaker user.
func Header(user string) http.Header {
	return http.Header{"X-Spinnaker-User": {user}}
}
