// Package comparison has the commands that show differences: between files and clusters, between clusters, and between the answers of a
// server and of a Clouddriver.
package comparison

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newDiff(), newCompareClouddriver()}
}
