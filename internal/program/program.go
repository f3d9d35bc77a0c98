// Package program is what vedette-agent and vedette-server have in common as programs: the
// command line, the check of a configuration, the logger, and the end by a signal.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/logging"
	"github.com/vedette-io/vedette/internal/mask"
	"github.com/vedette-io/vedette/internal/probe"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/internal/version"
)

// Config is a configuration that was loaded.
type Config interface {
	Effective() []configfile.KeyValue
	// Warnings are settings that weaken security, or that users rely on and that do not work as they expect.
	// Notices are other facts that they should know.
	Warnings() []string
	Notices() []string
	// Unused are the keys without effect, with their reasons, and InactiveSettings those of them that are set to
	// something other than their default.
	Unused() []string
	InactiveSettings() []configfile.Inactive
}

// Program is a program with a configuration file. All functions but AddFlags, Connections
// and Running must be set; Commands may be nil.
type Program[C Config] struct {
	Name, Usage string
	// AddFlags adds flags to --config.
	AddFlags func(flags *flag.FlagSet)
	// Load reads the configuration file at path. If path is empty, it looks in the default
	// places.
	Load func(path string) (C, error)
	// Check returns why the program could not run with a configuration that was loaded.
	Check func(cfg C) error
	// Notes returns what users should know of what the configuration leads to on this machine; may be nil. It connects to nothing.
	Notes func(cfg C) []string
	// Probes returns what `check --connect` tries. It fails only if Check does.
	Probes func(cfg C) ([]probe.Probe, error)
	// Connections returns who can connect to which port, and how the program connects to others, in lines for
	// `check --effective`; may be nil.
	Connections func(cfg C) []string
	// Running returns what `check --effective` says about the program if it runs on this machine; may be
	// nil.
	Running func(ctx context.Context, cfg C) []string
	// EnvPrefix is the prefix of the environment variables that set keys, as in configfile.
	EnvPrefix string
	// LogConfig returns the configuration of the log.
	LogConfig func(cfg C) logging.Config
	// Run runs the program until ctx ends.
	Run func(ctx context.Context, cfg C, log *slog.Logger) error
	// Commands are further commands by name.
	Commands map[string]Command[C]
}

// Main runs the program with the arguments of the process, until it is interrupted, and
// exits with status 1 if it fails.
func (p Program[C]) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(textcheck.SafeWriter{To: os.Stderr}, "%s: %s\n", p.Name, mask.URLs(err.Error()))
		os.Exit(1)
	}
}

func (p Program[C]) run(ctx context.Context, args []string, out, errOut io.Writer) error {
	if len(args) > 0 {
		if command, ok := p.Commands[args[0]]; ok {
			return p.runCommand(ctx, command, args[1:], textcheck.SafeWriter{To: out}, textcheck.SafeWriter{To: errOut})
		}
	}
	if len(args) > 0 && args[0] == "man" {
		return p.man(args[1:], out)
	}
	isCheck := len(args) > 0 && args[0] == "check"
	if isCheck {
		args = args[1:]
	}
	var o checkOptions
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() { fmt.Fprint(errOut, p.Usage) }
	file := flags.String("config", "", "")
	printVersion := flags.Bool("version", false, "")
	if isCheck {
		o.addFlags(flags)
	}
	if p.AddFlags != nil {
		p.AddFlags(flags)
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return fmt.Errorf("see %s --help", p.Name)
	}
	if *printVersion || flags.Arg(0) == "version" {
		fmt.Fprintln(out, version.String())
		return nil
	}
	if isCheck && flags.NArg() > 0 {
		return fmt.Errorf("check takes no argument %q: name a file with --config", flags.Arg(0))
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown command %q; see %s --help", flags.Arg(0), p.Name)
	}
	cfg, err := p.Load(*file)
	switch {
	case err != nil && isCheck:
		return checkUnreadable(err, textcheck.SafeWriter{To: out})
	case err != nil:
		return err
	}
	defer closeConfig(cfg)
	if isCheck {
		return p.check(ctx, cfg, o, textcheck.SafeWriter{To: out})
	}
	log, err := logging.New(p.LogConfig(cfg), out, errOut)
	if err != nil {
		return err
	}
	if secrets, ok := any(cfg).(interface{ SecretValues() []string }); ok {
		logging.SetSecrets(log, secrets.SecretValues())
	}
	limitMemoryByContainer(log)
	for _, warning := range p.unknownVariables(cfg) {
		log.Warn("environment variable without effect", "variable", warning)
	}
	err = p.runWithLog(ctx, cfg, log)
	if !isStop(ctx, err) {
		return err
	}
	return nil
}

// runWithLog runs the program, and keeps the file of its log in place meanwhile.
func (p Program[C]) runWithLog(ctx context.Context, cfg C, log *slog.Logger) error {
	logCtx, stop := context.WithCancel(context.WithoutCancel(ctx)) // also while the program ends
	var keeping sync.WaitGroup
	keeping.Go(func() { logging.KeepFile(logCtx, log) })
	defer keeping.Wait()
	defer stop()
	return p.Run(ctx, cfg, log)
}

// isStop reports whether a program failed only because a signal ended it, for example while it waited for
// its database.
func isStop(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled))
}

// closeConfig removes the temporary files with secrets of a configuration, if it has any.
func closeConfig(cfg any) {
	if closer, ok := cfg.(io.Closer); ok {
		_ = closer.Close() // the next start removes what is left
	}
}
