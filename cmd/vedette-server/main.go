// Command vedette-server takes what agents report, keeps it in SQL and answers
// readers from there.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"

	"github.com/vedette-io/vedette/internal/program"
	"github.com/vedette-io/vedette/internal/version"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/server/config"
)

const usage = `vedette-server keeps what agents report and answers readers from it.

  vedette-server [--config FILE] [--data-dir DIR]          run
  vedette-server check [--config FILE] [--data-dir DIR]    read the configuration, say what counts, and end
  vedette-server version

Without a configuration it serves REST on 127.0.0.1:7002 and agents on
127.0.0.1:9091, and keeps its data in SQLite below /var/lib/vedette.
`

func main() {
	var dataDir string
	program.Program[*config.Config]{
		Name: "vedette-server", Usage: usage,
		AddFlags: func(flags *flag.FlagSet) { flags.StringVar(&dataDir, "data-dir", "", "") },
		Load: func(path string) (*config.Config, error) {
			cfg, err := config.Load(path, os.LookupEnv)
			if err == nil && dataDir != "" {
				cfg.UseDataDir(dataDir)
			}
			return cfg, err
		},
		Remarks:    remarks,
		Check:      check,
		LogOptions: func(cfg *config.Config) (level, format string) { return cfg.Logging.Level, cfg.Logging.Format },
		Run:        run,
	}.Main()
}

func remarks(cfg *config.Config) []string {
	var lines []string
	for _, warning := range cfg.Warnings() {
		lines = append(lines, "warning: "+warning)
	}
	for _, notice := range cfg.Notices() {
		lines = append(lines, "note: "+notice)
	}
	return lines
}

// check reads the files that a configuration names, such as certificates.
func check(cfg *config.Config) error {
	_, err := newServerConfig(cfg, slog.New(slog.DiscardHandler))
	return err
}

func run(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	settings, err := newServerConfig(cfg, log)
	if err != nil {
		return err
	}
	log.Info("vedette-server", "version", version.String(), "config", cfg.Path, "server", settings.ID, "database", cfg.Database().String())
	for _, warning := range cfg.Warnings() {
		log.Warn(warning)
	}
	for _, notice := range cfg.Notices() {
		log.Info(notice)
	}
	program.LogUnused(log, cfg)
	srv, err := server.Listen(settings, log)
	if err != nil {
		return err
	}
	return srv.Run(ctx)
}
