package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
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
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/version"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/views"
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

func newUp() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a server and an agent in this process, on the current kubeconfig",
		Long: `Run a server and an agent in this process, on the current kubeconfig.

Each context becomes an account of its own name. What the clusters hold is kept
in an embedded database, so that the next start goes on where this one ended.
REST is served on localhost only; other agents of this machine may connect too.`,
		Example: `  vedette up                        # the current context
  vedette up --all-contexts
  vedette up --context dev --context staging --kinds deployments,pods,certificates`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; by default the one that kubectl uses")
	f.StringArrayVar(&o.contexts, "context", nil, "context to watch, in place of the current one; may be repeated")
	f.BoolVar(&o.allContexts, "all-contexts", false, "watch every context of the kubeconfig")
	f.StringSliceVar(&o.kinds, "kinds", nil, "kinds to watch, in place of the usual ones; \"all\" for all but Events")
	f.StringVar(&o.dataDir, "data-dir", "", "folder of the database; by default vedette in the user's data folder")
	f.IntVar(&o.port, "port", 7002, "port of REST on localhost")
	f.IntVar(&o.grpcPort, "grpc-port", 9091, "port for agents on localhost")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show the log of server and agent")
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
	log, err := logging.New(level, "text", logTo)
	if err != nil {
		return err
	}
	srv, err := o.listen(log)
	if err != nil {
		return err
	}
	a := agent.New(o.agentConfig(names, srv.GRPC().String()), log)
	fmt.Fprintf(out, "Watching %s.\n", strings.Join(names, ", "))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return srv.Run(ctx) })
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return printProgress(ctx, "http://"+srv.REST().String(), a, len(names), out) })
	return group.Wait()
}

func (o upOptions) chooseContexts() ([]string, error) {
	if o.allContexts && len(o.contexts) > 0 {
		return nil, fmt.Errorf("--all-contexts and --context exclude each other")
	}
	if len(o.contexts) > 0 {
		return o.contexts, nil
	}
	names, current, err := kube.Contexts(o.kubeconfig)
	switch {
	case err != nil:
		return nil, err
	case len(names) == 0:
		return nil, fmt.Errorf("there is no kubeconfig with a context; set KUBECONFIG, or give --kubeconfig FILE")
	case o.allContexts:
		return names, nil
	case current == "" && len(names) > 1:
		return nil, fmt.Errorf("the kubeconfig has no current context; choose one of %s with --context, or take --all-contexts", strings.Join(names, ", "))
	case current == "":
		return names, nil
	}
	return []string{current}, nil
}

func (o upOptions) listen(log *slog.Logger) (*server.Server, error) {
	dir := o.dataDir
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("find a folder for the database: %w; give --data-dir", err)
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
		Store:       store.Config{URL: "sqlite:" + filepath.Join(dir, "vedette.db"), Log: log},
		AgentServer: agentserver.Config{Projections: views.Projections()},
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

// printProgress tells how far the first sync is, until all is live, and then what
// to do next. Clusters that can't be reached are named with the reason.
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

// printErrors tells of accounts that can't be reached, once for each reason.
func (p *progress) printErrors(s agent.Status) {
	for _, account := range s.Accounts {
		if account.Error != p.accountErrors[account.Name] && account.Error != "" {
			fmt.Fprintf(p.out, "%s: %s\n", account.Name, account.Error)
		}
		p.accountErrors[account.Name] = account.Error
	}
}

func (p *progress) show(feeds []client.Feed) {
	live, pending, objects := map[string]bool{}, 0, int64(0)
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
	if now := fmt.Sprintf("%d objects, %d of %d feeds to go", objects, pending, len(feeds)); pending > 0 && now != p.last {
		p.last = now
		fmt.Fprintln(p.out, now)
	}
	if pending > 0 || len(live) < p.reachable() {
		return
	}
	p.complete = true
	fmt.Fprintf(p.out, "\n%d objects of %d clusters are live on %s. Now try, in another terminal:\n\n  vedette get pods -A\n  vedette get deployments -A --watch\n\nCtrl-C ends it; the next start goes on from here.\n", objects, len(live), p.rest)
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
