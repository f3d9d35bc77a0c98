package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// targetFlags are the flags and arguments that say which objects are meant: by name, by
// labels or by files.
type targetFlags struct {
	fileOptions
	account       string
	fieldSelector string
	all           bool // of a kind
	allNamespaces bool
	verb          string // in sentences about all: "delete"; empty where --all is no flag
	change        changeOptions
	interleaved   bool // lines are told as they come
	loadErrors    []error
}

func (f *targetFlags) addFlags(cmd *cobra.Command) {
	f.fileOptions.addFlags(cmd)
	addAccountFlag(cmd, &f.account)
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "the objects with these labels (app=web,tier!=db)")
	cmd.Flags().Lookup("namespace").Usage = "namespace of the objects; default if not given"
}

// addAllFlag is the flag of commands that may mean all objects of a kind.
func (f *targetFlags) addAllFlag(cmd *cobra.Command, verb string) {
	f.verb = verb
	cmd.Flags().BoolVar(&f.all, "all", false, "all objects of the kind, in the namespace; of several accounts with --yes only")
	f.change.addYesFlag(cmd)
}

// target is one object that is meant, or those of a kind that are chosen: with some
// labels or fields, or all.
type target struct {
	account, kind, apiVersion, namespace, name, selector string

	fieldSelector      string
	all, allNamespaces bool
}

func (t target) reference() vedette.Target {
	return vedette.Target{Kind: t.kind, APIVersion: t.apiVersion, Namespace: t.namespace, Name: t.name}
}

// operation returns an operation of a verb that takes only a target.
func (t target) operation(verb vedette.Verb) client.Operation {
	return client.Operation{Args: vedette.TargetArgs(verb, t.reference())}
}

// displayName is how people call the object, as long as the cluster has not.
func (t target) displayName() string {
	if t.name != "" {
		return kindDisplayName(t.kind) + "/" + t.name
	}
	text := kindDisplayName(t.kind)
	for _, flag := range []struct {
		set         bool
		name, value string
	}{{t.selector != "", " -l ", t.selector}, {t.fieldSelector != "", " --field-selector ", t.fieldSelector}, {t.all, " --all", ""}, {t.allNamespaces, " -A", ""}} {
		if flag.set {
			text += flag.name + flag.value
		}
	}
	return text
}

// namespacePhrase is the place in which objects are chosen, in sentences.
func (t target) namespacePhrase() string {
	if t.allNamespaces {
		return "any namespace"
	}
	return orDefault(t.namespace, "default") + " namespace"
}

// parse reads what is meant. Objects with an account of their own, as
// `vedette get -o name` prints them, decide for themselves where --account is not
// given.
func (f *targetFlags) parse(args []string, stdin io.Reader) ([]target, error) {
	if err := f.validateSelection(); err != nil {
		return nil, err
	}
	if len(f.files) > 0 {
		return f.parseFiles(args, stdin)
	}
	if len(args) == 0 {
		return nil, vedette.Errorf(vedette.Invalid, "say which objects are meant: TYPE NAME, TYPE/NAME, TYPE -l SELECTOR or -f FILE")
	}
	resourceArgs, err := parseResourceArgs(args)
	if err != nil {
		return nil, err
	}
	var all []target
	var accounts []string
	for _, arg := range resourceArgs {
		if err := f.validateArg(arg); err != nil {
			return nil, err
		}
		parsed := target{account: arg.account, kind: arg.kind, namespace: orDefault(arg.namespace, f.namespace), name: arg.name}
		if arg.name == "" {
			parsed.selector, parsed.fieldSelector, parsed.all, parsed.allNamespaces = f.selector, f.fieldSelector, f.all, f.allNamespaces
		}
		if arg.account != "" {
			accounts = append(accounts, arg.account)
		}
		all = append(all, parsed)
	}
	if f.account == "" {
		f.account = strings.Join(accounts, ",")
	}
	return all, nil
}

func (f *targetFlags) parseFiles(args []string, stdin io.Reader) ([]target, error) {
	if len(args) > 0 {
		return nil, vedette.Errorf(vedette.Invalid, "-f names objects, and so does %s: leave one out", args[0])
	}
	files, err := f.load(stdin)
	if err != nil {
		return nil, err
	}
	f.loadErrors = files.loadErrors
	var all []target
	for _, d := range files.documents {
		if d.Metadata.Name == "" {
			f.loadErrors = append(f.loadErrors, vedette.Errorf(vedette.Invalid, "%s: the %s has a generateName only, so that no object can be found by it", d.source, d.Kind))
			continue
		}
		all = append(all, target{kind: d.Kind, apiVersion: d.APIVersion, namespace: d.Metadata.Namespace, name: d.Metadata.Name})
	}
	if len(all) == 0 {
		return nil, errors.Join(f.loadErrors...)
	}
	return all, nil
}

// forEachTarget has something done to every object that is meant, in every account.
func (f *targetFlags) forEachTarget(cmd *cobra.Command, args []string, do func(ctx context.Context, run *accountRun, t target) error) error {
	all, err := f.parse(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	fan, err := newWriteFanOut(cmd, f.account, f.change)
	if err != nil {
		return err
	}
	if f.all {
		if err := f.change.confirmMany(f.verb+" "+args[0]+" --all", fan.accounts); err != nil {
			return err
		}
	}
	fan.interleaved, fan.loadErrors = f.interleaved, f.loadErrors
	return fan.forEachAccount(cmd.Context(), func(ctx context.Context, run *accountRun) error {
		for _, t := range all {
			if t.account != "" && t.account != run.account && run.account != "" {
				continue
			}
			if err := do(ctx, run, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// forEachObject is each with those that labels choose as objects of their own.
func (f *targetFlags) forEachObject(cmd *cobra.Command, args []string, do func(ctx context.Context, run *accountRun, t target) error) error {
	return f.forEachTarget(cmd, args, func(ctx context.Context, run *accountRun, t target) error {
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
func (t target) expand(ctx context.Context, run *accountRun) ([]target, error) {
	if t.name != "" {
		return []target{t}, nil
	}
	found, ok, err := run.list(ctx, t)
	if !ok {
		return nil, err
	}
	if len(found) == 0 {
		run.warnf("No resources found in %s of %s.", t.namespacePhrase(), run.account)
	}
	var objects []target
	for _, o := range found {
		object := t
		object.namespace, object.name, object.selector, object.all = o.Metadata.Namespace, o.Metadata.Name, "", false
		objects = append(objects, object)
	}
	return objects, nil
}

// listedObject is what of a listed object is looked at.
type listedObject struct {
	Metadata struct {
		Namespace, Name string
		Annotations     map[string]string
	}
	Spec struct {
		Containers, InitContainers, EphemeralContainers []struct{ Name string }
	}
}

// list reads the objects that have labels.
func (r *accountRun) list(ctx context.Context, t target) ([]listedObject, bool, error) {
	args := vedette.ListArgs{Target: t.reference(), LabelSelector: t.selector}
	args.Namespace, args.Name = orDefault(t.namespace, "default"), ""
	out, ok, err := r.execute(ctx, "list "+t.displayName(), client.Operation{Args: args})
	if !ok {
		return nil, false, err
	}
	r.succeeded-- // nothing that was asked for is done yet
	var all []listedObject
	for _, raw := range out.Objects {
		var o listedObject
		if err := json.Unmarshal(raw, &o); err != nil {
			r.failf("%s: one of the objects makes no sense: %v", t.displayName(), err)
			return nil, false, nil
		}
		all = append(all, o)
	}
	return all, true, nil
}
