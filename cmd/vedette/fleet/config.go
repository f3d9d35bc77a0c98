package fleet

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/contexts"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
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
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // instead of root's: --namespace is the namespace to write
	}
	cmd.AddCommand(newGetContexts(), newCurrentContext(), newUseContext(), newSetContext(), newDeleteContext())
	return cmd
}

// updateContexts changes the file of contexts, and returns its path.
func updateContexts(change func(*contexts.File) error) (string, error) {
	path, err := contexts.Path()
	if err != nil {
		return "", err
	}
	return path, contexts.Update(path, change)
}

func newGetContexts() *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:   "get-contexts [NAME]",
		Short: "List the contexts",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.CheckFormat(format, "name", "json", "yaml"); err != nil {
				return err
			}
			file, err := contexts.LoadFile()
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
	shown = append([]contexts.Context{}, shown...)
	for i := range shown {
		shown[i].Server = client.WithoutLogin(shown[i].Server)
	}
	if format == "json" || format == "yaml" {
		return printDocument(cmd, map[string]any{"currentContext": current, "contexts": shown}, format)
	}
	var rows [][]string
	out := output.NewPrinter(cmd.OutOrStdout())
	for _, c := range shown {
		if format == "name" {
			out.Line(c.Name)
		}
		rows = append(rows, []string{map[bool]string{true: "*"}[c.Name == current], c.Name, c.Server, c.User, c.Namespace})
	}
	if format == "name" {
		return out.Flush()
	}
	return output.PrintTable(cmd.OutOrStdout(), cmd.ErrOrStderr(), "CURRENT|NAME|SERVER|USER|NAMESPACE", rows)
}

func newCurrentContext() *cobra.Command {
	return &cobra.Command{
		Use:   "current-context",
		Short: "Print the name of the current context",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := contexts.LoadFile()
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
			_, err := updateContexts(func(file *contexts.File) error {
				file.CurrentContext = args[0]
				_, err := file.Find(args[0])
				return err
			})
			if err != nil {
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
			wasCurrent := false
			path, err := updateContexts(func(file *contexts.File) error {
				wasCurrent = file.CurrentContext == args[0]
				return file.Delete(args[0])
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Deleted context %q from %s.\n", args[0], output.Sanitize(path))
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
	var namespace string
	cmd := &cobra.Command{
		Use:   "set-context [NAME | --current]",
		Short: "Create a context, or change the fields that flags name",
		Example: `  vedette config set-context prod --server https://vedette.example.com:7002 --cacert ca.crt
  vedette config set-context --current --user ann
  vedette config set-context --current --namespace shop
  vedette config set-context prod --token-command gcloud --token-command auth --token-command print-identity-token`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change := contextChange{cmd: cmd, args: args, isCurrent: isCurrent, tokenCommand: tokenCommand, namespace: namespace}
			if err := change.check(); err != nil {
				return err
			}
			name, verb := "", ""
			_, err := updateContexts(func(file *contexts.File) error {
				changed, err := change.apply(file)
				name, verb = changed.Name, "modified"
				if err == nil && file.Set(changed) {
					verb = "created"
				}
				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Context %q %s.\n", name, verb)
			return nil
		},
	}
	cmd.Flags().BoolVar(&isCurrent, "current", false, "Change the current context.")
	cmd.Flags().StringArrayVar(&tokenCommand, tokenCommandFlag, nil,
		"Program that prints a bearer token, for a proxy in front of the server. Repeat the flag for each argument.")
	cmd.Flags().StringVar(&namespace, namespaceFlag, "",
		"Namespace of commands without -n and -A. Without one, commands that show objects show all namespaces, and others use default.")
	return cmd
}

const (
	tokenCommandFlag = "token-command"
	namespaceFlag    = "namespace"
)

// contextChange is what the arguments and flags of `set-context` change.
type contextChange struct {
	cmd          *cobra.Command
	args         []string
	isCurrent    bool
	tokenCommand []string
	namespace    string
}

// check reads the files of the context as it will be, so that a wrong path is noticed now. It reads
// them before the file of contexts is locked, because reading may take long.
func (c contextChange) check() error {
	file, err := contexts.LoadFile()
	if err != nil {
		return err
	}
	changed, err := c.apply(file)
	if err != nil {
		return err
	}
	options, err := changed.Options()
	if err != nil {
		return err
	}
	return options.Check()
}

// apply returns the changed context. It does not change the file.
func (c contextChange) apply(file *contexts.File) (contexts.Context, error) {
	name, err := c.name(file)
	if err != nil {
		return contexts.Context{}, err
	}
	changed, _ := file.Find(name) // the error means that it is new
	changed.Name = name
	err = c.changeFields(&changed)
	return changed, err
}

// name returns the name of the context to change.
func (c contextChange) name(file *contexts.File) (string, error) {
	switch {
	case c.isCurrent && len(c.args) > 0:
		return "", vedette.Errorf(vedette.Invalid, "the name of a context and --current exclude each other")
	case c.isCurrent && file.CurrentContext == "":
		return "", vedette.Errorf(vedette.NotFound, "%s has no current context: give the name of the context", file.Path)
	case c.isCurrent:
		return file.CurrentContext, nil
	case len(c.args) == 0:
		return "", vedette.Errorf(vedette.Invalid, "give the name of the context, or use --current")
	}
	return c.args[0], nil
}

// changeFields sets the fields that flags name. An empty flag removes the field. The paths of files
// become absolute, because later commands run in other directories.
func (c contextChange) changeFields(changed *contexts.Context) error {
	flags := c.cmd.Flags()
	if flags.Changed(connect.ContextFlag) {
		return vedette.Errorf(vedette.Invalid, "--context has no effect here: give the name of the context as an argument")
	}
	if flags.Changed(connect.ServerFlag) {
		server, err := flags.GetString(connect.ServerFlag)
		if err != nil {
			return err
		}
		changed.Server = server
	}
	if err := connect.ApplyFlags(c.cmd, changed, func(string) string { return "" }); err != nil {
		return err
	}
	if flags.Changed(namespaceFlag) {
		changed.Namespace = c.namespace
	}
	if flags.Changed(tokenCommandFlag) {
		changed.TokenFile, changed.TokenCommand = "", c.tokenCommand
	}
	workingDir, err := filepath.Abs(".")
	if err != nil {
		return fmt.Errorf("find the current directory: %w", err)
	}
	changed.ResolveFiles(workingDir)
	return changed.Validate()
}
