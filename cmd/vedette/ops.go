package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/views"
)

func newOps() *cobra.Command {
	list := newOpsList("ops")
	list.Short = "Show what was done: the history of operations"
	list.Example = `  vedette ops --account 'prod-*' --state failed
  vedette ops get 01J9ZW3V2M9Z8YB5C4K7Q1T6RD`
	list.AddCommand(newOpsList("list"), newOpsGet())
	return list
}

func newOpsList(use string) *cobra.Command {
	h := client.HistoryQuery{}
	wide := ""
	cmd := &cobra.Command{
		Use:   use,
		Short: "Show the newest operations",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case h.Limit < 1:
				return vedette.Errorf(vedette.Invalid, "the limit is %d and must be above 0", h.Limit)
			case wide != "" && wide != "wide":
				return vedette.Errorf(vedette.Invalid, "there is no output format %q: write wide after -o", wide)
			}
			c, err := connect(cmd)
			if err != nil {
				return err
			}
			past, err := c.Operations(cmd.Context(), h)
			if err != nil {
				return err
			}
			return showOperations(cmd, past, wide != "", time.Now())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&h.Account, "account", "", "only accounts of this name or pattern (prod-*), or several joined by commas")
	flags.StringVar(&h.State, "state", "", "only those that are pending, done, failed or lost")
	flags.StringVar(&h.Verb, "verb", "", "only those of this verb: apply, delete, scale, …")
	flags.StringVar(&h.Agent, "agent", "", "only those that this agent was sent")
	flags.StringVar(&h.Origin, "origin", "", "only those of this origin, as -o wide shows it")
	flags.IntVar(&h.Limit, "limit", 30, "how many")
	flags.StringVarP(&wide, "output", "o", "", "wide shows who did it, and what the cluster said")
	return cmd
}

func showOperations(cmd *cobra.Command, past []client.HistoryEntry, wide bool, now time.Time) error {
	heads := "ID|ACCOUNT|VERB|TARGET|STATUS|CODE|TOOK|AGE"
	if wide {
		heads += "|USER|ORIGIN|AGENT|MESSAGE"
	}
	var rows [][]string
	for _, p := range past {
		row := []string{p.ID, p.Account, verbOf(p), or(p.Target, "<none>"), p.State, code(p.Status), took(p), views.Age(now.Sub(p.Accepted))}
		if wide {
			row = append(row, or(p.User, "<none>"), p.Origin, or(p.Agent, "<none>"), p.Message)
		}
		rows = append(rows, row)
	}
	return show(cmd, heads, rows)
}

// verbOf is what was done, or only judged.
func verbOf(p client.HistoryEntry) string {
	if p.DryRun {
		return p.Verb + " (dry run)"
	}
	return p.Verb
}

func code(status int) string {
	if status == 0 {
		return "<none>"
	}
	return strconv.Itoa(status)
}

func took(p client.HistoryEntry) string {
	if p.Ended == nil {
		return "<none>"
	}
	if d := p.Ended.Sub(p.Accepted); d >= time.Second {
		return views.Age(d)
	}
	return strconv.FormatInt(p.Ended.Sub(p.Accepted).Milliseconds(), 10) + "ms"
}

func newOpsGet() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show one operation",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect(cmd)
			if err != nil {
				return err
			}
			p, raw, err := c.HistoryOperation(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			out := newPrinter(cmd.OutOrStdout())
			switch output {
			case "":
				describe(out, p, time.Now())
			case "json":
				_, _ = out.w.Write(raw) // flush tells
				out.line("")
			case "yaml":
				text, err := yaml.JSONToYAML(raw)
				if err != nil {
					return fmt.Errorf("write YAML: %w", err)
				}
				_, _ = out.w.Write(text)
			default:
				return vedette.Errorf(vedette.Invalid, "there is no output format %q: write json or yaml after -o", output)
			}
			return out.flush()
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	return cmd
}

func describe(out *printer, p client.HistoryEntry, now time.Time) {
	state := p.State
	if out.colour {
		state = paint(state)
	}
	rows := [][2]string{{"ID", p.ID}, {"Account", p.Account}, {"Verb", verbOf(p)}, {"Target", or(p.Target, "<none>")}, {"State", state},
		{"Status", code(p.Status) + space(p.Reason)}, {"Message", p.Message}, {"User", or(p.User, "<none>")}, {"Origin", or(p.Origin, "<none>")},
		{"Server", p.Server}, {"Agent", or(p.Agent, "<none>: it was not sent")}, {"Accepted", at(&p.Accepted, now)}, {"Sent", at(p.Sent, now)},
		{"Ended", at(p.Ended, now)}, {"Took", took(p)}}
	for _, row := range rows {
		value := row[1]
		if row[0] != "State" {
			value = clean(value)
		}
		if value != "" {
			out.line(fmt.Sprintf("%-10s %s", row[0]+":", value))
		}
	}
}

func space(text string) string {
	if text == "" {
		return ""
	}
	return " " + text
}

func at(t *time.Time, now time.Time) string {
	if t == nil {
		return "<none>"
	}
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format("2006-01-02T15:04:05.000Z"), views.Age(now.Sub(*t)))
}
