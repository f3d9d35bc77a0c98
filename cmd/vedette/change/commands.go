// Package change has the commands that change objects in clusters.
package change

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newApply(), newCreate(), newReplace(), newDelete(), newScale(), newRollout(), newPatch(), newLabel(),
		newAnnotate(), newSet()}
}
