package program

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/probe"
)

// checkOptions are the flags of `check`.
type checkOptions struct{ connect, effective bool }

func (o *checkOptions) addFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.connect, "connect", false, "")
	flags.BoolVar(&o.effective, "effective", false, "")
}

// check prints the settings in effect to out, and what the user should know about them to errOut.
// With connect, it prints what probes found instead.
func (p Program[C]) check(ctx context.Context, cfg C, o checkOptions, out, errOut io.Writer) error {
	if o.effective || !o.connect {
		for _, kv := range cfg.Effective() {
			fmt.Fprintln(out, kv)
		}
	}
	if o.effective && p.Running != nil {
		for _, remark := range p.Running(ctx, cfg) {
			fmt.Fprintln(errOut, remark)
		}
	}
	if p.Remarks != nil {
		for _, remark := range p.Remarks(cfg) {
			fmt.Fprintln(errOut, remark)
		}
	}
	for _, warning := range p.unknownVariables(cfg) {
		fmt.Fprintln(errOut, "warning: environment variable without effect:", warning)
	}
	for _, key := range cfg.Unused() {
		fmt.Fprintln(errOut, "without effect:", key)
	}
	if !o.connect {
		return p.Check(cfg)
	}
	return probe.Run(ctx, p.probes(cfg), out)
}

// probes returns what `check --connect` tries. What is wrong with the configuration itself is its
// first result, so that one missing file does not hide the others.
func (p Program[C]) probes(cfg C) []probe.Probe {
	all := []probe.Probe{probe.One("configuration", func(context.Context) (string, error) { return "", p.Check(cfg) })}
	more, err := p.Probes(cfg)
	if err != nil { // the first result says why
		return all
	}
	return append(all, more...)
}

// unknownVariables returns the environment variables that look like settings of ours and are none,
// each with the nearest one that exists.
func (p Program[C]) unknownVariables(cfg C) []string {
	if p.EnvPrefix == "" {
		return nil
	}
	return configfile.UnknownVariables(cfg, p.EnvPrefix, os.Environ())
}
