//go:build unix

// Command controlplane runs a real Kubernetes control plane for demos and experiments: the one that
// tests get from package controlplane.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: controlplane COMMAND [flags]

  build             build the programs (once, cached)
  up                start a control plane, and remove it at Ctrl-C
  kubectl [-- ARGS] run the kubectl of the same release against a running plane

controlplane COMMAND -h lists a command's flags. VEDETTE_CACHE sets another cache directory.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

// run executes a command. It writes results to out and progress to log.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 0 {
		fmt.Fprint(log, usage)
		return errors.New("no command given")
	}
	switch args[0] {
	case "build":
		return runBuild(ctx, args[1:], out, log)
	case "up":
		return runUp(ctx, args[1:], out, log)
	case "kubectl":
		return runKubectl(ctx, args[1:], log)
	case "help", "-h", "--help":
		_, err := fmt.Fprint(out, usage)
		return err
	default:
		fmt.Fprint(log, usage)
		return fmt.Errorf("unknown command %q", args[0])
	}
}

// newFlags returns a command's flag set, which returns errors instead of exiting.
func newFlags(name string, log io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("controlplane "+name, flag.ContinueOnError)
	flags.SetOutput(log)
	return flags
}

// parse parses flags and rejects other arguments.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: unexpected argument %q", flags.Name(), flags.Arg(0))
	}
	return nil
}
