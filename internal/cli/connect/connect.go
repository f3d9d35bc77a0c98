// Package connect makes the client of the server that a command's flags name.
package connect

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/internal/client"
)

// AddFlags adds the flags that say which server a command asks, and for which user.
func AddFlags(root *cobra.Command) {
	server := os.Getenv("VEDETTE_SERVER")
	if server == "" {
		server = client.DefaultServer
	}
	root.PersistentFlags().String("server", server, "address of the server; the environment's VEDETTE_SERVER if not given")
	root.PersistentFlags().String("user", os.Getenv("VEDETTE_USER"), "on whose behalf, as Spinnaker knows them; the environment's VEDETTE_USER if not given")
	root.PersistentFlags().String("user-accounts", os.Getenv("VEDETTE_USER_ACCOUNTS"),
		"restricted accounts that this user may change, joined by commas, where the server has no Fiat to ask; the environment's VEDETTE_USER_ACCOUNTS if not given")
}

// Client returns a client of the server that a command's flags name.
func Client(cmd *cobra.Command) (*client.Client, error) {
	server, err := cmd.Flags().GetString("server")
	if err != nil {
		return nil, err
	}
	c, err := client.New(server)
	if err != nil {
		return nil, err
	}
	if c.User, err = cmd.Flags().GetString("user"); err != nil {
		return nil, err
	}
	c.UserAccounts, err = cmd.Flags().GetString("user-accounts")
	return c, err
}
