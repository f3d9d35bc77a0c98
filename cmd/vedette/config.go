package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/contexts"
	"github.com/vedette-io/vedette/internal/cli/output"
)

const configLong = `Show and change the contexts of the command line.

A context is a server with the files that connect to it, and the user to act as. The
contexts are in ~/.config/vedette/config.yml, or in the file that VEDETTE_CONFIG names.
Commands use the current context, unless --context, --server, VEDETTE_CONTEXT or
VEDETTE_SERVER names another server.`

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and change the servers that commands use",
		Long:  configLong,
		Example: `  vedette config set-context prod --server https://vedette.example.com:7002 --cacert ca.crt --cert ann.crt --key ann.key
  vedette config use-context prod
  vedette config get-contexts`,
	}
	cmd.AddCommand(newGetContexts(), newCurrentContext(), newUseContext(), newSetContext(), newDeleteContext())
	return cmd
}

// loadContexts reads the file of contexts.
func loadContexts() (*contexts.File, error) {
	path, err := contexts.Path()
	if err != nil {
		return nil, err
	}
	return contexts.Load(path)
}

func newGetContexts() *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:   "get-contexts [NAME]",
		Short: "List the contexts",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"", "name", "json", "yaml"}, format) {
				return vedette.Errorf(vedette.Invalid, "invalid output format %q: use -o name, json or yaml", format)
			}
			file, err := loadContexts()
			if err != nil {
				return err
			}
			shown := file.Contexts
			if len(args) > 0 {
				found, err := file.Find(args[0])
				if err != nil {
					return err
				}
				shown = []contexts.Context{found}
			}
			return printContexts(cmd, shown, file.CurrentContext, format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "", "Output format: name, json or yaml. Defaults to a table.")
	return cmd
}

func printContexts(cmd *cobra.Command, shown []contexts.Context, current, format string) error {
	if format == "json" || format == "yaml" {
		return printDocument(cmd, map[string]any{"currentContext": current, "contexts": append([]contexts.Context{}, shown...)}, format)
	}
	var rows [][]string
	out := output.NewPrinter(cmd.OutOrStdout())
	for _, c := range shown {
		if format == "name" {
			out.Line(c.Name)
		}
		rows = append(rows, []string{map[bool]string{true: "*"}[c.Name == current], c.Name, c.Server, c.User})
	}
	if format == "name" {
		return out.Flush()
	}
	return output.PrintTable(cmd.OutOrStdout(), cmd.ErrOrStderr(), "CURRENT|NAME|SERVER|USER", rows)
}

func newCurrentContext() *cobra.Command {
	return &cobra.Command{
		Use:   "current-context",
		Short: "Print the name of the current context",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := loadContexts()
			if err != nil {
				return err
			}
			if file.CurrentContext == "" {
				return vedette.Errorf(vedette.NotFound, "%s has no current context: choose one with `vedette config use-context`", file.Path)
			}
			fmt.Fprintln(cmd.OutOrStdout(), output.Sanitize(file.CurrentContext))
			return nil
		},
	}
}

func newUseContext() *cobra.Command {
	return &cobra.Command{
		Use:   "use-context NAME",
		Short: "Make a context the current one",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := loadContexts()
			if err != nil {
				return err
			}
			if _, err := file.Find(args[0]); err != nil {
				return err
			}
			file.CurrentContext = args[0]
			if err := file.Save(); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Switched to context %q.\n", args[0])
			return nil
		},
	}
}

func newDeleteContext() *cobra.Command {
	return &cobra.Command{
		Use:   "delete-context NAME",
		Short: "Delete a context",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := loadContexts()
			if err != nil {
				return err
			}
			wasCurrent := file.CurrentContext == args[0]
			if err := file.Delete(args[0]); err != nil {
				return err
			}
			if err := file.Save(); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Deleted context %q from %s.\n", args[0], file.Path)
			if wasCurrent {
				fmt.Fprintln(cmd.ErrOrStderr(), "Warning: it was the current context. Choose another with `vedette config use-context`.")
			}
			return nil
		},
	}
}

func newSetContext() *cobra.Command {
	var isCurrent bool
	var tokenCommand []string
	cmd := &cobra.Command{
		Use:   "set-context [NAME | --current]",
		Short: "Create a context, or change the fields that flags name",
		Example: `  vedette config set-context prod --server https://vedette.example.com:7002 --cacert ca.crt
  vedette config set-context --current --user ann
  vedette config set-context prod --token-command gcloud --token-command auth --token-command print-identity-token`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := loadContexts()
			if err != nil {
				return err
			}
			name, err := contextName(file, args, isCurrent)
			if err != nil {
				return err
			}
			changed, _ := file.Find(name) // the error means that it is new
			changed.Name = name
			if err := changeContext(cmd, &changed, tokenCommand); err != nil {
				return err
			}
			verb := "modified"
			if file.Set(changed) {
				verb = "created"
			}
			if err := file.Save(); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Context %q %s.\n", name, verb)
			return nil
		},
	}
	cmd.Flags().BoolVar(&isCurrent, "current", false, "Change the current context.")
	cmd.Flags().StringArrayVar(&tokenCommand, tokenCommandFlag, nil,
		"Program that prints a bearer token, for a proxy in front of the server. Repeat the flag for each argument.")
	return cmd
}

const tokenCommandFlag = "token-command"

// contextName returns the context that `set-context` changes.
func contextName(file *contexts.File, args []string, isCurrent bool) (string, error) {
	switch {
	case isCurrent && len(args) > 0:
		return "", vedette.Errorf(vedette.Invalid, "the name of a context and --current exclude each other")
	case isCurrent && file.CurrentContext == "":
		return "", vedette.Errorf(vedette.NotFound, "%s has no current context: give the name of the context", file.Path)
	case isCurrent:
		return file.CurrentContext, nil
	case len(args) == 0:
		return "", vedette.Errorf(vedette.Invalid, "give the name of the context, or use --current")
	}
	return args[0], nil
}

// changeContext sets the fields that flags name. An empty flag removes the field. The paths of files
// become absolute, because later commands run in other folders.
func changeContext(cmd *cobra.Command, c *contexts.Context, tokenCommand []string) error {
	flags := cmd.Flags()
	if flags.Changed(connect.ContextFlag) {
		return vedette.Errorf(vedette.Invalid, "--context has no effect here: give the name of the context as an argument")
	}
	if flags.Changed(connect.ServerFlag) {
		server, err := flags.GetString(connect.ServerFlag)
		if err != nil {
			return err
		}
		c.Server = server
	}
	if err := connect.ApplyFlags(cmd, c, func(string) string { return "" }); err != nil {
		return err
	}
	if flags.Changed(tokenCommandFlag) {
		c.TokenFile, c.TokenCommand = "", tokenCommand
	}
	workingDir, err := filepath.Abs(".")
	if err != nil {
		return fmt.Errorf("find the current folder: %w", err)
	}
	c.ResolveFiles(workingDir)
	if err := c.Validate(); err != nil {
		return err
	}
	return checkContext(*c)
}

// checkContext reads the files of a context, so that a wrong path is noticed now.
func checkContext(c contexts.Context) error {
	options, err := c.Options()
	if err != nil {
		return err
	}
	return options.Check()
}
