package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

const getLong = `Show objects of all clusters, as kubectl shows the objects of one.

KIND is a kind as kubectl accepts it: pods, po, Deployment, deploy,
crontabs.stable.example.com. Separate several kinds by commas. If several API groups
have a kind of that name, the kind of Kubernetes itself is used.

All namespaces are shown unless -n is given. -A is accepted because kubectl needs it.

Kinds that no agent caches, such as events, are read from the clusters if -n, -A or
--account is given.

If the agent of a cluster is not connected, or a kind cannot be watched, the objects
that were stored last are shown, and a line on standard error names the cluster and the
time of its last report.`

const getExample = `  vedette get pods                                # in all clusters and namespaces
  vedette get deploy,sts -n shop --account 'prod-*'
  vedette get pod/web-0 -o yaml
  vedette get pods -l app=web -o wide --watch
  vedette get pods -o name | head -1 | xargs vedette get -o yaml`

// getOptions are the flags of get.
type getOptions struct {
	namespace, account, selector, application, output string
	allNamespaces, watch, noHeaders                   bool
	chunkSize                                         int
}

func newGet() *cobra.Command {
	var o getOptions
	cmd := &cobra.Command{
		Use:     "get KIND[,KIND] [NAME...] | KIND/NAME... | ACCOUNT/KIND/NAMESPACE/NAME...",
		Short:   "Show objects of one or more clusters",
		Long:    getLong,
		Example: getExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			c, err := connect.Client(cmd)
			if err != nil {
				return err
			}
			resourceArgs, err := target.ParseResourceArgs(args)
			if err != nil {
				return err
			}
			g := &getter{cmd: cmd, client: c, getOptions: o, out: output.NewPrinter(cmd.OutOrStdout()), errOut: cmd.ErrOrStderr(),
				warned: map[string]bool{}}
			return g.run(cmd.Context(), resourceArgs)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "Show only this namespace.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show all namespaces. This is the default.")
	flags.StringVar(&o.account, "account", "", "Account, pattern of accounts (prod-*), or comma-separated accounts. Defaults to all accounts.")
	flags.StringVarP(&o.selector, "selector", "l", "", "Label selector (app=web,tier!=db).")
	flags.StringVar(&o.application, "application", "", "Show only objects of this Spinnaker application.")
	flags.StringVarP(&o.output, "output", "o", "", "Output format: wide, json, yaml or name. Defaults to a table.")
	flags.BoolVarP(&o.watch, "watch", "w", false, "After showing the objects, watch for changes.")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Do not print the header of the table.")
	flags.IntVar(&o.chunkSize, "chunk-size", 500, "Number of objects in one request to the server, up to 5000.")
	return cmd
}

func (o getOptions) validate() error {
	switch o.output {
	case "", "wide", "json", "yaml", "name":
	default:
		return vedette.Errorf(vedette.Invalid, "invalid output format %q: use -o wide, json, yaml or name", o.output)
	}
	if o.allNamespaces && o.namespace != "" {
		return vedette.Errorf(vedette.Invalid, "-n and -A exclude each other")
	}
	if o.chunkSize < 1 || o.chunkSize > 5000 {
		return vedette.Errorf(vedette.Invalid, "invalid --chunk-size %d: must be between 1 and 5000", o.chunkSize)
	}
	return nil
}

// getter runs one get.
type getter struct {
	getOptions
	cmd    *cobra.Command
	client *client.Client
	out    *output.Printer
	errOut io.Writer
	warned map[string]bool // warnings that were printed
}

func (g *getter) run(ctx context.Context, resourceArgs []target.ResourceArg) error {
	switch {
	case g.watch:
		return g.runWatch(ctx, resourceArgs)
	case g.output == "json" || g.output == "yaml":
		return g.runManifests(ctx, resourceArgs)
	default:
		return g.runTables(ctx, resourceArgs)
	}
}

func (g *getter) query(arg target.ResourceArg) client.Query {
	q := client.Query{Account: g.account, Kind: arg.Kind, Namespace: g.namespace, Name: arg.Name, Application: g.application,
		Selector: g.selector, Limit: g.chunkSize}
	if arg.Account != "" {
		q.Account, q.Namespace = arg.Account, arg.Namespace
	}
	return q
}

// runTables prints one table per kind. It prints what it found even if some objects were not
// found or could not be read.
func (g *getter) runTables(ctx context.Context, resourceArgs []target.ResourceArg) error {
	var tables []client.Table
	var errs []error
	cached := false
	for _, arg := range resourceArgs {
		table, err := g.table(ctx, arg)
		errs = append(errs, err)
		cached = cached || table.IsCached()
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
	if len(tables) == 0 {
		if mustReadLive(resourceArgs, cached, err) {
			return g.runLive(ctx, resourceArgs, err)
		}
		if err == nil {
			g.printNoneFound(resourceArgs, cached)
		}
	}
	return errors.Join(g.printTables(tables), err)
}

// printNoneFound says that there is no such object, or that no agent watches the kind. In
// the second case the clusters may have many.
func (g *getter) printNoneFound(resourceArgs []target.ResourceArg, cached bool) {
	text := "No resources found"
	if g.namespace != "" {
		text += " in namespace " + g.namespace
	}
	if !cached {
		text += ": " + g.notCachedHint(resourceArgs)
	}
	fmt.Fprintln(g.errOut, text+".")
}

func (g *getter) notCachedHint(resourceArgs []target.ResourceArg) string {
	kinds := map[string]bool{}
	for _, arg := range resourceArgs {
		kinds[arg.Kind] = true
	}
	names, accounts := strings.Join(slices.Sorted(maps.Keys(kinds)), ", "), ""
	if g.account != "" {
		accounts = " matching " + g.account
	}
	return fmt.Sprintf("no account%s caches %s", accounts, names) + g.liveHint()
}

// table reads all pages of an argument's objects.
func (g *getter) table(ctx context.Context, arg target.ResourceArg) (client.Table, error) {
	query := g.query(arg)
	all, err := g.client.Table(ctx, query)
	if err != nil {
		return all, err
	}
	g.warnStale(all.Freshness)
	for next := all.Cursor; next != ""; {
		query.Cursor = next
		page, err := g.client.Table(ctx, query)
		if err != nil {
			return all, fmt.Errorf("read objects after %d of %d: %w", len(all.Rows), all.Total, err)
		}
		all.Rows = append(all.Rows, page.Rows...)
		next = page.Cursor
	}
	return all, arg.NotFoundError(len(all.Rows))
}

func (g *getter) printTables(tables []client.Table) error {
	for i, t := range tables {
		if g.output == "name" {
			for _, row := range t.Rows {
				g.out.Line(output.ObjectPath(row.Account, t.Kind, row.Namespace, row.Name))
			}
			continue
		}
		if i > 0 {
			g.out.Line("")
		}
		layout := output.NewTable(t.Columns, g.output == "wide", len(tables) > 1)
		if !g.noHeaders {
			layout.Add(layout.Header())
		}
		for _, row := range t.Rows {
			layout.Add(layout.Row(row))
		}
		g.out.Table(layout)
	}
	return g.out.Flush()
}
