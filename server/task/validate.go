package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
)

// ValidationError lists the errors of descriptions in Clouddriver's form, for example
// "scaleKubernetesManifest.scaleKubernetesManifest.shop.wrongNamespace", or as text for a
// missing permission. Its kind is vedette.Invalid.
type ValidationError struct{ Errors []string }

// Error returns all errors.
func (e *ValidationError) Error() string { return "Validation Failed: " + strings.Join(e.Errors, ", ") }

// Unwrap returns a vedette.Invalid.
func (e *ValidationError) Unwrap() error {
	return &vedette.Error{Kind: vedette.Invalid, Message: e.Error()}
}

// UnknownError is the error for an unknown operation. Its kind is vedette.Invalid.
type UnknownError struct{ Operation, Provider string }

// Error includes the known operations.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("Unknown operation %q for cloud provider %q: the operations of %s are %s",
		e.Operation, e.Provider, kubernetes, strings.Join(Operations(), ", "))
}

// Unwrap returns a vedette.Invalid.
func (e *UnknownError) Unwrap() error {
	return &vedette.Error{Kind: vedette.Invalid, Message: e.Error()}
}

type validatedOp struct {
	opSpec
	operation
	custom []vedette.CustomResource // kinds of the account
	debug  bool                     // the account's property debug
	bytes  int64                    // of memory that its description takes
	// requests are what was accepted, for another server.
	requests []Request
	// namespace is the namespace of objects without one.
	namespace string
}

// prepare parses and validates a submission before anything is executed.
func (t *Tasks) prepare(ctx context.Context, requests []Request, o Options, m *memory) ([]validatedOp, error) {
	var all []validatedOp
	var errs []string
	stored := expander{store: t.cfg.ArtifactStore, mayRead: o.MayReadApplication, memory: m}
	for i, r := range requests {
		isRemote, err := o.isRemote(ctx, r)
		if err != nil {
			return nil, err
		}
		if isRemote {
			all = o.appendRemote(all, r, m.descriptions[i])
			continue
		}
		r, err := stored.expand(ctx, i, r)
		if err != nil {
			return nil, err
		}
		op, row, err := t.resolve(ctx, r, o.Provider)
		if err != nil {
			return nil, err
		}
		problems, err := t.validate(ctx, op, row, o)
		if err != nil {
			return nil, err
		}
		op.bytes, op.requests = m.descriptions[i], []Request{r}
		all, errs = append(all, op), append(errs, problems...)
	}
	if len(errs) > 0 {
		slices.Sort(errs)
		return nil, &ValidationError{slices.Compact(errs)}
	}
	return all, nil
}

// resolve returns the operation that a request names, and its account.
func (t *Tasks) resolve(ctx context.Context, r Request, provider string) (validatedOp, registry.Account, error) {
	s, err := findOpSpec(r.Name, kubernetes)
	if err != nil {
		return validatedOp{}, registry.Account{}, err
	}
	op, err := s.parse(r.Description)
	if err != nil {
		return validatedOp{}, registry.Account{}, err
	}
	if provider == "" {
		provider = op.provider()
	}
	if provider != "" && provider != kubernetes {
		return validatedOp{}, registry.Account{}, &UnknownError{Operation: r.Name, Provider: provider}
	}
	name := op.account()
	if name == "" && s.validationContext != "" {
		return validatedOp{}, registry.Account{}, &ValidationError{[]string{s.validationContext + "." + s.validationContext + ".account.empty"}}
	}
	if name == "" {
		return validatedOp{}, registry.Account{}, vedette.Errorf(vedette.Invalid, "the description of %s has no account", r.Name)
	}
	row, err := t.cfg.Accounts.Account(ctx, name)
	if vedette.KindOf(err) == vedette.NotFound {
		return validatedOp{}, row, vedette.Errorf(vedette.Invalid,
			"credentials not found (name: %s): no agent has registered an account of this name", name)
	}
	p := row.Properties
	return validatedOp{opSpec: s, operation: op, custom: p.CustomResources, debug: p.Debug, namespace: p.NamespaceOrDefault("")}, row, err
}

// validate checks the permission of the caller and the content of the description.
func (t *Tasks) validate(ctx context.Context, op validatedOp, row registry.Account, o Options) ([]string, error) {
	v := &validation{prefix: op.validationContext, properties: row.Properties}
	var err error
	if o.MayWrite != nil {
		err = o.MayWrite(ctx, row.Name)
	}
	if vedette.KindOf(err) == vedette.Denied {
		v.errs = append(v.errs, "Access denied to account "+string(row.Name))
	} else if err != nil {
		return nil, err
	}
	op.check(v)
	return v.errs, v.err
}

// validation collects the errors of one description.
type validation struct {
	prefix     string
	properties vedette.Properties
	errs       []string
	err        error // an error that Clouddriver reports as an exception
}

// reject adds an error. The context is there twice, as in Clouddriver.
func (v *validation) reject(field, problem string) {
	v.errs = append(v.errs, strings.Join([]string{v.prefix, v.prefix, field, problem}, "."))
}

// checkNamespace reports whether the account includes a namespace. An empty namespace is
// valid, because the kind can be cluster-scoped.
func (v *validation) checkNamespace(namespace string) bool {
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

// checkTarget validates the target of an operation.
func (v *validation) checkTarget(t objectRef, err error) bool {
	if err != nil {
		v.err = err
		return false
	}
	return v.checkNamespace(t.namespace)
}
