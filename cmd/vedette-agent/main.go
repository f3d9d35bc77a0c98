// Command vedette-agent watches Kubernetes clusters and reports every change to
// a server.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/bearer"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/internal/httpserver"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/internal/metricset"
	"github.com/vedette-io/vedette/internal/program"
	"github.com/vedette-io/vedette/internal/tracing/otlp"
	"github.com/vedette-io/vedette/internal/version"
)

const usage = `vedette-agent watches Kubernetes clusters and reports every change to a server.

Usage:
  vedette-agent [--config FILE]          Run the agent.
  vedette-agent check [--config FILE]    Check the configuration, and print what is wrong with it. The exit status
                                         is 1 if there are errors.
    --connect      Try the server and each cluster, too.
    --effective    Print all settings, too, who can connect to which port, and how the settings differ from what
                   is in effect in the agent that runs on this machine (or in this pod), and since when.
    --strict       Exit with status 1 also if there are warnings.
  vedette-agent rbac [ACCOUNT] [--config FILE] [--kinds KINDS] [--change KINDS] [--read-only]
                                         Print the RBAC rules that an account needs, as manifests for kubectl, and
                                         mark those that are missing now. KINDS are separated by commas. --kinds
                                         are those that the server configures for accounts without kinds, --change
                                         are those that operations change although the account does not cache them.
  vedette-agent version                  Print the version, as --version does.

Without --config the agent reads /opt/vedette/config/vedette-agent.yml, or one of the
default files of its predecessor, such as /opt/armory/config/armory-agent.yml.
`

func main() {
	program.Program[*config.Config]{
		Name: "vedette-agent", Usage: usage,
		Load:   func(path string) (*config.Config, error) { return config.Load(path, os.LookupEnv) },
		Check:  check,
		Notes:  notes,
		Probes: probes,

		Connections: (*config.Config).Connections, Running: running,
		EnvPrefix: config.EnvPrefix,
		LogConfig: func(cfg *config.Config) logging.Config { return cfg.LogConfig(os.LookupEnv) },
		Run:       run,
		Commands:  map[string]program.Command[*config.Config]{"rbac": newRulesCommand()},
	}.Main()
}

func run(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	logStartup(cfg, log)
	replicas := setZone(ctx, cfg, log)
	settings, err := newAgentConfig(cfg, log)
	if err != nil {
		return err
	}
	settings.Uplink.Replicas = replicas
	if cfg.Tracing.Enabled {
		exporter, err := otlp.New(ctx, cfg.TraceExport(), log)
		if err != nil {
			return err
		}
		defer exporter.Close() //nolint:contextcheck // ctx has ended by then
		settings.Tracing = exporter.Provider()
	}
	settings.Metrics = metrics.New(version.String())
	settings.Metrics.Accounts.Limit = cfg.Prometheus.MaxAccounts
	setGCPercent()
	a := agent.New(settings, log) //nolint:contextcheck // operations live as long as the agent
	reloader := newReloader(cfg, settings.Accounts, a, settings.Metrics, log)
	reloader.token, _ = settings.Uplink.Token.(*bearer.Variable)
	health := agent.Handler(a, log)
	handler := withConfig(health, settings.Admin, reloader)
	group, ctx := errgroup.WithContext(ctx)
	if cfg.Pprof.Enabled {
		handler = withProfiles(handler, settings.Admin)
		group.Go(func() error { return serveProfiles(ctx, cfg, log) })
	}
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return reloader.Watch(ctx) })
	group.Go(func() error { return keypair.Watch(ctx, cfg.CertificateUses(), log, a.SetFileStates) })
	group.Go(func() error { return serveHealth(ctx, cfg.Server, handler, log) })
	if cfg.Management.IsEnabled() {
		management := managementHandler(withConfig(health, settings.Admin, reloader), cfg.Prometheus.Enabled, settings.Metrics, log)
		group.Go(func() error { return serveManagement(ctx, cfg.Management, management, log) })
	}
	if cfg.Prometheus.Enabled {
		group.Go(func() error { return serveMetrics(ctx, cfg.Prometheus, settings.Metrics, log) })
	}
	return group.Wait()
}

// withConfig adds the configuration that is in effect, for operators.
func withConfig(next http.Handler, guard admin.Guard, r *reloader) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.Handle("GET "+configreload.Path, configreload.Handler(guard, r.Effective))
	return mux
}

// withProfiles adds Go's profiles to the handler of the health port, where the predecessor had them.
func withProfiles(next http.Handler, guard admin.Guard) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.Handle("/debug/pprof/", guard.Require(admin.ProfileHandler()))
	return mux
}

// serveProfiles serves Go's profiles on a port of their own until ctx ends.
func serveProfiles(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	tlsConfig, err := cfg.Server.SSL.TLSConfig()
	if err != nil {
		return err
	}
	profiles := admin.Profiles{Host: cfg.Server.Host, Port: cfg.Pprof.Port, TLS: tlsConfig, Guard: cfg.Server.Guard(log)}
	listener, err := profiles.Listen()
	if err != nil {
		return err
	}
	log.Info("serving profiles", "address", listener.Addr().String())
	return profiles.Serve(ctx, listener, log)
}

// serveMetrics serves the metrics until ctx ends.
func serveMetrics(ctx context.Context, cfg config.Prometheus, m *metrics.Metrics, log *slog.Logger) error {
	tlsConfig, err := cfg.SSL.TLSConfig()
	if err != nil {
		return fmt.Errorf("prometheus.ssl: %w", err)
	}
	listener, err := metricset.Listen(cfg.ListenAddress())
	if err != nil {
		return err
	}
	return m.Serve(ctx, listener, tlsConfig, log)
}

// setGCPercent makes the garbage collector run when the heap has grown by half, which costs
// some processor time and saves memory. It respects GOGC.
func setGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

func logStartup(cfg *config.Config, log *slog.Logger) {
	log.Info("vedette-agent", "version", version.String(), "config", strings.Join(cfg.ReadFiles(), ", "), "agent", cfg.AgentID,
		"server", cfg.Clouddriver.GRPC, "accounts", len(cfg.Kubernetes.Accounts))
	for _, notice := range cfg.Notices() {
		log.Warn("configuration notice", "notice", notice)
	}
	configfile.LogUnused(log, cfg, "docs/config-agent.md")
	for _, r := range cfg.RejectedAccounts {
		log.Error("account left out", "account", r.Name, "at", r.At.String(), "error", r.Reason)
	}
	for _, warning := range cfg.Warnings() {
		log.Warn("configuration warning", "warning", warning)
	}
}

// serveHealth serves the health checks until ctx ends.
func serveHealth(ctx context.Context, cfg config.Server, h http.Handler, log *slog.Logger) error {
	tlsConfig, err := cfg.SSL.TLSConfig()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.ListenAddress())
	if err != nil {
		return fmt.Errorf("listen for health checks: %w: set server.port to a free port", err)
	}
	srv := httpserver.New(h, tlsConfig)
	if err := httpserver.Serve(ctx, srv, httpserver.Limit(srv, listener, logthrottle.Logger(log)), 0, log); err != nil {
		return fmt.Errorf("serve health checks: %w", err)
	}
	return nil
}
