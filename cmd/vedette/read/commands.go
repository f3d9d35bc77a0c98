// Package read has the commands that read objects: from the server what agents report, and from the clusters what only these know.
package read

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newGet(), newDescribe(), newEvents(), newLogs(), newWait(), newAPIResources(), newAuth()}
}
