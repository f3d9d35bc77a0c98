// Command vedette-agent watches Kubernetes clusters and reports every change to
// a server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/version"
)

const usage = `vedette-agent watches Kubernetes clusters and reports every change to a server.

  vedette-agent [--config FILE]          run
  vedette-agent check [--config FILE]    read the configuration, say what counts, and end
  vedette-agent version

Without --config the file is /opt/armory/config/armory-agent.yml, or the other
places where the predecessor looked.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "vedette-agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	check := len(args) > 0 && args[0] == "check"
	if check {
		args = args[1:]
	}
	flags := flag.NewFlagSet("vedette-agent", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage) }
	file := flags.String("config", "", "")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return errors.New("see vedette-agent --help")
	}
	if flags.NArg() > 0 {
		if flags.Arg(0) == "version" {
			fmt.Println(version.String())
			return nil
		}
		return fmt.Errorf("unknown command %q; see vedette-agent --help", flags.Arg(0))
	}
	cfg, err := config.Load(*file, os.LookupEnv)
	if err != nil {
		return err
	}
	if check {
		return printConfig(cfg)
	}
	return serve(ctx, cfg)
}

// printConfig prints what a configuration means. It is an error if an account of it is
// refused.
func printConfig(cfg *config.Config) error {
	for _, kv := range cfg.Effective() {
		fmt.Println(kv.String())
	}
	for _, unused := range cfg.Unused() {
		fmt.Fprintln(os.Stderr, "without effect:", unused)
	}
	var errs []error
	for _, r := range cfg.RejectedAccounts {
		errs = append(errs, r.Reason)
	}
	return errors.Join(errs...)
}

func serve(ctx context.Context, cfg *config.Config) error {
	log, err := logging.New(cfg.Logging.Level, cfg.Logging.Format, os.Stdout)
	if err != nil {
		return err
	}
	logStartup(cfg, log)
	settings, err := newAgentConfig(cfg, log)
	if err != nil {
		return err
	}
	setGCPercent()
	a := agent.New(settings, log)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return serveHealth(ctx, cfg.Server, agent.Handler(a, log), log) })
	return group.Wait()
}

// setGCPercent trades some processor time for memory, unless the operator has set
// other terms: garbage is collected when the heap has grown by half.
func setGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

func logStartup(cfg *config.Config, log *slog.Logger) {
	log.Info("vedette-agent", "version", version.String(), "config", cfg.Path, "agent", cfg.AgentID,
		"server", cfg.Clouddriver.GRPC, "accounts", len(cfg.Kubernetes.Accounts))
	for _, notice := range cfg.Notices() {
		log.Warn(notice)
	}
	configfile.LogUnused(log, cfg, "docs/config-agent.md")
	for _, r := range cfg.RejectedAccounts {
		log.Error("account left out", "account", r.Name, "at", r.At.String(), "error", r.Reason)
	}
	if w := cfg.Clouddriver.CertificateWarning(time.Now()); w != "" {
		log.Warn(w)
	}
}

// serveHealth serves the agent's own port until ctx ends.
func serveHealth(ctx context.Context, cfg config.Server, h http.Handler, log *slog.Logger) error {
	tlsConfig, err := cfg.TLSConfig()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.ListenAddress())
	if err != nil {
		return fmt.Errorf("listen for health checks: %w; set server.port to a free port", err)
	}
	srv := &http.Server{Handler: h, TLSConfig: tlsConfig, ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if tlsConfig != nil {
		err = srv.ServeTLS(listener, "", "")
	} else {
		err = srv.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve health checks: %w", err)
}
