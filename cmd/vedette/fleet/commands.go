// Package fleet has the commands about servers: which there are, and what they know of accounts, agents, feeds and operations.
package fleet

import (
	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/client"
)

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newAccounts(), newAgents(), newFeeds(), newOps(), newConfig(), newVersion()}
}

// withClient returns what runs a command with a client of the server that its flags name.
func withClient(run func(cmd *cobra.Command, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := connect.Client(cmd)
		if err != nil {
			return err
		}
		return run(cmd, c, args)
	}
}
