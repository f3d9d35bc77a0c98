package comparison

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/differ"
	"github.com/vedette-io/vedette/internal/cli/exit"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

const diffLong = `Show how objects would change by an apply, or how they differ between clusters.

With -f, each API server computes in a dry run what an apply would make of the files. With several accounts, those
in which the same would change are shown together, without what each cluster chooses itself.

With --all-accounts-against, objects of other accounts are compared with those of one account, without what each
cluster chooses itself: uids, versions, the status, addresses and ports of Services, and names of volumes and nodes.

The data of Secrets never leaves a cluster. With -f, *** (before) and *** (after) show which keys would change; between
clusters it is not compared.

The exit code is 0 without differences, 1 with differences, and 2 after an error. The environment variable
KUBECTL_EXTERNAL_DIFF names another program than diff, with parameters.`

type diffOptions struct {
	manifests.Options
	change            fanout.ChangeOptions
	account, against  string
	serverSide, force bool
	allNamespaces     bool
	timeout           time.Duration
}

func newDiff() *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff -f FILE|DIRECTORY|- | --all-accounts-against ACCOUNT TYPE [NAME...]",
		Short: "Show how objects would change, or how they differ between clusters",
		Long:  diffLong,
		Example: `  vedette diff -f web.yaml -n shop --account 'prod-*'
  vedette diff --all-accounts-against prod-eu deployments -n shop
  vedette diff --all-accounts-against staging configmap colours -n shop --account 'prod-*'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			differs, err := o.run(cmd, args)
			switch {
			case errors.Is(err, context.Canceled):
				return err
			case err != nil:
				return diffError(err)
			case differs:
				return exit.Error{Code: 1}
			}
			return nil
		},
	}
	o.Options.AddFlags(cmd)
	target.AddAccountFlag(cmd, &o.account)
	flags := cmd.Flags()
	flags.Lookup("account").Usage += " With --all-accounts-against, it defaults to all accounts."
	flags.StringVarP(&o.Selector, "selector", "l", "", "Compare only objects that match this label selector (app=web,tier!=db).")
	flags.StringVar(&o.against, "all-accounts-against", "", "Account with which the objects of the other accounts are compared.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "With --all-accounts-against, compare objects in all namespaces.")
	flags.BoolVar(&o.serverSide, "server-side", false, "With -f, compare with what a server-side apply would make.")
	flags.BoolVar(&o.force, "force-conflicts", false, "With --server-side, take over fields that are conflicts.")
	flags.DurationVar(&o.timeout, "timeout", 0, "Time limit for each object. Defaults to 30s.")
	return cmd
}

// diffError returns an error whose exit code is not that of differences.
func diffError(err error) error {
	var summary fanout.FailedError
	if errors.As(err, &summary) { // each failure was printed
		if summary.Total == 1 {
			return exit.Error{Code: 2}
		}
		return exit.Error{Code: 2, Err: summary}
	}
	return exit.Error{Code: 2, Err: err}
}

// run reports whether there are differences.
func (o diffOptions) run(cmd *cobra.Command, args []string) (bool, error) {
	switch {
	case o.against == "" && len(o.Files) == 0:
		return false, vedette.Errorf(vedette.Invalid, "nothing to compare: use -f, or --all-accounts-against with a kind")
	case o.against != "" && len(o.Files) > 0:
		return false, vedette.Errorf(vedette.Invalid, "-f and --all-accounts-against exclude each other")
	case o.force && !o.serverSide:
		return false, vedette.Errorf(vedette.Invalid, "--force-conflicts requires --server-side: only server-side apply has conflicts of fields")
	case o.against != "":
		return o.compareAccounts(cmd, args)
	case len(args) > 0:
		return false, vedette.Errorf(vedette.Invalid, "-f cannot be combined with the argument %s: both name objects", args[0])
	case o.allNamespaces:
		return false, vedette.Errorf(vedette.Invalid, "-A requires --all-accounts-against")
	}
	return o.compareFiles(cmd)
}

// objectDiff is an object as it is and as it would be, "" if it does not exist.
type objectDiff struct{ name, live, merged string }

func (o diffOptions) compareFiles(cmd *cobra.Command) (bool, error) {
	files, err := o.Load(cmd.InOrStdin())
	if err != nil {
		return false, err
	}
	o.change.SetServerDryRun()
	fan, err := target.NewFanOutForDocuments(cmd, o.account, files, o.change)
	if err != nil {
		return false, err
	}
	several := len(fan.Accounts) != 1 // there are none if the server has none of the accounts that the files name
	var mu sync.Mutex
	found := map[string][]objectDiff{}
	workErr := fan.ForEachAccount(cmd.Context(), func(ctx context.Context, run *fanout.Run, documents []manifests.Document) error {
		for _, d := range documents {
			c, ok, err := o.compareDocument(ctx, run, d, several)
			if err != nil {
				return err
			}
			if ok && c.live != c.merged {
				mu.Lock()
				found[run.Account] = append(found[run.Account], c)
				mu.Unlock()
			}
		}
		return nil
	})
	if workErr != nil && !fanout.IsPartial(workErr) {
		return false, workErr
	}
	var differs bool
	if several {
		differs, err = o.showGroups(cmd, fan.Accounts, found)
	} else {
		differs, err = o.showOne(cmd, found[fan.Accounts[0]])
	}
	if workErr != nil {
		err = workErr
	}
	return differs, err
}

// compareDocument reads an object, and what an apply would make of it.
func (o diffOptions) compareDocument(ctx context.Context, run *fanout.Run, d manifests.Document, several bool) (objectDiff, bool, error) {
	if err := d.CheckName(); err != nil {
		run.Failf("%v", err)
		return objectDiff{}, false, nil
	}
	what := fmt.Sprintf("diff %s of %s", d.DisplayName(), d.Source)
	get := d.Operation(vedette.VerbGet)
	get.Timeout = o.timeout
	before, ok, err := run.ReadIfExists(ctx, what, get)
	if !ok {
		return objectDiff{}, false, err
	}
	after, ok, err := run.Execute(ctx, what, client.Operation{Timeout: o.timeout,
		Args: vedette.ApplyArgs{Manifest: d.Raw, Namespace: d.Metadata.Namespace, Strategy: o.strategy(d)}})
	if !ok {
		return objectDiff{}, false, err
	}
	c, err := newObjectDiff(before, after, secretTypeOf(d), several)
	if err != nil {
		run.Failf("%s: %v", what, err)
		return c, false, nil
	}
	if isSecret(after) && len(after.Result) == 0 && !after.Unchanged {
		run.Warnf("%s: the data of %s is not compared: its agent is of an earlier release", run.Account, d.DisplayName())
	}
	return c, true, nil
}

// strategy returns how to apply a document in the dry run. A client-side apply shows what the manifest has dropped also
// of objects that were applied client-side before, which a dry run of a server-side apply does not
// (docs/decisions/0027). It cannot be used if the manifest would not fit into the annotation.
func (o diffOptions) strategy(d manifests.Document) vedette.Strategy {
	const maxAnnotationBytes = 250 << 10
	switch {
	case o.force:
		return vedette.StrategyForceConflicts
	case o.serverSide:
		return vedette.StrategyServerSide
	case len(d.Raw) > maxAnnotationBytes:
		return vedette.StrategyDefault
	}
	return vedette.StrategyClientSide
}

// secretTypeOf returns the type of a Secret that a document would create. The cluster does not return it, because only
// the metadata of Secrets is requested.
func secretTypeOf(d manifests.Document) string {
	tree, err := manifests.Decode(d.Raw)
	if text, ok := tree["type"].(string); ok && err == nil {
		return text
	}
	return "Opaque"
}

func isSecret(out client.Outcome) bool { return len(out.Keys) == 1 && out.Keys[0].Kind == "Secret" }

// newObjectDiff returns an object before and after a dry run. With several accounts it leaves out what each cluster
// chooses, so that equal changes look equal.
func newObjectDiff(before, after client.Outcome, secretType string, several bool) (objectDiff, error) {
	var c objectDiff
	live, err := treeOf(before)
	if err != nil {
		return c, err
	}
	merged, err := treeOf(after)
	if err != nil {
		return c, err
	}
	var preview vedette.SecretPreview
	if isSecret(after) && len(after.Result) > 0 {
		if err := json.Unmarshal(after.Result, &preview); err != nil {
			return c, fmt.Errorf("the agent returned an invalid preview of a Secret: %w", err)
		}
		differ.MaskSecret(live, merged, preview)
		if live == nil {
			merged["type"] = secretType
		}
	}
	for _, tree := range []differ.Object{live, merged} {
		if several {
			differ.RemoveClusterFields(tree)
		} else {
			differ.RemoveCopies(tree)
		}
	}
	if c.live, err = differ.Text(live); err != nil {
		return c, err
	}
	if c.merged, err = differ.Text(merged); err != nil {
		return c, err
	}
	c.name = diffName(merged)
	return c, nil
}

// treeOf decodes the object of an outcome, nil for none.
func treeOf(out client.Outcome) (differ.Object, error) {
	if len(out.Objects) == 0 {
		return nil, nil
	}
	return manifests.Decode(out.Objects[0])
}

// diffName returns the name of an object as kubectl diff shows it: apps.v1.Deployment.shop.web.
func diffName(tree differ.Object) string {
	o := unstructured.Unstructured{Object: tree}
	return strings.Join([]string{strings.ReplaceAll(o.GetAPIVersion(), "/", "."), o.GetKind(), o.GetNamespace(), o.GetName()}, ".")
}

// showOne shows the differences of one account, all at once as kubectl does.
func (o diffOptions) showOne(cmd *cobra.Command, all []objectDiff) (bool, error) {
	if len(all) == 0 {
		return false, nil
	}
	return runDiff(cmd, "LIVE", "MERGED", all)
}

func runDiff(cmd *cobra.Command, from, to string, all []objectDiff) (bool, error) {
	d, err := differ.New(cmd.OutOrStdout(), cmd.ErrOrStderr(), from, to)
	if err != nil {
		return false, err
	}
	defer d.Close()
	for _, c := range all {
		if err := d.Add(c.name, c.live, c.merged); err != nil {
			return false, err
		}
	}
	return d.Run(cmd.Context())
}

// showGroups shows each difference once, with the accounts that have it.
func (o diffOptions) showGroups(cmd *cobra.Command, accounts []string, found map[string][]objectDiff) (bool, error) {
	groups := map[objectDiff][]string{}
	var order []objectDiff
	for _, account := range accounts {
		for _, c := range found[account] {
			if groups[c] == nil {
				order = append(order, c)
			}
			groups[c] = append(groups[c], account)
		}
	}
	slices.SortStableFunc(order, func(a, b objectDiff) int { return cmp.Compare(a.name, b.name) })
	printer := output.NewPrinter(cmd.OutOrStdout())
	differs := false
	for _, c := range order {
		printer.Line(fmt.Sprintf("%s in %s", c.name, countAndNames(groups[c])))
		if err := printer.Flush(); err != nil {
			return differs, err
		}
		if _, err := runDiff(cmd, "LIVE", "MERGED", []objectDiff{c}); err != nil {
			return differs, err
		}
		differs = true
	}
	return differs, nil
}

// maxNamedAccounts is how many accounts a line names.
const maxNamedAccounts = 20

// countAndNames returns "2 accounts: one,two". The names are separated as --account accepts them.
func countAndNames(names []string) string {
	text := output.Count(len(names), "account") + ": " + strings.Join(names[:min(len(names), maxNamedAccounts)], ",")
	if more := len(names) - maxNamedAccounts; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
