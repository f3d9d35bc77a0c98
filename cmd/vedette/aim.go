package main

import (
	"context"
	"encoding/json"
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
	account string
}

func (a *aims) flags(cmd *cobra.Command) {
	a.documents.flags(cmd)
	accountFlag(cmd, &a.account)
	cmd.Flags().StringVarP(&a.selector, "selector", "l", "", "the objects with these labels (app=web,tier!=db)")
	cmd.Flags().Lookup("namespace").Usage = "namespace of the objects; default if not given"
}

// aim is one object that is meant, or all of a kind with some labels.
type aim struct {
	account, kind, apiVersion, namespace, name, selector string
}

func (a aim) on(verb vedette.Verb) client.Operation {
	return client.Operation{Verb: verb, Kind: a.kind, APIVersion: a.apiVersion, Namespace: a.namespace, Name: a.name}
}

// label is how people call the object, as long as the cluster has not.
func (a aim) label() string {
	if a.name == "" {
		return kindLabel(a.kind) + " -l " + a.selector
	}
	return kindLabel(a.kind) + "/" + a.name
}

// parse reads what is meant. Objects with an account of their own, as
// `vedette get -o name` prints them, decide for themselves where --account is not
// given.
func (a *aims) parse(args []string, stdin io.Reader) ([]aim, error) {
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
		switch {
		case t.name == "" && strings.TrimSpace(a.selector) == "":
			return nil, vedette.Errorf(vedette.Invalid, "say which %s are meant: name them, or choose them by labels with -l", t.kind)
		case t.name != "" && a.selector != "":
			return nil, vedette.Errorf(vedette.Invalid, "the name %s and the selector -l exclude each other", t.name)
		case t.account != "" && a.account != "":
			return nil, vedette.Errorf(vedette.Invalid, "%s names its account: leave --account out", path(t.account, t.kind, t.namespace, t.name))
		}
		one := aim{account: t.account, kind: t.kind, namespace: or(t.namespace, a.namespace), name: t.name}
		if t.name == "" {
			one.selector = a.selector
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
	docs, err := a.load(stdin)
	if err != nil {
		return nil, err
	}
	var all []aim
	for _, d := range docs {
		if d.Metadata.Name == "" {
			return nil, vedette.Errorf(vedette.Invalid, "%s: the %s has a generateName only, so that no object can be found by it", d.source, d.Kind)
		}
		all = append(all, aim{kind: d.Kind, apiVersion: d.APIVersion, namespace: d.Metadata.Namespace, name: d.Metadata.Name})
	}
	return all, nil
}

// each has something done to every object that is meant, in every account.
func (a *aims) each(cmd *cobra.Command, args []string, do func(ctx context.Context, h *hand, one aim) error) error {
	all, err := a.parse(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	c, err := newCrew(cmd, a.account)
	if err != nil {
		return err
	}
	return c.each(cmd.Context(), func(ctx context.Context, h *hand) error {
		for _, one := range all {
			if one.account != "" && one.account != h.account {
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
		h.warn("No resources found in %s namespace of %s.", or(a.namespace, "default"), h.account)
	}
	var all []aim
	for _, o := range found {
		one := a
		one.namespace, one.name, one.selector = o.Metadata.Namespace, o.Metadata.Name, ""
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
