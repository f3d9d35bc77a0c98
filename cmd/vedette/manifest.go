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
	cached := false
	for _, arg := range resourceArgs {
		found, kindCached, err := g.manifests(ctx, arg)
		cached = cached || kindCached
		errs = append(errs, err)
		items = append(items, found...)
	}
	err := errors.Join(errs...)
	switch {
	case len(items) == 0 && mustReadLive(resourceArgs, cached, err) && (g.canReadLive() || err != nil):
		return g.runLive(ctx, resourceArgs, err)
	case len(items) == 0 && err != nil:
		return err
	}
	document := manifests.NewList(items)
	if len(resourceArgs) == 1 && resourceArgs[0].Name != "" && len(items) == 1 {
		document = items[0]
	}
	return errors.Join(g.printDocument(document), err)
}

// manifests reads all pages of an argument's objects, and reports whether an account caches
// the kind.
func (g *getter) manifests(ctx context.Context, arg target.ResourceArg) (found []any, cached bool, err error) {
	query := g.query(arg)
	query.Manifests = true
	for {
		page, err := g.client.Objects(ctx, query)
		if err != nil {
			return found, cached, err
		}
		cached = cached || page.IsCached()
		g.warnStale(page.Freshness)
		for _, o := range page.Items {
			m, err := manifests.WithAccountAnnotation(o)
			if err != nil {
				return found, cached, err
			}
			found = append(found, m)
		}
		query.Cursor = page.Cursor
		if query.Cursor == "" {
			return found, cached, arg.NotFoundError(len(found))
		}
	}
}

func (g *getter) printDocument(document any) error {
	text, err := manifests.Encode(document, g.output)
	if err != nil {
		return err
	}
	g.out.Document(text)
	return g.out.Flush()
}
