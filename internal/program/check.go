package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/mask"
	"github.com/vedette-io/vedette/internal/probe"
)

type checkOptions struct{ connect, effective, strict bool }

func (o *checkOptions) addFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.connect, "connect", false, "")
	flags.BoolVar(&o.effective, "effective", false, "")
	flags.BoolVar(&o.strict, "strict", false, "")
}

// findings are what `check` says about a configuration, each in one line.
type findings struct{ errors, warnings, notes, withoutEffect []string }

// check prints what is wrong with a configuration and what the user should know about it, errors first.
// After that it prints what probes found, and what is in effect, if the options ask for it. It returns an
// error if there are errors, or warnings with the option strict.
func (p Program[C]) check(ctx context.Context, cfg C, o checkOptions, out io.Writer) error {
	f := p.findings(cfg)
	if !o.connect { // otherwise the first probe
		f.errors = errorLines(p.Check(cfg))
	}
	f.print(out)
	err := f.err(o.strict)
	if o.connect {
		err = errors.Join(probe.Run(ctx, p.probes(cfg), out), err)
	} else {
		fmt.Fprintln(out, f.summary())
	}
	if o.effective {
		p.printEffective(ctx, cfg, out)
	}
	return err
}

// checkUnreadable is check for a configuration that cannot be loaded.
func checkUnreadable(err error, out io.Writer) error {
	f := findings{errors: errorLines(err)}
	f.print(out)
	fmt.Fprintln(out, f.summary())
	return f.err(false)
}

func (p Program[C]) findings(cfg C) (f findings) {
	f.warnings = cfg.Warnings()
	for _, variable := range p.unknownVariables(cfg) {
		f.warnings = append(f.warnings, "environment variable without effect: "+variable)
	}
	for _, s := range cfg.InactiveSettings() {
		if s.IsReliedOn {
			f.warnings = append(f.warnings, "setting without effect: "+s.String())
		}
	}
	f.notes, f.withoutEffect = cfg.Notices(), cfg.Unused()
	if p.Notes != nil {
		f.notes = append(f.notes, p.Notes(cfg)...)
	}
	return f
}

// errorLines returns the texts of joined errors.
func errorLines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(mask.URLs(err.Error()), "\n")
}

func (f findings) print(out io.Writer) {
	for _, group := range []struct {
		label string
		lines []string
	}{{"error", f.errors}, {"warning", f.warnings}, {"note", f.notes}, {"without effect", f.withoutEffect}} {
		for _, line := range group.lines {
			fmt.Fprintf(out, "%s: %s\n", group.label, line)
		}
	}
}

// summary returns a line for a user who sees no other.
func (f findings) summary() string {
	counts := []string{count(len(f.errors), "error"), count(len(f.warnings), "warning"), count(len(f.notes), "note")}
	if len(f.errors) > 0 {
		return "the configuration cannot be used: " + strings.Join(counts, ", ")
	}
	return "the configuration is valid: " + strings.Join(counts, ", ")
}

func (f findings) err(strict bool) error {
	switch {
	case len(f.errors) > 0:
		return fmt.Errorf("the configuration has %s", count(len(f.errors), "error"))
	case strict && len(f.warnings) > 0:
		return fmt.Errorf("the configuration has %s, which --strict does not allow", count(len(f.warnings), "warning"))
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printEffective prints who can connect where, how the running program differs, and all settings.
func (p Program[C]) printEffective(ctx context.Context, cfg C, out io.Writer) {
	if p.Connections != nil {
		for _, line := range p.Connections(cfg) {
			fmt.Fprintln(out, line)
		}
	}
	if p.Running != nil {
		for _, line := range p.Running(ctx, cfg) {
			fmt.Fprintln(out, line)
		}
	}
	for _, kv := range cfg.Effective() {
		fmt.Fprintln(out, kv)
	}
}

// probes returns what `check --connect` tries. What is wrong with the configuration itself is its
// first result, so that one missing file does not hide the others.
func (p Program[C]) probes(cfg C) []probe.Probe {
	all := []probe.Probe{probe.One("configuration", func(context.Context) (string, error) {
		if err := p.Check(cfg); err != nil {
			return "", errors.New(mask.URLs(err.Error()))
		}
		return "", nil
	})}
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
