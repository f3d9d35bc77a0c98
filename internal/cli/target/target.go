// Package target parses which objects a command means: by name, by labels, by fields or by
// files, in one account or in several.
package target

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// Flags are the flags and arguments that select objects: by name, by labels or by files.
type Flags struct {
	manifests.Options
	Account       string
	FieldSelector string
	all           bool // all objects of the kind
	AllNamespaces bool
	verb          string // for messages about --all: "delete"; empty if the command has no --all
	Change        fanout.ChangeOptions
	Interleaved   bool // see fanout.FanOut
	loadErrors    []error
	ownAccounts   []string // of objects in files that name their accounts, without --account
}

// Usage shows the arguments and flags that select objects.
const Usage = "TYPE NAME... | TYPE/NAME... | TYPE -l SELECTOR | TYPE --all | ACCOUNT/TYPE/NAMESPACE/NAME... | -f FILE"

// AddFlags adds the flags that all commands have which change objects.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	f.Options.AddFlags(cmd)
	AddAccountFlag(cmd, &f.Account)
	cmd.Flags().StringVarP(&f.Selector, "selector", "l", "", "Label selector of the objects (app=web,tier!=db).")
	cmd.Flags().Lookup("namespace").Usage = "Namespace of the objects. Defaults to the namespace of the context, then to default."
}

// AddAccountFlag adds --account.
func AddAccountFlag(cmd *cobra.Command, account *string) {
	cmd.Flags().StringVar(account, "account", "",
		"Account, pattern of accounts (prod-*), or comma-separated accounts. Optional if there is only one account.")
}

// AddAccountsFlag adds --account for commands that show objects of all accounts without it.
func AddAccountsFlag(cmd *cobra.Command, account *string) {
	cmd.Flags().StringVar(account, "account", "",
		"Account, pattern of accounts (prod-*), or comma-separated accounts. Defaults to all accounts.")
}

// AddAllFlag adds --all. The verb is for messages: "delete".
func (f *Flags) AddAllFlag(cmd *cobra.Command, verb string) {
	f.verb = verb
	cmd.Flags().BoolVar(&f.all, "all", false, "Select all objects of the kind in the namespace. Requires --yes for several accounts.")
	f.Change.AddYesFlag(cmd)
}

// AddSelectionFlags adds the flags of commands that select objects by their fields and in all namespaces, and --all.
func (f *Flags) AddSelectionFlags(cmd *cobra.Command, verb string) {
	f.AddAllFlag(cmd, verb)
	flags := cmd.Flags()
	flags.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "With --all, -l or --field-selector, select objects in all namespaces.")
	flags.StringVar(&f.FieldSelector, "field-selector", "",
		"Field selector of the objects (status.phase=Failed). API servers support few fields of each kind.")
}

// Target is one object or, if Name is empty, all objects of a kind that the selectors match.
type Target struct {
	Account, Kind, APIVersion, Namespace, Name, Selector string

	FieldSelector      string
	All, AllNamespaces bool
}

// Reference returns the object as operations name it.
func (t Target) Reference() vedette.Target {
	return vedette.Target{Kind: t.Kind, APIVersion: t.APIVersion, Namespace: t.Namespace, Name: t.Name}
}

// Operation returns an operation of a verb that takes only a target.
func (t Target) Operation(verb vedette.Verb) client.Operation {
	return client.Operation{Args: vedette.TargetArgs(verb, t.Reference())}
}

// DisplayName returns the object, or the selection, as the user wrote it.
func (t Target) DisplayName() string {
	if t.Name != "" {
		return output.KindName(t.Kind) + "/" + t.Name
	}
	text := output.KindName(t.Kind)
	for _, flag := range []struct {
		set         bool
		name, value string
	}{{t.Selector != "", " -l ", t.Selector}, {t.FieldSelector != "", " --field-selector ", t.FieldSelector}, {t.All, " --all", ""},
		{t.AllNamespaces, " -A", ""}} {
		if flag.set {
			text += flag.name + flag.value
		}
	}
	return text
}

// NamespacePhrase returns "shop namespace" or "any namespace", for messages.
func (t Target) NamespacePhrase() string {
	if t.AllNamespaces {
		return "any namespace"
	}
	return cmp.Or(t.Namespace, "default") + " namespace"
}

// Parse returns the selected objects. Arguments in the form that `vedette get -o name` prints
// contain their account. They set the accounts of the command if --account is not given.
func (f *Flags) Parse(args []string, stdin io.Reader) ([]Target, error) {
	if err := f.validateSelection(); err != nil {
		return nil, err
	}
	if len(f.Files) > 0 {
		return f.parseFiles(args, stdin)
	}
	if len(args) == 0 {
		return nil, vedette.Errorf(vedette.Invalid, "no objects selected: use TYPE NAME, TYPE/NAME, TYPE -l SELECTOR or -f FILE")
	}
	resourceArgs, err := ParseResourceArgs(args)
	if err != nil {
		return nil, err
	}
	var all []Target
	var accounts []string
	for _, arg := range resourceArgs {
		if err := f.validateArg(arg); err != nil {
			return nil, err
		}
		parsed := Target{Account: arg.Account, Kind: arg.Kind, Namespace: cmp.Or(arg.Namespace, f.Namespace), Name: arg.Name}
		if arg.Name == "" {
			parsed.Selector = f.Selector
			parsed.FieldSelector = f.FieldSelector
			parsed.All = f.all
			parsed.AllNamespaces = f.AllNamespaces
		}
		if arg.Account != "" {
			accounts = append(accounts, arg.Account)
		}
		all = append(all, parsed)
	}
	if f.Account == "" {
		f.Account = strings.Join(accounts, ",")
	}
	return all, nil
}

func (f *Flags) parseFiles(args []string, stdin io.Reader) ([]Target, error) {
	if len(args) > 0 {
		return nil, vedette.Errorf(vedette.Invalid, "-f cannot be combined with the argument %s: both name objects", args[0])
	}
	files, err := f.Load(stdin)
	if err != nil {
		return nil, err
	}
	f.loadErrors = files.LoadErrors
	accounts, err := accountsOf(files.Documents)
	if err != nil && f.Account == "" {
		return nil, err
	}
	if f.Account == "" {
		f.ownAccounts = accounts
	}
	var all []Target
	for _, d := range files.Documents {
		if err := d.CheckName(); err != nil {
			f.loadErrors = append(f.loadErrors, err)
			continue
		}
		all = append(all, Target{Account: d.Account, Kind: d.Kind, APIVersion: d.APIVersion, Namespace: d.Metadata.Namespace,
			Name: d.Metadata.Name})
	}
	if len(all) == 0 {
		return nil, errors.Join(f.loadErrors...)
	}
	return all, nil
}

// ForEachTarget calls do for every selected object or selection in every account.
func (f *Flags) ForEachTarget(cmd *cobra.Command, args []string, do func(ctx context.Context, run *fanout.Run, t Target) error) error {
	all, err := f.Parse(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	fan, err := f.newFanOut(cmd, all)
	if err != nil {
		return err
	}
	if f.all {
		if err := f.Change.ConfirmMany(f.verb+" "+args[0]+" --all", fan.Accounts); err != nil {
			return err
		}
	}
	fan.Interleaved, fan.LoadErrors = f.Interleaved, append(f.loadErrors, fan.LoadErrors...)
	return fan.ForEachAccount(cmd.Context(), func(ctx context.Context, run *fanout.Run) error {
		for _, t := range all {
			if t.Account != "" && t.Account != run.Account && run.Account != "" && !f.ignoresAccounts() {
				continue
			}
			kinds, err := t.expandCategory(ctx, fan.Client, run.Account)
			if err != nil {
				return err
			}
			for _, t := range kinds {
				if err := do(ctx, run, t); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// expandCategory returns a selection for each kind of a category, or the target itself. The cluster of each account decides what
// belongs to the category.
func (t Target) expandCategory(ctx context.Context, c *client.Client, account string) ([]Target, error) {
	if t.Name != "" || c == nil {
		return []Target{t}, nil
	}
	served, err := c.ServedKinds(ctx, account, t.Namespace, t.Kind)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil || !slices.ContainsFunc(served.Items, func(k client.ServedKind) bool { return k.IsCategory }) {
		return []Target{t}, nil //nolint:nilerr // the cluster says why it does not serve the kind
	}
	var all []Target
	for _, k := range served.Items {
		of := t
		of.Kind = k.Kind
		all = append(all, of)
	}
	return all, nil
}

// ForEachObject is ForEachTarget with selections replaced by the objects that they match.
func (f *Flags) ForEachObject(cmd *cobra.Command, args []string, do func(ctx context.Context, run *fanout.Run, t Target) error) error {
	return f.ForEachTarget(cmd, args, func(ctx context.Context, run *fanout.Run, t Target) error {
		objects, err := t.Expand(ctx, run)
		for _, object := range objects {
			if err := do(ctx, run, object); err != nil {
				return err
			}
		}
		return err
	})
}

// Expand returns the objects that a selection matches.
func (t Target) Expand(ctx context.Context, run *fanout.Run) ([]Target, error) {
	if t.Name != "" {
		return []Target{t}, nil
	}
	found, ok, err := List(ctx, run, t)
	if !ok {
		return nil, err
	}
	if len(found) == 0 {
		run.Noticef("No resources found in %s of %s.", t.NamespacePhrase(), run.Account)
	}
	var objects []Target
	for _, o := range found {
		object := t
		object.Namespace = o.Metadata.Namespace
		object.Name = o.Metadata.Name
		object.Selector = ""
		object.All = false
		object.FieldSelector, object.AllNamespaces = "", false
		objects = append(objects, object)
	}
	return objects, nil
}
