package read

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/objectformat"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

// runManifests prints manifests, what a template makes of them, or custom columns.
func (g *getter) runManifests(ctx context.Context, resourceArgs []target.ResourceArg) error {
	p := &manifestPrinter{getter: g, items: []any{}}
	live, err := g.read(ctx, resourceArgs, func(ctx context.Context, q client.Query) (map[string]bool, error) {
		return g.forEachManifest(ctx, q, p.add)
	})
	for _, o := range live {
		if _, err := p.add(o.manifest()); err != nil {
			return err
		}
	}
	g.notices.Flush(noticesHint)
	isNamed := len(resourceArgs) == 1 && resourceArgs[0].Name != ""
	isOptional := g.ignoreNotFound && (isNamed || g.format.Columns() != nil)
	if len(p.items)+len(p.rows) == 0 && (err != nil || isOptional) {
		return err
	}
	return errors.Join(p.print(isNamed), err)
}

// manifestPrinter collects objects or, for custom columns, their cells: columns are aligned.
type manifestPrinter struct {
	*getter
	items []any
	rows  [][]string
	keys  []objectformat.Key // of the rows
}

func (p *manifestPrinter) add(o client.Object) (taken bool, err error) {
	object, err := p.decode(o)
	if object == nil || err != nil {
		return false, err
	}
	columns := p.format.Columns()
	if columns == nil {
		p.items = append(p.items, object)
		return true, nil
	}
	cells, err := columns.Row(object)
	if err != nil {
		return false, vedette.Errorf(vedette.Invalid, "%s: %w", output.ObjectPath(o.Account, o.Kind, o.Namespace, o.Name), err)
	}
	if p.keys, err = p.sorter.Append(p.keys, object); err != nil {
		return false, err
	}
	p.rows = append(p.rows, cells)
	return true, nil
}

// print prints what was added: one object that was requested by name as itself, everything else as a List, as kubectl does.
func (p *manifestPrinter) print(single bool) error {
	columns := p.format.Columns()
	if columns == nil {
		return p.printItems(single)
	}
	if err := sortBy(p.sorter, p.rows, p.keys); err != nil {
		return err
	}
	table := output.NewTextTable(columns.Header())
	for _, cells := range p.rows {
		table.Add(cells)
	}
	p.out.Table(table)
	return p.out.Flush()
}

// printItems prints a document, or by a template.
func (p *manifestPrinter) printItems(single bool) error {
	err := sortObjects(p.sorter, p.items, func(item any) (map[string]any, error) { return item.(map[string]any), nil })
	if err != nil {
		return err
	}
	document := manifests.NewList(p.items)
	if single && len(p.items) == 1 {
		document = p.items[0]
	}
	if p.format.IsTemplate() {
		return p.printTemplate(document.(map[string]any))
	}
	text, err := manifests.Encode(document, p.format.Name())
	if err != nil {
		return err
	}
	p.out.Document(text)
	return p.out.Flush()
}

// forEachManifest calls handle for all objects of a query, page by page. Handle reports whether it takes the object. It returns
// the accounts of those that were taken.
func (g *getter) forEachManifest(ctx context.Context, query client.Query,
	handle func(client.Object) (bool, error)) (map[string]bool, error) {
	query.Manifests = true
	accounts := map[string]bool{}
	for {
		page, err := g.client.Objects(ctx, query)
		if err != nil {
			return accounts, err
		}
		g.warnStale(page.Freshness)
		for _, o := range page.Items {
			taken, err := handle(o)
			if err != nil {
				return accounts, err
			}
			if taken {
				accounts[o.Account] = true
			}
		}
		query.Cursor = page.Cursor
		if query.Cursor == "" {
			return accounts, nil
		}
	}
}
