package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/views"
)

func newOps() *cobra.Command {
	list := newOpsList("ops")
	list.Short = "Show the history of operations"
	list.Example = `  vedette ops --account 'prod-*' --state failed
  vedette ops get 01J9ZW3V2M9Z8YB5C4K7Q1T6RD`
	list.AddCommand(newOpsList("list"), newOpsGet())
	return list
}

func newOpsList(use string) *cobra.Command {
	query := client.HistoryQuery{}
	var format listFormat
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the newest operations",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if query.Limit < 1 {
				return vedette.Errorf(vedette.Invalid, "invalid --limit %d: must be greater than 0", query.Limit)
			}
			if err := format.validate(); err != nil {
				return err
			}
			c, err := connect.Client(cmd)
			if err != nil {
				return err
			}
			operations, more, err := c.Operations(cmd.Context(), query)
			if err != nil {
				return err
			}
			if err := printList(cmd, format, operations, newOperationLayout(time.Now())); err != nil {
				return err
			}
			if more {
				fmt.Fprintf(cmd.ErrOrStderr(), "There are older operations than the newest %d: use --limit to see them.\n", len(operations))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&query.Account, "account", "", "Account, pattern of accounts (prod-*), or comma-separated accounts.")
	flags.StringVar(&query.State, "state", "", "State of the operations: pending, done, failed or lost.")
	flags.StringVar(&query.Verb, "verb", "", "Verb of the operations: apply, delete, scale, …")
	flags.StringVar(&query.Agent, "agent", "", "Agent that the operations were sent to.")
	flags.StringVar(&query.Origin, "origin", "", "Origin of the operations, as -o wide shows it.")
	flags.IntVar(&query.Limit, "limit", 30, "Maximum number of operations.")
	format.addFlag(cmd)
	return cmd
}

func newOperationLayout(now time.Time) listLayout[client.HistoryEntry] {
	return listLayout[client.HistoryEntry]{
		header: "ID|ACCOUNT|VERB|TARGET|STATUS|CODE|TOOK|AGE", wideHeader: "USER|ORIGIN|AGENT|MESSAGE",
		name: func(p client.HistoryEntry) string { return p.ID },
		row: func(p client.HistoryEntry) []string {
			return []string{p.ID, p.Account, verbText(p), cmp.Or(p.Target, "<none>"), p.State, statusText(p.Status), durationText(p),
				views.Age(now.Sub(p.Accepted)), cmp.Or(p.User, "<none>"), p.Origin, cmp.Or(p.Agent, "<none>"), p.Message}
		},
	}
}

// verbText returns the verb, and whether it was a dry run.
func verbText(p client.HistoryEntry) string {
	if p.DryRun {
		return p.Verb + " (dry run)"
	}
	return p.Verb
}

func statusText(status int) string {
	if status == 0 {
		return "<none>"
	}
	return strconv.Itoa(status)
}

func durationText(p client.HistoryEntry) string {
	if p.Ended == nil {
		return "<none>"
	}
	if d := p.Ended.Sub(p.Accepted); d >= time.Second {
		return views.Age(d)
	}
	return strconv.FormatInt(p.Ended.Sub(p.Accepted).Milliseconds(), 10) + "ms"
}

func newOpsGet() *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show one operation",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect.Client(cmd)
			if err != nil {
				return err
			}
			p, raw, err := c.HistoryOperation(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			out := output.NewPrinter(cmd.OutOrStdout())
			switch format {
			case "":
				printOperation(out, p, time.Now())
			case "json":
				out.Document(textcheck.EscapeJSON(string(raw)))
			case "yaml":
				text, err := yaml.JSONToYAML(raw)
				if err != nil {
					return fmt.Errorf("write YAML: %w", err)
				}
				out.Document(strings.TrimSuffix(string(text), "\n"))
			default:
				return vedette.Errorf(vedette.Invalid, "invalid output format %q: use -o json or yaml", format)
			}
			return out.Flush()
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "", "Output format: json or yaml.")
	return cmd
}

func printOperation(out *output.Printer, p client.HistoryEntry, now time.Time) {
	rows := [][2]string{{"ID", p.ID}, {"Account", p.Account}, {"Verb", verbText(p)}, {"Target", cmp.Or(p.Target, "<none>")},
		{"State", out.Status(p.State)},
		{"Status", statusText(p.Status) + prefixSpace(p.Reason)}, {"Message", p.Message}, {"User", cmp.Or(p.User, "<none>")},
		{"Origin", cmp.Or(p.Origin, "<none>")},
		{"Server", p.Server}, {"Agent", cmp.Or(p.Agent, "<none> (not sent)")}, {"Accepted", timeText(&p.Accepted, now)},
		{"Sent", timeText(p.Sent, now)},
		{"Ended", timeText(p.Ended, now)}, {"Took", durationText(p)}}
	for _, row := range rows {
		value := row[1]
		if row[0] != "State" {
			value = output.Sanitize(value)
		}
		if value != "" {
			out.Document(fmt.Sprintf("%-10s %s", row[0]+":", value))
		}
	}
}

func prefixSpace(text string) string {
	if text == "" {
		return ""
	}
	return " " + text
}

func timeText(t *time.Time, now time.Time) string {
	if t == nil {
		return "<none>"
	}
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format("2006-01-02T15:04:05.000Z"), views.Age(now.Sub(*t)))
}
