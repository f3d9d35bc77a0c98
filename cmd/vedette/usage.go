package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vedette-io/vedette/internal/cli/kubectldoc"
	"github.com/vedette-io/vedette/internal/cli/kubectlmap"
	"github.com/vedette-io/vedette/internal/nearest"
)

// explainUsageErrors makes the errors of a command's flags and arguments, and those of all commands
// below it, say what would be valid.
func explainUsageErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(explainFlagError) // also for the commands below
	explainArgsErrors(cmd)
}

// explainArgsErrors adds a command's usage to errors in the number of its arguments. A command that only has others below it fails for
// one that it does not have; cobra would print the help, and the command would look successful.
func explainArgsErrors(cmd *cobra.Command) {
	switch validate := cmd.Args; {
	case cmd.HasSubCommands() && !cmd.Runnable():
		cmd.Args = explainUnknownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	case validate != nil:
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := validate(cmd, args)
			switch {
			case err == nil:
				return nil
			case len(args) > 0 && !cmd.HasAvailableSubCommands() && validate(cmd, nil) == nil && validate(cmd, args[:1]) != nil: // it takes none
				return fmt.Errorf("unexpected argument %q: %s", args[0], explainArgument(cmd))
			}
			return fmt.Errorf("%w: the usage is %s", err, cmd.UseLine())
		}
	}
	for _, c := range cmd.Commands() {
		explainArgsErrors(c)
	}
}

// maxNamedCommands is how many commands an error names.
const maxNamedCommands = 4

// explainUnknownCommand returns an error if there are arguments, because the first one is the name of no command.
func explainUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	advice := cmp.Or(nearest.Hint(args[0], names), fmt.Sprintf(": see %s --help", cmd.CommandPath()))
	if len(names) <= maxNamedCommands {
		advice = ": use " + nearest.OneOf(names)
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), advice)
}

// explainArgument says what to use instead of an argument of a command that takes none.
func explainArgument(cmd *cobra.Command) string {
	usage := "the usage is " + cmd.UseLine()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.NoOptDefVal != "" && f.Value.String() == f.NoOptDefVal {
			usage = fmt.Sprintf("a value of --%s follows an equals sign (--%s=VALUE), and %s", f.Name, f.Name, usage)
		}
	})
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	for _, c := range kubectlmap.Commands() {
		if c.Path == path && path == "create" {
			usage = "vedette create " + c.Instead
		}
	}
	return usage
}

// validValues says which values flags of a type take.
var validValues = map[string]string{
	"bool":     "true or false",
	"duration": "a duration such as 30s or 5m",
	"int":      "a whole number",
	"int64":    "a whole number",
}

// explainFlagError says which value a flag takes, and which flag may be meant.
func explainFlagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if valid := validValues[invalid.GetFlag().Value.Type()]; valid != "" {
			return fmt.Errorf("invalid value %q of --%s: want %s", invalid.GetValue(), invalid.GetFlag().Name, valid)
		}
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		if note := kubectldoc.FlagNote(path, longName(unknown.GetSpecifiedName())); note != "" {
			return fmt.Errorf("%w, which is a flag of kubectl: %s (docs/kubectl.md)", err, note)
		}
		hint := nearest.Hint("--"+unknown.GetSpecifiedName(), flagNames(cmd))
		if hint == "" {
			hint = fmt.Sprintf(": see %s --help", cmd.CommandPath())
		}
		return fmt.Errorf("%w%s", err, hint)
	}
	return err
}

// longName returns the name of a flag of kubectl whose shorthand people use.
func longName(flag string) string {
	switch flag {
	case "k":
		return "kustomize"
	case "s":
		return "server"
	}
	return flag
}

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}
