package read

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/exit"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

func newAuth() *cobra.Command {
	cmd := &cobra.Command{Use: "auth", Short: "Show what is allowed in one or more clusters"}
	cmd.AddCommand(newCanI())
	return cmd
}

const canILong = `Show whether an action is allowed in one or more clusters.

Two decide about that, and both must allow it:

CLUSTER  the API server of the account decides what the credentials of its agent allow. It is asked by a
         SelfSubjectAccessReview.
SERVER   the server decides what you may do with the account, by its permissions: READ for get, list and watch,
         WRITE for everything else.

The exit code is 0 if both allow it in all accounts. --list shows what the cluster allows the agent.`

type canIOptions struct {
	account, namespace, subresource string
	allNamespaces, list, quiet      bool
	noHeaders                       bool
}

func newCanI() *cobra.Command {
	var o canIOptions
	cmd := &cobra.Command{
		Use:   "can-i VERB TYPE | VERB TYPE/NAME | VERB /PATH | --list",
		Short: "Show whether an action is allowed",
		Long:  canILong,
		Example: `  vedette auth can-i create deployments -n shop --account 'prod-*'
  vedette auth can-i get pods --subresource log -A
  vedette auth can-i --list -n shop --account dev`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := o.args(args)
			if err != nil {
				return err
			}
			fan, err := fanout.New(cmd, o.account)
			if err != nil {
				return err
			}
			if o.list {
				return fan.ForEachAccount(cmd.Context(), func(ctx context.Context, run *fanout.Run) error { return o.printRules(ctx, run, a) })
			}
			return o.ask(cmd, fan, a)
		},
	}
	target.AddAccountFlag(cmd, &o.account)
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "Namespace to ask about. Defaults to default.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Ask about all namespaces.")
	flags.StringVar(&o.subresource, "subresource", "", "Subresource, for example log or scale.")
	flags.BoolVar(&o.list, "list", false, "Show everything that the cluster allows the agent in the namespace.")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "Print nothing. The exit code is the answer.")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Do not print the header of the table.")
	return cmd
}

func (o canIOptions) args(args []string) (vedette.AccessArgs, error) {
	a := vedette.AccessArgs{List: o.list, Subresource: o.subresource, AllNamespaces: o.allNamespaces}
	a.Namespace = o.namespace
	switch {
	case o.allNamespaces && o.namespace != "":
		return a, vedette.Errorf(vedette.Invalid, "-n and -A exclude each other")
	case o.list && (len(args) > 0 || o.quiet || o.allNamespaces || o.subresource != ""):
		return a, vedette.Errorf(vedette.Invalid, "--list takes no arguments, and neither --quiet, --all-namespaces nor --subresource")
	case o.list:
		return a, nil
	case len(args) != 2:
		return a, vedette.Errorf(vedette.Invalid, "you must specify two arguments: verb resource or verb resource/resourceName")
	}
	a.Action = args[0]
	if strings.HasPrefix(args[1], "/") {
		a.Path, a.Namespace = args[1], ""
		if o.subresource != "" || o.allNamespaces || o.namespace != "" {
			return a, vedette.Errorf(vedette.Invalid, "the path %s cannot be combined with --subresource, -n or -A", a.Path)
		}
		return a, nil
	}
	a.Kind, a.Name, _ = strings.Cut(args[1], "/")
	if a.Action == "" || a.Kind == "" {
		return a, vedette.Errorf(vedette.Invalid, "the verb and the resource must not be empty")
	}
	return a, nil
}

// neededAccess returns the permission that the server asks for.
func neededAccess(action string) string {
	if slices.Contains([]string{"get", "list", "watch"}, action) {
		return "READ"
	}
	return "WRITE"
}

// answer is what is known about one account.
type answer struct{ cluster, server, reason string }

func (a answer) isYes() bool { return a.cluster == "yes" && a.server == "yes" }

func (o canIOptions) ask(cmd *cobra.Command, fan *fanout.FanOut, args vedette.AccessArgs) error {
	accounts, err := fan.Client.AccountsWithAccess(cmd.Context(), o.account)
	if err != nil {
		return err
	}
	access := map[string][]string{}
	for _, account := range accounts {
		access[account.Name] = account.Access
	}
	answers, err := fanout.Collect(cmd.Context(), fan, func(ctx context.Context, run *fanout.Run) (answer, error) {
		return askAccount(ctx, run, args, access[run.Account])
	})
	if !o.quiet {
		var rows [][]string
		for _, account := range fan.Accounts {
			if a := answers[account]; a.server != "" {
				rows = append(rows, []string{account, a.cluster, a.server, a.reason})
			}
		}
		if err := o.printRows(cmd, "ACCOUNT|CLUSTER|SERVER|REASON", rows); err != nil {
			return err
		}
	}
	refused := 0
	for _, a := range answers {
		if !a.isYes() {
			refused++
		}
	}
	if err != nil || refused == 0 {
		return err
	}
	return exit.Error{Code: 1}
}

// askAccount asks about one account. If the server does not even let the caller read it, the cluster is not asked.
func askAccount(ctx context.Context, run *fanout.Run, args vedette.AccessArgs, access []string) (answer, error) {
	needed := neededAccess(args.Action)
	a := answer{cluster: "unknown", server: "yes"}
	if !slices.Contains(access, needed) {
		a.server, a.reason = "no", "the server: the account needs "+needed+", which your user does not have"
	}
	if !slices.Contains(access, "READ") {
		run.CountSuccess()
		return a, nil
	}
	result, ok, err := queryAccess(ctx, run, "ask what the agent may do", args)
	if !ok {
		return a, err
	}
	for _, warning := range result.Warnings {
		run.Warnf("%s: Warning: %s", run.Account, warning)
	}
	a.cluster = "yes"
	if !result.Allowed {
		a.cluster = "no"
		reason := cmp.Or(result.Reason, result.Error, "it is not granted to the agent")
		a.reason = strings.TrimPrefix(a.reason+"; the cluster: "+reason, "; ")
	}
	return a, nil
}

// queryAccess asks the cluster, and counts the answer.
func queryAccess(ctx context.Context, run *fanout.Run, what string, args vedette.AccessArgs) (result vedette.AccessResult, ok bool,
	err error) {
	out, ok, err := run.Query(ctx, what, client.Operation{Args: args})
	if !ok || !run.Decode(out, "answer", &result) {
		return result, false, err
	}
	run.CountSuccess()
	return result, true, nil
}

func (o canIOptions) printRows(cmd *cobra.Command, header string, rows [][]string) error {
	if o.noHeaders {
		header = ""
	}
	return output.PrintTable(cmd.OutOrStdout(), cmd.ErrOrStderr(), header, rows)
}

// printRules prints what the cluster allows the agent.
func (o canIOptions) printRules(ctx context.Context, run *fanout.Run, a vedette.AccessArgs) error {
	result, ok, err := queryAccess(ctx, run, "list what the agent may do", a)
	if !ok {
		return err
	}
	if result.Incomplete {
		run.Warnf("%s: Warning: the list may be incomplete: %s", run.Account, cmp.Or(result.Error, "the API server does not say why"))
	}
	var header []string
	if !o.noHeaders {
		header = []string{"Resources", "Non-Resource URLs", "Resource Names", "Verbs"}
	}
	table := output.NewTextTable(header)
	for _, row := range ruleRows(result.Rules) {
		table.Add(row)
	}
	for _, line := range table.Text() {
		run.Printf("%s", line)
	}
	return nil
}

// ruleRows returns a row for each resource and URL, with all its verbs, in their order.
func ruleRows(rules []vedette.AccessRule) [][]string {
	type subject struct{ resource, path, names string }
	verbs := map[subject][]string{}
	add := func(s subject, more []string) {
		for _, verb := range more {
			if !slices.Contains(verbs[s], verb) {
				verbs[s] = append(verbs[s], verb)
			}
		}
	}
	for _, rule := range rules {
		names := "[" + strings.Join(rule.Names, " ") + "]"
		for _, path := range rule.Paths {
			add(subject{path: path, names: "[]"}, rule.Verbs)
		}
		for _, resource := range rule.Resources {
			for _, group := range rule.Groups {
				add(subject{resource: strings.TrimSuffix(resource+"."+group, "."), names: names}, rule.Verbs)
			}
		}
	}
	var rows [][]string
	for s, all := range verbs {
		slices.Sort(all)
		paths := "[]"
		if s.path != "" {
			paths = "[" + s.path + "]"
		}
		rows = append(rows, []string{s.resource, paths, s.names, "[" + strings.Join(all, " ") + "]"})
	}
	slices.SortFunc(rows, slices.Compare)
	return rows
}
