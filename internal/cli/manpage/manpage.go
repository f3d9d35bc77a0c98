// Package manpage writes manual pages of commands. It does not use cobra's package doc, which converts texts from Markdown, with
// a library of its own, although ours are not Markdown.
package manpage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vedette-io/vedette/internal/roff"
)

// A Page is one manual page.
type Page struct {
	Name string // of the file, such as vedette-get.1
	Text string
}

// Pages returns a page for the command and for each one below it. The date is shown at the end of each page; it is given, so that the
// pages of a release are the same each time.
func Pages(root *cobra.Command, date string) []Page {
	pages := []Page{{pageName(root) + ".1", page(root, date)}}
	for _, below := range visible(root) {
		pages = append(pages, Pages(below, date)...)
	}
	return pages
}

// visible returns the commands below that help shows, except for the help itself.
func visible(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool {
		return !c.IsAvailableCommand() || c.Name() == "help"
	})
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func page(cmd *cobra.Command, date string) string {
	var b strings.Builder
	name := pageName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 %s Vedette \"Vedette's commands\"\n", roff.Quote(strings.ToUpper(name)), roff.Quote(date))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff.Escape(name), roff.Escape(cmd.Short))
	b.WriteString(".SH SYNOPSIS\n.nf\n")
	if cmd.Runnable() {
		b.WriteString(roff.Lines(cmd.UseLine()))
	}
	if len(visible(cmd)) > 0 {
		b.WriteString(roff.Lines(cmd.CommandPath() + " COMMAND"))
	}
	b.WriteString(".fi\n")
	if cmd.Long != "" {
		section(&b, "DESCRIPTION", cmd.Long)
	}
	if below := visible(cmd); len(below) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range below {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff.Escape(c.Name()), roff.Escape(c.Short))
		}
	}
	options(&b, "OPTIONS", cmd.NonInheritedFlags())
	options(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		section(&b, "EXAMPLES", cmd.Example)
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, pageName(cmd.Parent()))
	}
	for _, c := range visible(cmd) {
		also = append(also, pageName(c))
	}
	if len(also) > 0 {
		b.WriteString(".SH \"SEE ALSO\"\n")
		for i, other := range also {
			comma := map[bool]string{true: " ,"}[i < len(also)-1]
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roff.Escape(other), comma)
		}
	}
	return b.String()
}

// section writes a text whose lines and indentation count.
func section(b *strings.Builder, title, text string) {
	fmt.Fprintf(b, ".SH %s\n.nf\n%s.fi\n", title, roff.Lines(strings.Trim(text, "\n")))
}

func options(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", roff.Quote(title))
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n.BI %s %s\n%s\n", roff.Quote(name), roff.Quote(" "+value), roff.Lines(usage))
	})
}
