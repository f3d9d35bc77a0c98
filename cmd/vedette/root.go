package main

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/cmd/vedette/change"
	"github.com/vedette-io/vedette/cmd/vedette/comparison"
	"github.com/vedette-io/vedette/cmd/vedette/fleet"
	"github.com/vedette-io/vedette/cmd/vedette/migration"
	"github.com/vedette-io/vedette/cmd/vedette/read"
	"github.com/vedette-io/vedette/cmd/vedette/up"
	"github.com/vedette-io/vedette/internal/cli/completion"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/version"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "vedette",
		Short:         "Show and change objects in many Kubernetes clusters",
		SilenceUsage:  true, // most errors come from clusters, not from the command line
		SilenceErrors: true, // main prints it
		Version:       version.String(),

		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return connect.UseNamespace(cmd) },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "Print the version of the client, without asking a server.") // cobra's has -v, too
	root.SetErr(output.SafeWriter{To: os.Stderr})
	connect.AddFlags(root)
	root.AddCommand(slices.Concat(read.Commands(), change.Commands(), comparison.Commands(), fleet.Commands(), migration.Commands(),
		[]*cobra.Command{up.New()})...)
	addAbsentCommands(root)
	addManPages(root)
	completion.Register(root)
	return root
}

// execute runs the command that the arguments of root name. It adds cobra's command completion, which keeps the output that root has then.
func execute(ctx context.Context, root *cobra.Command) error {
	root.InitDefaultCompletionCmd()
	explainUsageErrors(root)
	return root.ExecuteContext(ctx) //nolint:wrapcheck // it is the error of the command
}
