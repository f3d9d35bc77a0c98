// Command vedette-server stores what agents report in SQL and serves it over REST.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/program"
	"github.com/vedette-io/vedette/internal/tracing/otlp"
	"github.com/vedette-io/vedette/internal/version"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/config"
	"github.com/vedette-io/vedette/server/store/backup"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

const usage = `vedette-server stores what agents report and serves it over REST.

Usage:
  vedette-server [--config FILE] [--data-dir DIR]          Run the server.
  vedette-server check [--config FILE] [--data-dir DIR]    Check the configuration, and print what is wrong with it.
                                                           The exit status is 1 if there are errors.
    --connect      Try the database and the services, too.
    --effective    Print all settings, too, who can connect to which port, and how the settings differ from what
                   is in effect in the server that runs on this machine (or in this pod), and since when.
    --strict       Exit with status 1 also if there are warnings.
  vedette-server backup [--config FILE] [--data-dir DIR] FILE|-
                                                           Write one state of SQLite's database to a file, or to standard output.
                                                           The server may run meanwhile.
  vedette-server restore [--config FILE] [--data-dir DIR] FILE|-
                                                           Replace SQLite's database by a backup. The server must be stopped.
  vedette-server version                                   Print the version, as --version does.

Without a configuration file the server listens on 127.0.0.1:7002 for REST and on
127.0.0.1:9091 for agents, and stores its data in SQLite in /var/lib/vedette.
`

func main() {
	var dataDir string
	addFlags := func(flags *flag.FlagSet) { flags.StringVar(&dataDir, "data-dir", "", "") }
	program.Program[*config.Config]{
		Name: "vedette-server", Usage: usage,
		AddFlags: addFlags,
		Load: func(path string) (*config.Config, error) {
			cfg, err := config.Load(path, os.LookupEnv)
			if err == nil && dataDir != "" {
				cfg.UseDataDir(dataDir)
			}
			return cfg, err
		},
		Check:  check,
		Probes: probes,

		Connections: (*config.Config).Connections, Running: running,
		EnvPrefix: config.EnvPrefix,
		LogConfig: func(cfg *config.Config) logging.Config { return cfg.Logging.Config },
		Run:       run,
		Commands: map[string]program.Command[*config.Config]{
			"backup":  {AddFlags: addFlags, Run: runBackup},
			"restore": {AddFlags: addFlags, Run: runRestore},
		},
	}.Main()
}

func run(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	settings, err := newServerConfig(cfg, log)
	if err != nil {
		return err
	}
	if removed := cfg.ArtifactConfig().RemoveAbandonedClones(); removed > 0 {
		log.Info("removed clones of Git repositories that a killed server left", "clones", removed)
	}
	if path, isSQLite := sqldb.FilePath(settings.Store.URL); isSQLite {
		if removed := backup.RemoveAbandoned(path); removed > 0 {
			log.Info("removed copies of the database that killed commands (backup, restore) left", "copies", removed)
		}
	}
	log.Info("vedette-server", "version", version.String(), "config", strings.Join(cfg.ReadFiles(), ", "),
		"server", settings.ID, "database", cfg.Database().String())
	for _, warning := range cfg.Warnings() {
		log.Warn("configuration warning", "warning", warning)
	}
	for _, notice := range cfg.Notices() {
		log.Info("configuration notice", "notice", notice)
	}
	configfile.LogUnused(log, cfg, "docs/config-server.md")
	if cfg.Tracing.Enabled {
		exporter, err := otlp.New(ctx, cfg.TraceExport(settings.ID), log)
		if err != nil {
			return err
		}
		defer exporter.Close() //nolint:contextcheck // ctx has ended by then
		settings.Tracing = exporter.Provider()
	}
	reloader := newReloader(cfg, string(settings.ID), settings.Metrics, log)
	settings.Clouddriver.ConfigDetails = reloader.healthDetails
	settings.ConfigHandler = configHandler(cfg, reloader, log)
	srv, err := server.Listen(settings, log)
	if err != nil {
		return err
	}
	reloader.server = srv
	group, ctx := errgroup.WithContext(ctx)
	if cfg.Pprof.Enabled {
		profiles := cfg.Profiles(settings.RESTTLS, log)
		listener, err := profiles.Listen()
		if err != nil {
			return err
		}
		log.Info("serving profiles", "address", listener.Addr().String())
		group.Go(func() error { return profiles.Serve(ctx, listener, log) })
	}
	group.Go(func() error { return srv.Run(ctx) })
	group.Go(func() error { return reloader.Watch(ctx) })
	group.Go(func() error { return keypair.Watch(ctx, cfg.CertificateUses(), log, settings.Metrics.FilesRead) })
	return group.Wait()
}
