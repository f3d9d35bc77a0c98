package kubectldoc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vedette-io/vedette/internal/cli/kubectlmap"
)

// Document is a comparison of the two programs.
type Document struct {
	Text string
	// Problems are flags without an explanation, and explanations without a flag.
	Problems []string
	// Same, Different and Absent count commands, and FlagsSame and so on the flags of commands that both have.
	Same, Different, Absent                int
	FlagsSame, FlagsDifferent, FlagsAbsent int
}

// Compare compares vedette's commands with those of kubectl.
func Compare(root *cobra.Command, kubectl Tree) Document {
	c := comparison{root: root, used: map[string]bool{}}
	entries := kubectlmap.Commands()
	for _, entry := range entries {
		index := slices.IndexFunc(kubectl.Commands, func(k Command) bool { return k.Path == entry.Path })
		switch {
		case index >= 0:
			c.addCommand(entry, kubectl.Commands[index])
		case entry.Status == kubectlmap.Absent: // hidden in kubectl's help
			c.addCommand(entry, Command{Path: entry.Path})
		default:
			c.problemf("kubectl has no command %q", entry.Path)
		}
	}
	for _, k := range kubectl.Commands {
		if !isCovered(entries, k.Path) {
			c.problemf("the command %q of kubectl is not explained", k.Path)
		}
	}
	c.addOthers(entries)
	c.addCommonFlags()
	c.addGlobalFlags(kubectl.Global)
	for key := range notes {
		if !c.used[key] && !isOfAll(key) {
			c.problemf("the explanation of %q is not used", key)
		}
	}
	slices.Sort(c.document.Problems)
	c.document.Text = c.header(kubectl.Version) + c.body.String()
	return c.document
}

// isCovered reports whether a command, or one above it, is explained.
func isCovered(entries []kubectlmap.Command, path string) bool {
	for {
		if slices.ContainsFunc(entries, func(e kubectlmap.Command) bool { return e.Path == path }) {
			return true
		}
		parent := strings.LastIndexByte(path, ' ')
		if parent < 0 {
			return false
		}
		path = path[:parent]
	}
}

type comparison struct {
	root     *cobra.Command
	document Document
	body     strings.Builder
	used     map[string]bool // keys of notes
}

func (c *comparison) problemf(format string, args ...any) {
	c.document.Problems = append(c.document.Problems, fmt.Sprintf(format, args...))
}

// find returns the command with a path, nil if vedette does not have it.
func find(root *cobra.Command, path string) *cobra.Command {
	cmd := root
	for word := range strings.FieldsSeq(path) {
		i := slices.IndexFunc(cmd.Commands(), func(sub *cobra.Command) bool { return sub.Name() == word && !sub.Hidden })
		if i < 0 {
			return nil
		}
		cmd = cmd.Commands()[i]
	}
	return cmd
}

func (c *comparison) addCommand(entry kubectlmap.Command, kubectl Command) {
	fmt.Fprintf(&c.body, "\n### %s\n\n", entry.Path)
	ours := find(c.root, entry.Path)
	switch {
	case entry.Status == kubectlmap.Absent && ours != nil:
		c.problemf("vedette has the command %q, which is called absent", entry.Path)
		return
	case entry.Status == kubectlmap.Absent:
		c.document.Absent++
		fmt.Fprintf(&c.body, "Not available: %s.\n", entry.Instead)
		c.markNotes(entry.Path)
		return
	case ours == nil:
		c.problemf("vedette has no command %q, which is called %s", entry.Path, entry.Status)
		return
	case entry.Status == kubectlmap.Same:
		c.document.Same++
		c.body.WriteString("As in kubectl, but over several accounts.\n")
	default:
		c.document.Different++
		fmt.Fprintf(&c.body, "Different: %s.\n", entry.Instead)
	}
	c.addFlags(entry.Path, kubectl, ours)
}

// markNotes marks the explanations of a command as used.
func (c *comparison) markNotes(path string) {
	for key := range notes {
		if strings.HasPrefix(key, path+" --") {
			c.used[key] = true
		}
	}
}

func (c *comparison) addFlags(path string, kubectl Command, ours *cobra.Command) {
	var same, rows, added, common []string
	for _, flag := range kubectl.Flags {
		own := ours.Flags().Lookup(flag.Name)
		note, key := noteOf(path, flag.Name)
		switch {
		case own == nil && note == "":
			c.problemf("%s --%s: not available, and not explained", path, flag.Name)
		case own == nil:
			c.document.FlagsAbsent++
			c.used[key] = true
			if isOfAll(key) {
				common = append(common, flagText(flag.Short, flag.Name))
				continue
			}
			rows = append(rows, fmt.Sprintf("| `--%s` | not available | %s |", flag.Name, note))
		case own.Shorthand != flag.Short && note == "":
			c.problemf("%s --%s: has the shorthand %q, and -%s with kubectl", path, flag.Name, own.Shorthand, flag.Short)
		case note != "" && !isOfAll(key):
			c.document.FlagsDifferent++
			rows = append(rows, fmt.Sprintf("| `--%s` | different | %s |", flag.Name, note))
			c.used[key] = true
		default:
			c.document.FlagsSame++
			same = append(same, flagText(flag.Short, flag.Name))
		}
	}
	ours.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		isKubectls := slices.ContainsFunc(kubectl.Flags, func(k Flag) bool { return k.Name == f.Name })
		if !f.Hidden && !isKubectls && f.Name != "namespace" && f.Name != "help" {
			added = append(added, flagText(f.Shorthand, f.Name))
		}
	})
	if len(same) > 0 {
		fmt.Fprintf(&c.body, "\nFlags as in kubectl: %s.\n", strings.Join(same, ", "))
	}
	if len(added) > 0 {
		fmt.Fprintf(&c.body, "\nFlags that kubectl does not have: %s.\n", strings.Join(added, ", "))
	}
	if len(common) > 0 {
		fmt.Fprintf(&c.body, "\nNot available ([what to use](#flags-that-many-commands-lack)): %s.\n", strings.Join(common, ", "))
	}
	if len(rows) > 0 {
		fmt.Fprintf(&c.body, "\n%s%s\n", flagTableHeader, strings.Join(rows, "\n"))
	}
}

const flagTableHeader = "| flag of kubectl | in vedette | difference, or what to use instead |\n|---|---|---|\n"

func flagText(short, name string) string {
	if short == "" {
		return "`--" + name + "`"
	}
	return "`-" + short + "`, `--" + name + "`"
}

// addOthers lists the commands that kubectl does not have.
func (c *comparison) addOthers(entries []kubectlmap.Command) {
	var rows []string
	for _, cmd := range c.root.Commands() {
		isKubectls := slices.ContainsFunc(entries, func(e kubectlmap.Command) bool { return e.Path == cmd.Name() })
		if !isKubectls && !cmd.Hidden && cmd.Name() != "help" {
			rows = append(rows, fmt.Sprintf("| `%s` | %s |", cmd.Name(), cmd.Short))
		}
	}
	fmt.Fprintf(&c.body, "\n## Commands that kubectl does not have\n\n| command | what it does |\n|---|---|\n%s\n", strings.Join(rows, "\n"))
}

// addCommonFlags lists the flags that many commands lack, with what to use instead.
func (c *comparison) addCommonFlags() {
	c.body.WriteString("\n## Flags that many commands lack\n\n| flag of kubectl | what to use instead |\n|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		if isOfAll(key) && c.used[key] {
			fmt.Fprintf(&c.body, "| `%s` | %s |\n", strings.TrimPrefix(key, "* "), notes[key])
		}
	}
}

// addGlobalFlags lists the flags that all commands of kubectl have.
func (c *comparison) addGlobalFlags(flags []Flag) {
	c.body.WriteString("\n## Flags of all commands of kubectl\n\n" + flagTableHeader)
	for _, flag := range flags {
		note, key := noteOf("", flag.Name)
		status := "not available"
		if c.root.PersistentFlags().Lookup(flag.Name) != nil || flag.Name == "namespace" {
			status = "different"
		}
		if note == "" {
			c.problemf("--%s: not explained", flag.Name)
		}
		c.used[key] = true
		fmt.Fprintf(&c.body, "| `--%s` | %s | %s |\n", flag.Name, status, note)
	}
}

func (c *comparison) header(version string) string {
	d := c.document
	return fmt.Sprintf(`# kubectl's commands

<!-- Generated by go test ./cmd/vedette -run TestKubectlDocument -update.
     Change internal/cli/kubectldoc and internal/cli/kubectlmap instead. -->

This page lists each command and each flag of kubectl %s, and says what vedette has in its place. Of kubectl's commands, %d are the
same, %d differ, and %d are not available. Of the flags of the commands that both have, %d are the same, %d differ, and %d
are not available.

Some differences hold for all commands:

- A command works on one or more accounts, which are clusters. `+"`--account`"+` selects them.
- Objects are named KIND/NAME, KIND NAME, or ACCOUNT/KIND/NAMESPACE/NAME, which is what `+"`-o name`"+` prints.
- `+"`-f`"+` takes files and directories, and no URLs: `+"`curl -sSL URL | vedette COMMAND -f -`"+`.
- kubectl's [flags of all commands](#flags-of-all-commands-of-kubectl) are about its connection to a cluster. Those of vedette are about
  its connection to the server.

## Commands of kubectl
`, version, d.Same, d.Different, d.Absent, d.FlagsSame, d.FlagsDifferent, d.FlagsAbsent)
}
