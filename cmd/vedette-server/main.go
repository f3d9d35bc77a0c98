// Command vedette-server takes what agents report, keeps it in SQL and answers
// readers from there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/logging"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "vedette-server:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	check := len(args) > 0 && args[0] == "check"
	if check {
		args = args[1:]
	}
	flags := flag.NewFlagSet("vedette-server", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage) }
	file, dataDir := flags.String("config", "", ""), flags.String("data-dir", "", "")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return errors.New("see vedette-server --help")
	}
	if flags.NArg() > 0 {
		if flags.Arg(0) == "version" {
			fmt.Println(version.String())
			return nil
		}
		return fmt.Errorf("unknown command %q; see vedette-server --help", flags.Arg(0))
	}
	cfg, err := config.Load(*file, os.LookupEnv)
	if err != nil {
		return err
	}
	if *dataDir != "" {
		cfg.UseDataDir(*dataDir)
	}
	if check {
		return printConfig(cfg)
	}
	return serve(ctx, cfg)
}

// printConfig prints what a configuration means.
func printConfig(cfg *config.Config) error {
	for _, kv := range cfg.Effective() {
		fmt.Println(kv.String())
	}
	for _, warning := range cfg.Warnings() {
		fmt.Fprintln(os.Stderr, "warning:", warning)
	}
	for _, notice := range cfg.Notices() {
		fmt.Fprintln(os.Stderr, "note:", notice)
	}
	for _, unused := range cfg.Unused() {
		fmt.Fprintln(os.Stderr, "without effect:", unused)
	}
	_, err := newServerConfig(cfg, slog.New(slog.DiscardHandler))
	return err
}

func serve(ctx context.Context, cfg *config.Config) error {
	log, err := logging.New(cfg.Logging.Level, cfg.Logging.Format, os.Stdout)
	if err != nil {
		return err
	}
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
	configfile.LogUnused(log, cfg, "docs/config-server.md")
	srv, err := server.Listen(settings, log)
	if err != nil {
		return err
	}
	return srv.Run(ctx)
}
