package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/kubectlmap"
)

// addAbsentCommands adds a hidden command for each command of kubectl that vedette lacks. It answers what to use
// instead, whatever its arguments.
func addAbsentCommands(root *cobra.Command) {
	for _, c := range kubectlmap.Commands() {
		words := strings.Fields(c.Path)
		parent, name := root, words[len(words)-1]
		if len(words) > 1 {
			parent = subcommand(root, words[0])
		}
		if c.Status != kubectlmap.Absent || parent == nil || subcommand(parent, name) != nil {
			continue
		}
		parent.AddCommand(&cobra.Command{
			Use: name, Hidden: true, DisableFlagParsing: true,
			Short: "Not available: " + c.Instead,
			RunE: func(*cobra.Command, []string) error {
				return vedette.Errorf(vedette.Invalid, "vedette has no command %q: %s", c.Path, c.Instead)
			},
		})
	}
}

// subcommand returns the command with a name or an alias, nil if there is none.
func subcommand(parent *cobra.Command, name string) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}
