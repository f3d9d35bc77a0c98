// Package up has the command that runs a server and an agent in one process.
package up

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/version"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/tables"
)

// upOptions are the flags of vedette up.
type upOptions struct {
	kubeconfig  string
	contexts    []string
	allContexts bool
	kinds       []string
	dataDir     string
	port        int
	grpcPort    int
	verbose     bool
}

// New returns the command.
func New() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a server and an agent for the clusters in your kubeconfig",
		Long: `Run a server and an agent in one process, for the clusters in your kubeconfig.

Each context becomes an account with its name. Objects are stored in an embedded
database, so the next start continues with them. The server listens on localhost only.
Other agents on this machine can connect to it too.`,
		Example: `  vedette up                        # the current context
  vedette up --all-contexts
  vedette up --context dev --context staging --kinds deployments,pods,certificates`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), o, output.SafeWriter{To: cmd.OutOrStdout()})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "Kubeconfig file. Defaults to the file that kubectl uses.")
	f.StringArrayVar(&o.contexts, "context", nil, "Context to watch instead of the current one. Can be repeated.")
	f.BoolVar(&o.allContexts, "all-contexts", false, "Watch all contexts in the kubeconfig.")
	f.StringSliceVar(&o.kinds, "kinds", nil, "Comma-separated kinds to watch instead of the default ones. all for all kinds except Events.")
	f.StringVar(&o.dataDir, "data-dir", "", "Directory of the database. Defaults to vedette in the user's data directory.")
	f.IntVar(&o.port, "port", 7002, "Port for REST on localhost.")
	f.IntVar(&o.grpcPort, "grpc-port", 9091, "Port for agents on localhost.")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "Print the logs of the server and the agent.")
	return cmd
}

// up runs until ctx ends.
func up(ctx context.Context, o upOptions, out io.Writer) error {
	names, err := o.chooseContexts()
	if err != nil {
		return err
	}
	level, logTo := "warn", io.Writer(os.Stderr)
	if o.verbose {
		level = "info"
	}
	log, err := logging.New(logging.Config{Level: level, File: logging.File{LocalTime: true}}, logTo, logTo)
	if err != nil {
		return err
	}
	srv, err := o.listen(log)
	if err != nil {
		return err
	}
	a := agent.New(o.agentConfig(names, srv.GRPC().String()), log) //nolint:contextcheck // operations live as long as the agent
	fmt.Fprintf(out, "Watching %s.\n", strings.Join(names, ", "))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return srv.Run(ctx) })
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return printProgress(ctx, "http://"+srv.REST().String(), a, len(names), out) })
	return group.Wait()
}

func (o upOptions) chooseContexts() ([]string, error) {
	if o.allContexts && len(o.contexts) > 0 {
		return nil, vedette.Errorf(vedette.Invalid, "--all-contexts and --context exclude each other")
	}
	k, err := kube.LoadKubeconfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	if len(k.Contexts) > 0 && o.allContexts {
		return k.Contexts, nil
	}
	if len(o.contexts) == 0 {
		name, err := k.ChooseContext("")
		switch {
		case err != nil && len(k.Contexts) == 0:
			return nil, vedette.Errorf(vedette.Invalid, "%w: set KUBECONFIG or use --kubeconfig", err)
		case err != nil:
			return nil, vedette.Errorf(vedette.Invalid, "%w: use --context or --all-contexts", err)
		}
		return []string{name}, nil
	}
	var names []string
	for _, wanted := range o.contexts {
		name, err := k.ChooseContext(wanted)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (o upOptions) listen(log *slog.Logger) (*server.Server, error) {
	dir := o.dataDir
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("find a directory for the database: %w: use --data-dir", err)
		}
		dir = filepath.Join(home, ".local", "share", "vedette")
		if data := os.Getenv("XDG_DATA_HOME"); data != "" {
			dir = filepath.Join(data, "vedette")
		}
	}
	return server.Listen(server.Config{
		ID: "up", Version: version.String(),
		REST:        net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)),
		GRPC:        net.JoinHostPort("127.0.0.1", strconv.Itoa(o.grpcPort)),
		DataDir:     dir,
		Store:       sqldb.Config{URL: "sqlite:" + filepath.Join(dir, "vedette.db"), Log: log},
		AgentServer: agentserver.Config{Projections: tables.Projections()},
	}, log)
}

func (o upOptions) agentConfig(names []string, grpcAddress string) agent.Config {
	cfg := agent.Config{Uplink: uplink.Config{
		Target: grpcAddress, Creds: insecure.NewCredentials(), Agent: "up", Version: version.String(), Hostname: "localhost",
	}}
	for _, name := range names {
		cfg.Accounts = append(cfg.Accounts, agent.Account{
			Name:       vedette.AccountName(name),
			Access:     kube.Access{KubeconfigFile: o.kubeconfig, Context: name},
			Selection:  watch.Selection{Kinds: o.kinds},
			Properties: vedette.Properties{Kinds: o.kinds},
		})
	}
	return cfg
}

// printProgress prints the progress of the first sync until all feeds are live, and then what
// to do next. It prints why clusters cannot be reached.
func printProgress(ctx context.Context, rest string, a *agent.Agent, accounts int, out io.Writer) error {
	c, err := client.New(rest)
	if err != nil {
		return err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	p := progress{out: out, rest: rest, accounts: accounts, accountErrors: map[vedette.AccountName]string{}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			p.printErrors(a.Status())
			if feeds, err := c.Feeds(ctx, "", ""); err == nil {
				p.show(feeds)
			}
		}
	}
}

type progress struct {
	out           io.Writer
	rest          string
	accounts      int
	last          string
	complete      bool
	accountErrors map[vedette.AccountName]string
}

// printErrors prints why accounts cannot be reached, each reason once.
func (p *progress) printErrors(s agent.Status) {
	for _, account := range s.Accounts {
		if account.Error != p.accountErrors[account.Name] && account.Error != "" {
			fmt.Fprintln(p.out, output.Sanitize(string(account.Name)+": "+account.Error)) // one line, because it would look like another account
		}
		p.accountErrors[account.Name] = account.Error
	}
}

func (p *progress) show(feeds []client.Feed) {
	live := map[string]bool{}
	pending := 0
	objects := int64(0)
	for _, f := range feeds {
		objects += f.Objects
		if f.State == string(vedette.FeedPending) || f.State == string(vedette.FeedSyncing) {
			pending++
		} else {
			live[f.Account] = true
		}
	}
	if p.complete || len(feeds) == 0 {
		return
	}
	if now := fmt.Sprintf("%s stored, %d of %s still syncing", output.Count(objects, "object"), pending,
		output.Count(len(feeds), "feed")); pending > 0 && now != p.last {
		p.last = now
		fmt.Fprintln(p.out, now)
	}
	if pending > 0 || len(live) < p.reachable() {
		return
	}
	p.complete = true
	fmt.Fprintf(p.out, `
%s of %s are live on %s. Now try, in another terminal:

  vedette get pods -A
  vedette get deployments -A --watch

Press Ctrl-C to stop. The next start continues with the stored data.
`, output.Count(objects, "object"), output.Count(len(live), "cluster"), p.rest)
}

func (p *progress) reachable() int {
	n := p.accounts
	for _, accountError := range p.accountErrors {
		if accountError != "" {
			n--
		}
	}
	return max(1, n)
}
