package comparison

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/differ"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/nearest"
)

// variant is a digest of the text of an object. Accounts mostly have the same few texts, so each is kept once.
type variant [sha256.Size]byte

// fleetObjects are the objects of all accounts, by name. Objects are read from the clusters, because only they can say
// that one does not exist.
type fleetObjects struct {
	mu       sync.Mutex
	texts    map[variant]string
	variants map[string]map[string]variant // by name and account
	read     map[string]bool               // accounts that were read without an error
}

func (f *fleetObjects) add(account string, found map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read[account] = true
	for name, text := range found {
		v := variant(sha256.Sum256([]byte(text)))
		f.texts[v] = text
		if f.variants[name] == nil {
			f.variants[name] = map[string]variant{}
		}
		f.variants[name][account] = v
	}
}

func (o diffOptions) compareAccounts(cmd *cobra.Command, args []string) (bool, error) {
	switch {
	case len(args) == 0:
		return false, vedette.Errorf(vedette.Invalid, "--all-accounts-against needs a kind: vedette diff --all-accounts-against %s TYPE [NAME...]", o.against)
	case o.serverSide:
		return false, vedette.Errorf(vedette.Invalid, "--server-side requires -f")
	case o.allNamespaces && o.Namespace != "":
		return false, vedette.Errorf(vedette.Invalid, "-n and -A exclude each other")
	}
	resources, err := target.ParseResourceArgs(args)
	if err != nil {
		return false, err
	}
	for _, r := range resources {
		if r.Account != "" || r.Name != "" && o.Selector != "" {
			return false, vedette.Errorf(vedette.Invalid, "%s cannot be compared: name a kind, or a kind and names without -l", args[0])
		}
	}
	fan, err := o.newFleetFanOut(cmd)
	if err != nil {
		return false, err
	}
	found := &fleetObjects{texts: map[variant]string{}, variants: map[string]map[string]variant{}, read: map[string]bool{}}
	workErr := fan.ForEachAccount(cmd.Context(), func(ctx context.Context, run *fanout.Run) error {
		all, ok, err := o.readAll(ctx, run, resources)
		if ok {
			run.CountSuccess()
			found.add(run.Account, all)
		}
		return err
	})
	if workErr != nil && !fanout.IsPartial(workErr) {
		return false, workErr
	}
	if !found.read[o.against] {
		return false, workErr // it was counted
	}
	differs, err := o.showFleet(cmd, fan.Accounts, found)
	if workErr != nil {
		err = workErr
	}
	return differs, err
}

// newFleetFanOut returns a fan-out over the account to compare with, and those that are compared.
func (o diffOptions) newFleetFanOut(cmd *cobra.Command) (*fanout.FanOut, error) {
	pattern := cmp.Or(o.account, "*")
	if pattern != "*" {
		pattern += "," + o.against
	}
	fan, err := fanout.New(cmd, pattern)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(fan.Accounts, o.against):
		return nil, vedette.Errorf(vedette.NotFound, "there is no account %q%s", o.against,
			cmp.Or(nearest.Hint(o.against, fan.Accounts), ": "+nearest.There(fan.Accounts, "accounts")))
	case len(fan.Accounts) == 1:
		return nil, vedette.Errorf(vedette.Invalid, "there is no account to compare with %s: select others with --account", o.against)
	}
	return fan, nil
}

// readAll reads the objects of one account, as texts by name.
func (o diffOptions) readAll(ctx context.Context, run *fanout.Run, resources []target.ResourceArg) (map[string]string, bool, error) {
	all := map[string]string{}
	for _, r := range resources {
		t := target.Target{Kind: r.Kind, Namespace: o.Namespace, Name: r.Name, Selector: o.Selector, AllNamespaces: o.allNamespaces}
		out, ok, err := o.readObjects(ctx, run, t)
		if !ok {
			return nil, false, err
		}
		for _, raw := range out.Objects {
			tree, err := manifests.Decode(raw)
			if err != nil {
				run.Failf("%s: the cluster returned an invalid object: %v", t.DisplayName(), err)
				return nil, false, nil
			}
			name := diffName(tree)
			differ.RemoveClusterFields(tree)
			if all[name], err = differ.Text(tree); err != nil {
				return nil, false, err
			}
		}
	}
	return all, true, nil
}

// readObjects reads one object or a list. An object that does not exist is not a failure.
func (o diffOptions) readObjects(ctx context.Context, run *fanout.Run, t target.Target) (client.Outcome, bool, error) {
	if t.Name == "" {
		return run.Query(ctx, "list "+t.DisplayName(), client.Operation{Args: t.ListArgs(), Timeout: o.timeout})
	}
	op := t.Operation(vedette.VerbGet)
	op.Timeout = o.timeout
	return run.ReadIfExists(ctx, "read "+t.DisplayName(), op)
}

// showFleet shows how the objects of the accounts differ from those of one account.
func (o diffOptions) showFleet(cmd *cobra.Command, accounts []string, found *fleetObjects) (bool, error) {
	differs, equal := false, 0
	for _, name := range slices.Sorted(maps.Keys(found.variants)) {
		different, err := o.showObject(cmd, name, accounts, found)
		if err != nil {
			return differs, err
		}
		if !different {
			equal++
		}
		differs = differs || different
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s equal in %s.\n", isOrAre(equal, "object"), output.Count(len(found.read), "account"))
	if notRead := len(accounts) - len(found.read); notRead > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s not compared, for the reasons above.\n", isOrAre(notRead, "account"))
	}
	return differs, nil
}

func isOrAre(n int, noun string) string {
	if n == 1 {
		return output.Count(n, noun) + " is"
	}
	return output.Count(n, noun) + " are"
}

// showObject shows how one object differs, each difference once, and reports whether it does.
func (o diffOptions) showObject(cmd *cobra.Command, name string, accounts []string, found *fleetObjects) (bool, error) {
	reference, exists := found.variants[name][o.against]
	var missing []string
	groups := map[variant][]string{}
	var order []variant
	for _, account := range accounts {
		v, has := found.variants[name][account]
		switch {
		case !found.read[account] || account == o.against:
		case !has:
			missing = append(missing, account)
		case exists && v == reference:
		default:
			if groups[v] == nil {
				order = append(order, v)
			}
			groups[v] = append(groups[v], account)
		}
	}
	printer := output.NewPrinter(cmd.OutOrStdout())
	if !exists {
		for _, v := range order {
			printer.Line(fmt.Sprintf("%s is not in %s, but in %s", name, o.against, countAndNames(groups[v])))
		}
		return true, printer.Flush()
	}
	if len(missing) > 0 {
		printer.Line(fmt.Sprintf("%s is in %s, but not in %s", name, o.against, countAndNames(missing)))
	}
	for _, v := range order {
		printer.Line(fmt.Sprintf("%s differs from %s in %s", name, o.against, countAndNames(groups[v])))
		if err := printer.Flush(); err != nil {
			return true, err
		}
		c := objectDiff{name, found.texts[reference], found.texts[v]}
		if _, err := runDiff(cmd, o.against, groups[v][0], []objectDiff{c}); err != nil {
			return true, err
		}
	}
	return len(missing) > 0 || len(order) > 0, printer.Flush()
}
