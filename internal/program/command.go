package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// Command is a command that only one of the programs has.
type Command[C Config] struct {
	// AddFlags adds flags to --config; may be nil.
	AddFlags func(flags *flag.FlagSet)
	// Run runs the command with the arguments that are not flags.
	Run func(ctx context.Context, cfg C, args []string, out, errOut io.Writer) error
}

// runCommand loads the configuration and runs a command. Flags may come before and after its
// arguments.
func (p Program[C]) runCommand(ctx context.Context, c Command[C], args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() { fmt.Fprint(errOut, p.Usage) }
	file := flags.String("config", "", "")
	if c.AddFlags != nil {
		c.AddFlags(flags)
	}
	var arguments []string
	for len(args) > 0 {
		if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil
		} else if err != nil {
			return fmt.Errorf("see %s --help", p.Name)
		}
		args = flags.Args()
		if len(args) > 0 {
			arguments, args = append(arguments, args[0]), args[1:]
		}
	}
	cfg, err := p.Load(*file)
	if err != nil {
		return err
	}
	defer closeConfig(cfg)
	return c.Run(ctx, cfg, arguments, out, errOut)
}
