// Package connect creates the REST client of the server that a command's flags name.
package connect

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/internal/client"
)

// AddFlags adds the flags for the address of the server and for the user.
func AddFlags(root *cobra.Command) {
	server := os.Getenv("VEDETTE_SERVER")
	if server == "" {
		server = client.DefaultServer
	}
	root.PersistentFlags().String("server", server, "Address of the server. Defaults to the environment variable VEDETTE_SERVER.")
	root.PersistentFlags().String("user", os.Getenv("VEDETTE_USER"),
		"Spinnaker user to act as. Defaults to the environment variable VEDETTE_USER.")
	root.PersistentFlags().String("user-accounts", os.Getenv("VEDETTE_USER_ACCOUNTS"),
		"Comma-separated restricted accounts that the user may change; used by servers without Fiat. Defaults to the environment variable VEDETTE_USER_ACCOUNTS.")
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
	c.User, err = cmd.Flags().GetString("user")
	if err != nil {
		return nil, err
	}
	c.UserAccounts, err = cmd.Flags().GetString("user-accounts")
	return c, err
}
