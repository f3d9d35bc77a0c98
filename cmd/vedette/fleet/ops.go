package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/internal/timespan"
	"github.com/vedette-io/vedette/server/tables"
)

func newOps() *cobra.Command {
	list := newOpsList("ops")
	list.Short = "Show the history of operations: who did what"
	list.Example = `  vedette ops --account 'prod-*' --status failed --since 2h
  vedette ops --object deployment/web -n shop --user ann
  vedette ops show 01J9ZW3V2M9Z8YB5C4K7Q1T6RD --diff`
	list.AddCommand(newOpsList("list"), newOpsShow())
	return list
}

// opsList lists operations.
type opsList struct {
	query  client.HistoryQuery
	format listFormat
	watch  bool
}

func newOpsList(use string) *cobra.Command {
	var o opsList
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the newest operations",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags, q := cmd.Flags(), &o.query
	flags.StringVar(&q.Account, "account", "", "Account, pattern of accounts (prod-*), or comma-separated accounts.")
	flags.StringVar(&q.State, "status", "", "Status of the operations: "+nearest.OneOf(operationStates)+".")
	flags.StringVar(&q.State, "state", "", "The same as --status: "+nearest.OneOf(operationStates)+".")
	flags.StringVar(&q.Verb, "verb", "", "Verb of the operations: apply, delete, scale, …")
	flags.StringVar(&q.User, "user", "", "User who requested the operations, as USER shows it. To act as a user, set "+connect.UserVariable+" or the context's user.")
	flags.StringVar(&q.Since, "since", "", "Only operations since then: how long ago (30m, 2h, 7d), or a time (2026-03-01T15:04:05Z).")
	flags.StringVar(&q.Until, "until", "", "Only operations before then, as --since.")
	flags.StringVar(&q.Object, "object", "", "Object that the operations are about: KIND/NAME.")
	flags.StringVarP(&q.Namespace, "namespace", "n", "", "Namespace of the objects.")
	flags.StringVar(&q.Agent, "agent", "", "Agent that the operations were sent to.")
	flags.StringVar(&q.Origin, "origin", "", "Origin of the operations, as -o wide shows it.")
	flags.IntVar(&q.Limit, "limit", 30, "Maximum number of operations.")
	flags.StringVar(&q.Cursor, "cursor", "", "Continue after an earlier page, whose command says how.")
	flags.BoolVarP(&o.watch, "watch", "w", false, "Then show operations when they are accepted and when they end, until it is interrupted.")
	o.format.addFlag(cmd)
	return cmd
}

// operationStates are the values of --status.
var operationStates = []string{client.Pending, string(vedette.Done), string(vedette.Failed), string(vedette.Lost)}

// validate rejects values that the server would reject too, because the server does not know the names of flags.
func (o *opsList) validate(cmd *cobra.Command) error {
	if err := o.format.validate(); err != nil {
		return err
	}
	q, stateFlag := o.query, "--status"
	if cmd.Flags().Changed("state") {
		stateFlag = "--state"
	}
	kind, name, _ := strings.Cut(q.Object, "/")
	switch {
	case q.Limit < 1:
		return vedette.Errorf(vedette.Invalid, "invalid --limit %d: must be greater than 0", q.Limit)
	case q.State != "" && !slices.Contains(operationStates, q.State):
		return vedette.Errorf(vedette.Invalid, "invalid %s %q: use %s", stateFlag, q.State, nearest.OneOf(operationStates))
	case q.Object != "" && (kind == "" || name == "" || strings.Contains(name, "/")):
		return vedette.Errorf(vedette.Invalid, "invalid --object %q: use KIND/NAME, for example deployment/web, and -n for its namespace", q.Object)
	case o.watch && (q.Until != "" || q.Cursor != ""):
		return vedette.Errorf(vedette.Invalid, "--watch shows what comes: it cannot be combined with --until or --cursor")
	}
	if err := timespan.CheckForm("--since", q.Since); err != nil {
		return err
	}
	return timespan.CheckForm("--until", q.Until)
}

func (o *opsList) run(cmd *cobra.Command) error {
	if err := o.validate(cmd); err != nil {
		return err
	}
	c, err := connect.Client(cmd)
	if err != nil {
		return err
	}
	if o.watch {
		return newOpsWatch(o, c, cmd).run(cmd.Context())
	}
	found, err := c.Operations(cmd.Context(), o.query)
	if err != nil {
		return err
	}
	if err := o.print(cmd, found); err != nil {
		return err
	}
	if found.Cursor != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "There are older operations: --limit shows more, and --cursor %s the next page.\n", output.Sanitize(found.Cursor))
	}
	o.noteRetention(cmd, found.Retention, time.Now())
	return nil
}

func (o *opsList) print(cmd *cobra.Command, found client.History) error {
	if o.format.value != "json" && o.format.value != "yaml" {
		return printList(cmd, o.format, found.Items, newOperationLayout(time.Now()))
	}
	document := listDocument(found.Items)
	if found.Cursor != "" {
		document["cursor"] = found.Cursor
	}
	return printDocument(cmd, document, o.format.value)
}

// noteRetention says that the history does not reach as far back as the command asks for.
func (o *opsList) noteRetention(cmd *cobra.Command, r *client.Retention, now time.Time) {
	if r == nil || o.query.Since == "" {
		return
	}
	since, err := timespan.ParsePast("--since", o.query.Since, now)
	keep := time.Duration(r.KeepSeconds) * time.Second
	if err != nil || r.Oldest == nil || !since.Before(*r.Oldest) || (since.After(now.Add(-keep)) && r.Bytes < r.MaxBytes*9/10) {
		return
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "The history keeps operations for %s, and at most %d MiB: the oldest is of %s.\n", tables.Age(keep), r.MaxBytes>>20,
		r.Oldest.UTC().Format(time.RFC3339))
}

func newOperationLayout(now time.Time) listLayout[client.HistoryEntry] {
	return listLayout[client.HistoryEntry]{
		header: "ID|ACCOUNT|VERB|TARGET|STATUS|CODE|TOOK|AGE|USER", wideHeader: "CLAIMED|PROVEN|SERVICE|ADDRESS|ORIGIN|AGENT|MESSAGE",
		name: func(p client.HistoryEntry) string { return p.ID },
		row: func(p client.HistoryEntry) []string {
			return []string{p.ID, p.Account, verbText(p), cmp.Or(p.Target, "<none>"), p.State, statusText(p.Status), durationText(p),
				tables.Age(now.Sub(p.Accepted)), userText(p), cmp.Or(p.Claimed, "<none>"), cmp.Or(p.Proven, "<none>"), cmp.Or(p.Service, "<none>"),
				cmp.Or(p.Address, "<none>"), p.Origin, cmp.Or(p.Agent, "<none>"), p.Message}
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

// userText returns who it was, and how that is known. Without a proof, the service is a claim too.
func userText(p client.HistoryEntry) string {
	user := cmp.Or(p.User, "anonymous")
	switch {
	case p.Claimed != "" && p.Claimed != user:
		return user + " (claims " + p.Claimed + ")"
	case p.Claimed != "" && p.Proven == "" && p.Service != "":
		return user + " (claimed, via " + p.Service + ")"
	case p.Claimed != "" && p.Proven == "":
		return user + " (claimed)"
	case p.Claimed != "" && p.Service != "":
		return user + " (via " + p.Service + ")"
	}
	return user
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
		return tables.Age(d)
	}
	return strconv.FormatInt(p.Ended.Sub(p.Accepted).Milliseconds(), 10) + "ms"
}

func newOpsShow() *cobra.Command {
	format, diff := "", false
	cmd := &cobra.Command{
		Use:     "show ID",
		Aliases: []string{"get"},
		Short:   "Show one operation, and what it changed",
		Args:    cobra.ExactArgs(1),
		RunE: withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			p, raw, err := c.HistoryOperation(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			out := output.NewPrinter(cmd.OutOrStdout())
			switch format {
			case "":
				printOperation(out, p, time.Now())
				if diff {
					printChanges(out, p)
				}
			case "json":
				out.Document(textcheck.EscapeJSON(string(raw)))
			case "yaml":
				return printDocument(cmd, raw, format)
			default:
				return output.CheckFormat(format, "json", "yaml")
			}
			return out.Flush()
		}),
	}
	cmd.Flags().StringVarP(&format, "output", "o", "", "Output format: json or yaml.")
	cmd.Flags().BoolVar(&diff, "diff", false, "Show what the operation changed.")
	return cmd
}

func printOperation(out *output.Printer, p client.HistoryEntry, now time.Time) {
	rows := [][2]string{{"ID", p.ID}, {"Account", p.Account}, {"Verb", verbText(p)}, {"Target", cmp.Or(p.Target, "<none>")},
		{"State", out.Status(p.State)},
		{"Status", statusText(p.Status) + prefixSpace(p.Reason)}, {"Message", p.Message}, {"User", userText(p)},
		{"Claimed", p.Claimed}, {"Proven", cmp.Or(p.Proven, "<nothing>")}, {"Service", p.Service}, {"Address", p.Address},
		{"Undoes", p.Undoes}, {"Changed", changedText(p)}, {"Origin", cmp.Or(p.Origin, "<none>")},
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
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format("2006-01-02T15:04:05.000Z"), tables.Age(now.Sub(*t)))
}
