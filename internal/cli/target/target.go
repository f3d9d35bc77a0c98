// Package target parses which objects a command means: by name, by labels, by fields or by
// files, in one account or in several.
package target

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// Flags are the flags and arguments that say which objects are meant: by name, by
// labels or by files.
type Flags struct {
	manifests.Options
	Account       string
	FieldSelector string
	all           bool // of a kind
	AllNamespaces bool
	verb          string // in sentences about all: "delete"; empty where --all is no flag
	Change        fanout.ChangeOptions
	Interleaved   bool // lines are told as they come
	loadErrors    []error
}

func (f *Flags) AddFlags(cmd *cobra.Command) {
	f.Options.AddFlags(cmd)
	AddAccountFlag(cmd, &f.Account)
	cmd.Flags().StringVarP(&f.Selector, "selector", "l", "", "the objects with these labels (app=web,tier!=db)")
	cmd.Flags().Lookup("namespace").Usage = "namespace of the objects; default if not given"
}

func AddAccountFlag(cmd *cobra.Command, account *string) {
	cmd.Flags().StringVar(account, "account", "", "the account, or several by a pattern (prod-*) or joined by commas; not needed where there is one")
}

// AddAllFlag is the flag of commands that may mean all objects of a kind.
func (f *Flags) AddAllFlag(cmd *cobra.Command, verb string) {
	f.verb = verb
	cmd.Flags().BoolVar(&f.all, "all", false, "all objects of the kind, in the namespace; of several accounts with --yes only")
	f.Change.AddYesFlag(cmd)
}

// Target is one object that is meant, or those of a kind that are chosen: with some
// labels or fields, or all.
type Target struct {
	Account, Kind, APIVersion, Namespace, Name, Selector string

	FieldSelector      string
	All, AllNamespaces bool
}

func (t Target) Operation(verb vedette.Verb) client.Operation {
	return client.Operation{Verb: verb, Kind: t.Kind, APIVersion: t.APIVersion, Namespace: t.Namespace, Name: t.Name}
}

// DisplayName is how people call the object, as long as the cluster has not.
func (t Target) DisplayName() string {
	if t.Name != "" {
		return output.KindName(t.Kind) + "/" + t.Name
	}
	text := output.KindName(t.Kind)
	for _, flag := range []struct {
		set         bool
		name, value string
	}{{t.Selector != "", " -l ", t.Selector}, {t.FieldSelector != "", " --field-selector ", t.FieldSelector}, {t.All, " --all", ""}, {t.AllNamespaces, " -A", ""}} {
		if flag.set {
			text += flag.name + flag.value
		}
	}
	return text
}

// NamespacePhrase is the place in which objects are chosen, in sentences.
func (t Target) NamespacePhrase() string {
	if t.AllNamespaces {
		return "any namespace"
	}
	return cmp.Or(t.Namespace, "default") + " namespace"
}

// Parse reads what is meant. Objects with an account of their own, as
// `vedette get -o name` prints them, decide for themselves where --account is not
// given.
func (f *Flags) Parse(args []string, stdin io.Reader) ([]Target, error) {
	if err := f.validateSelection(); err != nil {
		return nil, err
	}
	if len(f.Files) > 0 {
		return f.parseFiles(args, stdin)
	}
	if len(args) == 0 {
		return nil, vedette.Errorf(vedette.Invalid, "say which objects are meant: TYPE NAME, TYPE/NAME, TYPE -l SELECTOR or -f FILE")
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
			parsed.Selector, parsed.FieldSelector, parsed.All, parsed.AllNamespaces = f.Selector, f.FieldSelector, f.all, f.AllNamespaces
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
		return nil, vedette.Errorf(vedette.Invalid, "-f names objects, and so does %s: leave one out", args[0])
	}
	files, err := f.Load(stdin)
	if err != nil {
		return nil, err
	}
	f.loadErrors = files.LoadErrors
	var all []Target
	for _, d := range files.Documents {
		if d.Metadata.Name == "" {
			f.loadErrors = append(f.loadErrors, vedette.Errorf(vedette.Invalid, "%s: the %s has a generateName only, so that no object can be found by it", d.Source, d.Kind))
			continue
		}
		all = append(all, Target{Kind: d.Kind, APIVersion: d.APIVersion, Namespace: d.Metadata.Namespace, Name: d.Metadata.Name})
	}
	if len(all) == 0 {
		return nil, errors.Join(f.loadErrors...)
	}
	return all, nil
}

// ForEachTarget has something done to every object that is meant, in every account.
func (f *Flags) ForEachTarget(cmd *cobra.Command, args []string, do func(ctx context.Context, run *fanout.Run, t Target) error) error {
	all, err := f.Parse(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	fan, err := fanout.NewForChanges(cmd, f.Account, f.Change)
	if err != nil {
		return err
	}
	if f.all {
		if err := f.Change.ConfirmMany(f.verb+" "+args[0]+" --all", fan.Accounts); err != nil {
			return err
		}
	}
	fan.Interleaved, fan.LoadErrors = f.Interleaved, f.loadErrors
	return fan.ForEachAccount(cmd.Context(), func(ctx context.Context, run *fanout.Run) error {
		for _, t := range all {
			if t.Account != "" && t.Account != run.Account && run.Account != "" {
				continue
			}
			if err := do(ctx, run, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// ForEachObject is each with those that labels choose as objects of their own.
func (f *Flags) ForEachObject(cmd *cobra.Command, args []string, do func(ctx context.Context, run *fanout.Run, t Target) error) error {
	return f.ForEachTarget(cmd, args, func(ctx context.Context, run *fanout.Run, t Target) error {
		objects, err := t.expand(ctx, run)
		for _, object := range objects {
			if err := do(ctx, run, object); err != nil {
				return err
			}
		}
		return err
	})
}

// expand finds the objects that have the labels.
func (t Target) expand(ctx context.Context, run *fanout.Run) ([]Target, error) {
	if t.Name != "" {
		return []Target{t}, nil
	}
	found, ok, err := List(ctx, run, t)
	if !ok {
		return nil, err
	}
	if len(found) == 0 {
		run.Warnf("No resources found in %s of %s.", t.NamespacePhrase(), run.Account)
	}
	var objects []Target
	for _, o := range found {
		object := t
		object.Namespace, object.Name, object.Selector, object.All = o.Metadata.Namespace, o.Metadata.Name, "", false
		objects = append(objects, object)
	}
	return objects, nil
}
