package fleet

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

const acceptLong = `Give the name of an account to another cluster.

An account belongs to the first cluster that registers its name. An agent of another
cluster is refused; "vedette accounts" and "vedette agents" show both clusters. Use this
command if the second cluster is the right one, for example after a cluster was created
anew.

The objects of the former cluster are removed, and its agents are refused from now on. The
agents of the new one register within seconds.`

func newAcceptAccount() *cobra.Command {
	agent := ""
	cmd := &cobra.Command{
		Use:   "accept NAME",
		Short: "Give the name of an account to the cluster of a refused agent",
		Long:  acceptLong,
		Args:  cobra.ExactArgs(1),
		RunE: withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			decision, err := c.AcceptAccount(cmd.Context(), args[0], agent)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "account %q belongs to %s now\n", args[0], clusterName(decision.Cluster))
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&agent, "agent", "", "Refused agent whose cluster gets the name. Optional if only one cluster wants it.")
	return cmd
}

func newReleaseAccount() *cobra.Command {
	return &cobra.Command{
		Use:   "release NAME",
		Short: "Remove an account without an agent, before its grace period ends",
		Args:  cobra.ExactArgs(1),
		RunE: withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if err := c.ReleaseAccount(cmd.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "account %q released\n", args[0])
			return nil
		}),
	}
}

func newRemoveAccount() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an account and its data",
		Long: `Remove an account and its data from the server. Nothing changes in the cluster.

Agents that still have the account in their configuration register it again, and report
everything again.`,
		Args: cobra.ExactArgs(1),
		RunE: withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			decision, err := c.RemoveAccount(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "account %q removed\n", args[0])
			if len(decision.Agents) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "Warning: %s will register it again, unless it leaves their configuration: %s\n",
					output.Count(len(decision.Agents), "agent"), output.Sanitize(strings.Join(decision.Agents, ", ")))
			}
			return nil
		}),
	}
}

// clusterName returns a cluster as messages of the server name it.
func clusterName(c client.Cluster) string {
	if c.UID == "" {
		return output.Sanitize("the cluster at " + c.Host)
	}
	return output.Sanitize("the cluster with uid " + c.UID + " at " + c.Host)
}
