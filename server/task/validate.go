package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// ValidationError is what is wrong with descriptions, in Clouddriver's terms:
// "scaleKubernetesManifest.scaleKubernetesManifest.shop.wrongNamespace", or
// words where a permission is missing. It is a vedette.Invalid.
type ValidationError struct{ Errors []string }

// Error returns all that is wrong.
func (e *ValidationError) Error() string { return "Validation Failed: " + strings.Join(e.Errors, ", ") }

// Unwrap makes it a vedette.Invalid.
func (e *ValidationError) Unwrap() error {
	return &vedette.Error{Kind: vedette.Invalid, Message: e.Error()}
}

// UnknownError is an operation that nobody here knows. It is a vedette.Invalid.
type UnknownError struct{ Operation, Provider string }

// Error says which operations there are.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("No operation %q is known for cloud provider %q: this server knows those of %s, which are %s",
		e.Operation, e.Provider, kubernetes, strings.Join(Operations(), ", "))
}

// Unwrap makes it a vedette.Invalid.
func (e *UnknownError) Unwrap() error {
	return &vedette.Error{Kind: vedette.Invalid, Message: e.Error()}
}

// work is an operation that was found to be in order.
type work struct {
	sort
	operation
	custom []vedette.CustomResource // the account's
	debug  bool                     // so is it
}

// prepare reads and judges what is submitted, before anything of it is done.
func (t *Tasks) prepare(ctx context.Context, requests []Request, o Options) ([]work, error) {
	var all []work
	var errs []string
	for _, r := range requests {
		w, row, err := t.read(ctx, r, o.Provider)
		if err != nil {
			return nil, err
		}
		found, err := t.judge(ctx, w, row, o)
		if err != nil {
			return nil, err
		}
		all, errs = append(all, w), append(errs, found...)
	}
	if len(errs) > 0 {
		slices.Sort(errs)
		return nil, &ValidationError{slices.Compact(errs)}
	}
	return all, nil
}

// read finds out which operation is meant, and for which account.
func (t *Tasks) read(ctx context.Context, r Request, provider string) (work, store.AccountRow, error) {
	s, err := sortOf(r.Name, kubernetes)
	if err != nil {
		return work{}, store.AccountRow{}, err
	}
	op, err := s.parse(r.Description)
	if err != nil {
		return work{}, store.AccountRow{}, err
	}
	if provider == "" {
		provider = op.provider()
	}
	if provider != "" && provider != kubernetes {
		return work{}, store.AccountRow{}, &UnknownError{Operation: r.Name, Provider: provider}
	}
	name := op.account()
	if name == "" && s.context != "" {
		return work{}, store.AccountRow{}, &ValidationError{[]string{s.context + "." + s.context + ".account.empty"}}
	}
	if name == "" {
		return work{}, store.AccountRow{}, vedette.Errorf(vedette.Invalid, "the description of %s names no account", r.Name)
	}
	row, err := t.cfg.Accounts.Account(ctx, name)
	if vedette.KindOf(err) == vedette.NotFound {
		return work{}, row, vedette.Errorf(vedette.Invalid, "credentials not found (name: %s): no agent has registered an account of this name", name)
	}
	return work{s, op, row.Properties.CustomResources, row.Properties.Debug}, row, err
}

// judge asks whether the caller may, and whether the description holds what it
// must.
func (t *Tasks) judge(ctx context.Context, w work, row store.AccountRow, o Options) ([]string, error) {
	v := &validation{context: w.context, properties: row.Properties}
	var err error
	if o.MayWrite != nil {
		err = o.MayWrite(ctx, row.Name)
	}
	if vedette.KindOf(err) == vedette.Denied {
		v.errs = append(v.errs, "Access denied to account "+string(row.Name))
	} else if err != nil {
		return nil, err
	}
	w.check(v)
	return v.errs, v.err
}

// validation collects what is wrong with one description.
type validation struct {
	context    string
	properties vedette.Properties
	errs       []string
	err        error // what Clouddriver stumbles over, in words
}

// reject writes the context twice, as Clouddriver does.
func (v *validation) reject(field, what string) {
	v.errs = append(v.errs, strings.Join([]string{v.context, v.context, field, what}, "."))
}

// namespace reports whether the account may be used in a namespace. None is in
// order: a cluster-scoped kind may be meant.
func (v *validation) namespace(namespace string) bool {
	p := v.properties
	switch {
	case namespace == "":
	case len(p.Namespaces) > 0 && !slices.Contains(p.Namespaces, namespace):
		v.reject(namespace, "wrongNamespace")
		return false
	case slices.Contains(p.OmitNamespaces, namespace):
		v.reject(namespace, "omittedNamespace")
		return false
	}
	return true
}

// target checks what is said of one object.
func (v *validation) target(t target, err error) bool {
	if err != nil {
		v.err = err
		return false
	}
	return v.namespace(t.namespace)
}
