package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/output"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "vedette",
		Short:         "Show and change objects in many Kubernetes clusters",
		SilenceUsage:  true, // most errors come from clusters, not from the command line
		SilenceErrors: true, // main prints it
	}
	root.SetErr(output.SafeWriter{To: os.Stderr})
	connect.AddFlags(root)
	root.AddCommand(newGet(), newApply(), newDelete(), newScale(), newRollout(), newLogs(), newOps(),
		newAccounts(), newAgents(), newFeeds(), newCompareClouddriver(), newConfig(), newUp(), newVersion())
	return root
}
