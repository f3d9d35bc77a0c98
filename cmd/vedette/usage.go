package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vedette-io/vedette/internal/nearest"
)

// explainUsageErrors makes the errors of a command's flags and arguments, and those of all commands
// below it, say what would be valid.
func explainUsageErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(explainFlagError) // also for the commands below
	explainArgsErrors(cmd)
}

// explainArgsErrors adds a command's usage to errors in the number of its arguments.
func explainArgsErrors(cmd *cobra.Command) {
	if validate := cmd.Args; validate != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := validate(cmd, args); err != nil {
				return fmt.Errorf("%w: the usage is %s", err, cmd.UseLine())
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		explainArgsErrors(c)
	}
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
		hint := nearest.Hint("--"+unknown.GetSpecifiedName(), flagNames(cmd))
		if hint == "" {
			hint = fmt.Sprintf(": see %s --help", cmd.CommandPath())
		}
		return fmt.Errorf("%w%s", err, hint)
	}
	return err
}

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}
