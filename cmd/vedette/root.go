package main

import (
	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/internal/cli/connect"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "vedette",
		Short:         "See and steer many Kubernetes clusters as one",
		SilenceUsage:  true, // an error about a cluster is not one about the command line
		SilenceErrors: true, // main prints it
	}
	connect.AddFlags(root)
	root.AddCommand(newGet(), newApply(), newDelete(), newScale(), newRollout(), newLogs(), newOps(),
		newAccounts(), newAgents(), newFeeds(), newUp(), newVersion())
	return root
}
