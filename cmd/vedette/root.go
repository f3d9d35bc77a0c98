package main

import (
	"os"

	"github.com/spf13/cobra"

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
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "Print the version of the client, without asking a server.") // cobra's has -v, too
	root.SetErr(output.SafeWriter{To: os.Stderr})
	connect.AddFlags(root)
	root.AddCommand(newGet(), newApply(), newDelete(), newScale(), newRollout(), newLogs(), newOps(),
		newAccounts(), newAgents(), newFeeds(), newCompareClouddriver(), newConfig(), newUp(), newVersion())
	explainUsageErrors(root)
	return root
}
