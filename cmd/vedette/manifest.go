package main

import (
	"context"
	"errors"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/target"
)

// runManifests prints manifests: one object that was requested by name as itself, everything
// else as a List, as kubectl does.
func (g *getter) runManifests(ctx context.Context, resourceArgs []target.ResourceArg) error {
	items := []any{}
	var errs []error
	for _, arg := range resourceArgs {
		found, err := g.manifests(ctx, arg)
		errs = append(errs, err)
		items = append(items, found...)
	}
	err := errors.Join(errs...)
	if len(items) == 0 && err != nil {
		return err
	}
	document := manifests.NewList(items)
	if len(resourceArgs) == 1 && resourceArgs[0].Name != "" && len(items) == 1 {
		document = items[0]
	}
	return errors.Join(g.printDocument(document), err)
}

func (g *getter) manifests(ctx context.Context, arg target.ResourceArg) ([]any, error) {
	query := g.query(arg)
	query.Manifests = true
	var found []any
	for {
		page, err := g.client.Objects(ctx, query)
		if err != nil {
			return found, err
		}
		g.warnStale(page.Freshness)
		for _, o := range page.Items {
			m, err := manifests.WithAccountAnnotation(o)
			if err != nil {
				return found, err
			}
			found = append(found, m)
		}
		if query.Cursor = page.Cursor; query.Cursor == "" {
			return found, arg.NotFoundError(len(found))
		}
	}
}

func (g *getter) printDocument(document any) error {
	text, err := manifests.Encode(document, g.output)
	if err != nil {
		return err
	}
	g.out.Line(text)
	return g.out.Flush()
}
