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

// aims are the flags and arguments that say which objects are meant: by name, by
// labels or by files.
type aims struct {
	documents
	account       string
	fieldSelector string
	all           bool // of a kind
	allNamespaces bool
	verb          string // in sentences about all: "delete"; empty where --all is no flag
	manner        manner
	live          bool // lines are told as they come
	unread        []error
}

func (a *aims) flags(cmd *cobra.Command) {
	a.documents.flags(cmd)
	accountFlag(cmd, &a.account)
	cmd.Flags().StringVarP(&a.selector, "selector", "l", "", "the objects with these labels (app=web,tier!=db)")
	cmd.Flags().Lookup("namespace").Usage = "namespace of the objects; default if not given"
}

// allFlag is the flag of commands that may mean all objects of a kind.
func (a *aims) allFlag(cmd *cobra.Command, verb string) {
	a.verb = verb
	cmd.Flags().BoolVar(&a.all, "all", false, "all objects of the kind, in the namespace; of several accounts with --yes only")
	a.manner.yesFlag(cmd)
}

// aim is one object that is meant, or those of a kind that are chosen: with some
// labels or fields, or all.
type aim struct {
	account, kind, apiVersion, namespace, name, selector string

	fieldSelector      string
	all, allNamespaces bool
}

func (a aim) on(verb vedette.Verb) client.Operation {
	return client.Operation{Verb: verb, Kind: a.kind, APIVersion: a.apiVersion, Namespace: a.namespace, Name: a.name}
}

// label is how people call the object, as long as the cluster has not.
func (a aim) label() string {
	if a.name != "" {
		return kindLabel(a.kind) + "/" + a.name
	}
	label := kindLabel(a.kind)
	for _, flag := range []struct {
		given       bool
		name, value string
	}{{a.selector != "", " -l ", a.selector}, {a.fieldSelector != "", " --field-selector ", a.fieldSelector}, {a.all, " --all", ""}, {a.allNamespaces, " -A", ""}} {
		if flag.given {
			label += flag.name + flag.value
		}
	}
	return label
}

// where is the place in which objects are chosen, in sentences.
func (a aim) where() string {
	if a.allNamespaces {
		return "any namespace"
	}
	return or(a.namespace, "default") + " namespace"
}

// parse reads what is meant. Objects with an account of their own, as
// `vedette get -o name` prints them, decide for themselves where --account is not
// given.
func (a *aims) parse(args []string, stdin io.Reader) ([]aim, error) {
	if err := a.checkChoice(); err != nil {
		return nil, err
	}
	if len(a.files) > 0 {
		return a.parseFiles(args, stdin)
	}
	if len(args) == 0 {
		return nil, vedette.Errorf(vedette.Invalid, "say which objects are meant: TYPE NAME, TYPE/NAME, TYPE -l SELECTOR or -f FILE")
	}
	targets, err := parseTargets(args)
	if err != nil {
		return nil, err
	}
	var all []aim
	var accounts []string
	for _, t := range targets {
		if err := a.check(t); err != nil {
			return nil, err
		}
		one := aim{account: t.account, kind: t.kind, namespace: or(t.namespace, a.namespace), name: t.name}
		if t.name == "" {
			one.selector, one.fieldSelector, one.all, one.allNamespaces = a.selector, a.fieldSelector, a.all, a.allNamespaces
		}
		if t.account != "" {
			accounts = append(accounts, t.account)
		}
		all = append(all, one)
	}
	if a.account == "" {
		a.account = strings.Join(accounts, ",")
	}
	return all, nil
}

func (a *aims) parseFiles(args []string, stdin io.Reader) ([]aim, error) {
	if len(args) > 0 {
		return nil, vedette.Errorf(vedette.Invalid, "-f names objects, and so does %s: leave one out", args[0])
	}
	files, err := a.load(stdin)
	if err != nil {
		return nil, err
	}
	a.unread = files.unread
	var all []aim
	for _, d := range files.documents {
		if d.Metadata.Name == "" {
			a.unread = append(a.unread, vedette.Errorf(vedette.Invalid, "%s: the %s has a generateName only, so that no object can be found by it", d.source, d.Kind))
			continue
		}
		all = append(all, aim{kind: d.Kind, apiVersion: d.APIVersion, namespace: d.Metadata.Namespace, name: d.Metadata.Name})
	}
	if len(all) == 0 {
		return nil, errors.Join(a.unread...)
	}
	return all, nil
}

// each has something done to every object that is meant, in every account.
func (a *aims) each(cmd *cobra.Command, args []string, do func(ctx context.Context, h *hand, one aim) error) error {
	all, err := a.parse(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	c, err := newChanging(cmd, a.account, a.manner)
	if err != nil {
		return err
	}
	if a.all {
		if err := a.manner.careful(a.verb+" "+args[0]+" --all", c.accounts); err != nil {
			return err
		}
	}
	c.live, c.unread = a.live, a.unread
	return c.each(cmd.Context(), func(ctx context.Context, h *hand) error {
		for _, one := range all {
			if one.account != "" && one.account != h.account && h.account != "" {
				continue
			}
			if err := do(ctx, h, one); err != nil {
				return err
			}
		}
		return nil
	})
}

// named is each with those that labels choose as objects of their own.
func (a *aims) named(cmd *cobra.Command, args []string, do func(ctx context.Context, h *hand, one aim) error) error {
	return a.each(cmd, args, func(ctx context.Context, h *hand, one aim) error {
		all, err := one.expand(ctx, h)
		for _, one := range all {
			if err := do(ctx, h, one); err != nil {
				return err
			}
		}
		return err
	})
}

// expand finds the objects that have the labels.
func (a aim) expand(ctx context.Context, h *hand) ([]aim, error) {
	if a.name != "" {
		return []aim{a}, nil
	}
	found, ok, err := h.list(ctx, a)
	if !ok {
		return nil, err
	}
	if len(found) == 0 {
		h.warn("No resources found in %s of %s.", a.where(), h.account)
	}
	var all []aim
	for _, o := range found {
		one := a
		one.namespace, one.name, one.selector, one.all = o.Metadata.Namespace, o.Metadata.Name, "", false
		all = append(all, one)
	}
	return all, nil
}

// listed is what of a listed object is looked at.
type listed struct {
	Metadata struct {
		Namespace, Name string
		Annotations     map[string]string
	}
	Spec struct {
		Containers, InitContainers, EphemeralContainers []struct{ Name string }
	}
}

// list reads the objects that have labels.
func (h *hand) list(ctx context.Context, a aim) ([]listed, bool, error) {
	op := a.on(vedette.VerbList)
	op.LabelSelector, op.Namespace = a.selector, or(a.namespace, "default")
	out, ok, err := h.must(ctx, "list "+a.label(), op)
	if !ok {
		return nil, false, err
	}
	h.done-- // nothing that was asked for is done yet
	var all []listed
	for _, raw := range out.Objects {
		var o listed
		if err := json.Unmarshal(raw, &o); err != nil {
			h.fail("%s: one of the objects makes no sense: %v", a.label(), err)
			return nil, false, nil
		}
		all = append(all, o)
	}
	return all, true, nil
}
