package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

const getLong = `Show objects of all clusters, as kubectl shows those of one.

KIND is a kind as kubectl takes it: pods, po, Deployment, deploy, crontabs.stable.example.com;
several are joined by commas. A kind without a group means Kubernetes' own where there
are several of that name.

Over many clusters it is rare to mean one namespace, so without -n all namespaces are
shown; -A says the same and is there for the fingers' sake.

Where a cluster's agent is away, or a kind cannot be watched, what was stored last is
shown, and a line on the error output tells which cluster and since when.`

const getExample = `  vedette get pods                                # of all clusters and namespaces
  vedette get deploy,sts -n shop --account 'prod-*'
  vedette get pod/web-0 -o yaml
  vedette get pods -l app=web -o wide --watch
  vedette get pods -o name | head -1 | xargs vedette get -o yaml`

// getOptions are the flags of get.
type getOptions struct {
	namespace, account, selector, application, output string
	allNamespaces, watch, noHeaders                   bool
	chunk                                             int
}

func newGet() *cobra.Command {
	var o getOptions
	cmd := &cobra.Command{
		Use:     "get KIND[,KIND] [NAME...] | KIND/NAME... | ACCOUNT/KIND/NAMESPACE/NAME...",
		Short:   "Show objects of all clusters",
		Long:    getLong,
		Example: getExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			c, err := connect(cmd)
			if err != nil {
				return err
			}
			targets, err := parseTargets(args)
			if err != nil {
				return err
			}
			g := &getter{client: c, getOptions: o, out: newPrinter(cmd.OutOrStdout()), errOut: cmd.ErrOrStderr(), told: map[string]bool{}}
			return g.run(cmd.Context(), targets)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "only this namespace")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "all namespaces, which is the default")
	flags.StringVar(&o.account, "account", "", "only accounts of this name or pattern (prod-*), or several joined by commas")
	flags.StringVarP(&o.selector, "selector", "l", "", "only objects with these labels (app=web,tier!=db)")
	flags.StringVar(&o.application, "application", "", "only objects of this Spinnaker application")
	flags.StringVarP(&o.output, "output", "o", "", "wide, json, yaml or name; a table if not given")
	flags.BoolVarP(&o.watch, "watch", "w", false, "go on to show what changes")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "leave out the heads of columns")
	flags.IntVar(&o.chunk, "chunk-size", 500, "objects to ask the server for at once, up to 5000")
	return cmd
}

func (o getOptions) validate() error {
	switch o.output {
	case "", "wide", "json", "yaml", "name":
	default:
		return vedette.Errorf(vedette.Invalid, "there is no output format %q: write wide, json, yaml or name after -o", o.output)
	}
	if o.allNamespaces && o.namespace != "" {
		return vedette.Errorf(vedette.Invalid, "-n names one namespace and -A means all of them: leave one out")
	}
	if o.chunk < 1 || o.chunk > 5000 {
		return vedette.Errorf(vedette.Invalid, "the chunk size %d is not between 1 and 5000", o.chunk)
	}
	return nil
}

// target is one thing that was asked for.
type target struct {
	account, kind, namespace, name string // all but the kind may be empty
}

// parseTargets reads the arguments of get in any of its three forms, which can't
// be mixed up: a kind never has a slash, nor has a name.
func parseTargets(args []string) ([]target, error) {
	if !strings.Contains(args[0], "/") {
		return parseKindsAndNames(args)
	}
	var targets []target
	for _, arg := range args {
		parts := strings.Split(arg, "/")
		for _, p := range parts {
			if p == "" {
				return nil, vedette.Errorf(vedette.Invalid, "%q has an empty part: write KIND/NAME or ACCOUNT/KIND/NAMESPACE/NAME", arg)
			}
		}
		switch len(parts) {
		case 2:
			targets = append(targets, target{kind: parts[0], name: parts[1]})
		case 4:
			if parts[2] == "_" { // stands for no namespace
				parts[2] = ""
			}
			targets = append(targets, target{account: parts[0], kind: parts[1], namespace: parts[2], name: parts[3]})
		default:
			return nil, vedette.Errorf(vedette.Invalid, "%q is neither KIND/NAME nor ACCOUNT/KIND/NAMESPACE/NAME", arg)
		}
	}
	return targets, nil
}

func parseKindsAndNames(args []string) ([]target, error) {
	var targets []target
	for kind := range strings.SplitSeq(args[0], ",") {
		if kind == "" {
			return nil, vedette.Errorf(vedette.Invalid, "%q names an empty kind", args[0])
		}
		if len(args) == 1 {
			targets = append(targets, target{kind: kind})
		}
		for _, name := range args[1:] {
			if strings.Contains(name, "/") {
				return nil, vedette.Errorf(vedette.Invalid, "%q follows the kind %s and must be a name alone: write KIND NAME or KIND/NAME", name, args[0])
			}
			targets = append(targets, target{kind: kind, name: name})
		}
	}
	return targets, nil
}

// getter answers one get.
type getter struct {
	getOptions
	client *client.Client
	out    *printer
	errOut io.Writer
	told   map[string]bool // warnings, each of which is given once
}

func (g *getter) run(ctx context.Context, targets []target) error {
	switch {
	case g.watch:
		return g.runWatch(ctx, targets)
	case g.output == "json" || g.output == "yaml":
		return g.runManifests(ctx, targets)
	default:
		return g.runTables(ctx, targets)
	}
}

func (g *getter) query(t target) client.Query {
	q := client.Query{Account: g.account, Kind: t.kind, Namespace: g.namespace, Name: t.name, Application: g.application,
		Selector: g.selector, Limit: g.chunk}
	if t.account != "" {
		q.Account, q.Namespace = t.account, t.namespace
	}
	return q
}

// runTables shows a table per kind. What was found is shown even where some of
// it was not, or could not be read.
func (g *getter) runTables(ctx context.Context, targets []target) error {
	var tables []client.Table
	var errs []error
	cached := false
	for _, t := range targets {
		table, err := g.table(ctx, t)
		errs = append(errs, err)
		cached = cached || len(table.Freshness) > 0
		if err != nil || len(table.Rows) == 0 {
			continue
		}
		if last := len(tables) - 1; last >= 0 && tables[last].Kind == table.Kind {
			tables[last].Rows = append(tables[last].Rows, table.Rows...)
			continue
		}
		tables = append(tables, table)
	}
	err := errors.Join(errs...)
	if len(tables) == 0 && err == nil {
		g.nothing(cached)
	}
	return errors.Join(g.printTables(tables), err)
}

// nothing tells two sorts of nothing apart: that there is none, and that nobody
// looks.
func (g *getter) nothing(cached bool) {
	text := "No resources found"
	if g.namespace != "" {
		text += " in namespace " + g.namespace
	}
	if !cached {
		text += ": no account that was asked for caches such a kind"
	}
	fmt.Fprintln(g.errOut, text+".")
}

// table reads all pages of a target.
func (g *getter) table(ctx context.Context, t target) (client.Table, error) {
	query := g.query(t)
	all, err := g.client.Table(ctx, query)
	if err != nil {
		return all, err
	}
	g.warn(all.Freshness)
	for next := all.Cursor; next != ""; {
		query.Cursor = next
		page, err := g.client.Table(ctx, query)
		if err != nil {
			return all, fmt.Errorf("after %d of %d objects: %w", len(all.Rows), all.Total, err)
		}
		all.Rows = append(all.Rows, page.Rows...)
		next = page.Cursor
	}
	return all, t.missing(len(all.Rows))
}

// missing is the error of a name that nothing has.
func (t target) missing(found int) error {
	if t.name == "" || found > 0 {
		return nil
	}
	where := ""
	if t.account != "" {
		where = " in " + t.account
	}
	return vedette.Errorf(vedette.NotFound, "%s %q not found%s", t.kind, t.name, where)
}

func (g *getter) printTables(tables []client.Table) error {
	for i, t := range tables {
		if g.output == "name" {
			for _, row := range t.Rows {
				g.out.line(path(row.Account, t.Kind, row.Namespace, row.Name))
			}
			continue
		}
		if i > 0 {
			g.out.line("")
		}
		layout := newLayout(t.Columns, g.output == "wide", len(tables) > 1)
		if !g.noHeaders {
			layout.add(layout.header())
		}
		for _, row := range t.Rows {
			layout.add(layout.row(row))
		}
		g.out.table(layout)
	}
	return g.out.flush()
}

// path is how an object is named in the API's paths, and how get takes it.
func path(account, kind, namespace, name string) string {
	if namespace == "" {
		namespace = "_"
	}
	return account + "/" + kind + "/" + namespace + "/" + name
}
