package read

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/objectformat"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

const getLong = `Show objects of all clusters, as kubectl shows the objects of one.

KIND is a kind as kubectl accepts it: pods, po, Deployment, roles, deployments.v1.apps,
crontabs.stable.example.com, or a category: all. Separate several kinds by commas. Each
cluster decides what a name means; names of Kubernetes' own kinds always mean these.

Unlike kubectl, get shows all namespaces, unless -n is given or the context has a
namespace (vedette config set-context --current --namespace NAME). -A then shows all.

Kinds that no agent caches, such as events, are read from the clusters if -n, -A, a
name or --account is given. "Not found" is said by the cluster, or by an agent that is
up to date; otherwise the error names the clusters of which it is not known.

If the agent of a cluster is not connected, or a kind cannot be watched, the objects
that were stored last are shown, and a line on standard error names the cluster and the
time of its last report.`

const getExample = `  vedette get pods                                # in all clusters and namespaces
  vedette get deploy,sts -n shop --account 'prod-*'
  vedette get pod/web-0 -o yaml
  vedette get pods -l app=web -o wide --watch
  vedette get pods -o name | head -1 | xargs vedette get -o yaml
  vedette get pods -n shop --sort-by .status.startTime -L app
  vedette get pods --field-selector status.phase!=Running -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName
  vedette get -f web.yaml -o jsonpath='{.items[*].status.conditions}'`

// getOptions are the flags of get.
type getOptions struct {
	namespace, account, selector, application, output string
	allNamespaces, watch, noHeaders                   bool
	chunkSize                                         int
	selectOptions
	printOptions

	format *objectformat.Format
}

func newGet() *cobra.Command {
	var o getOptions
	cmd := &cobra.Command{
		Use:     "get KIND[,KIND] [NAME...] | KIND/NAME... | ACCOUNT/KIND/NAMESPACE/NAME... | -f FILE",
		Short:   "Show objects of one or more clusters",
		Long:    getLong,
		Example: getExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := o.newGetter(cmd)
			if err != nil {
				return err
			}
			resourceArgs, err := g.resourceArgs(cmd, args)
			if err != nil {
				return err
			}
			return g.run(cmd.Context(), resourceArgs)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "Show only this namespace. Defaults to the namespace of the context, then to all.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show all namespaces. This is the default, unless the context has a namespace.")
	target.AddAccountsFlag(cmd, &o.account)
	flags.StringVarP(&o.selector, "selector", "l", "", "Label selector (app=web,tier!=db,app in (a,b),!old).")
	flags.StringVar(&o.application, "application", "", "Show only objects of this Spinnaker application.")
	flags.StringVarP(&o.output, "output", "o", "", objectformat.Usage)
	flags.BoolVarP(&o.watch, "watch", "w", false, "After showing the objects, watch for changes.")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Do not print the header of the table.")
	flags.IntVar(&o.chunkSize, "chunk-size", 500, "Number of objects in one request to the server. 0 for as many as the server sends at once.")
	o.selectOptions.addFlags(cmd)
	o.printOptions.addFlags(cmd)
	return cmd
}

// maxChunkSize is how many objects a server sends at once.
const maxChunkSize = 5000

func (o *getOptions) prepare() (err error) {
	o.format, err = objectformat.Parse(objectformat.Options{Output: o.output, Template: o.template, StrictKeys: !o.allowMissingKeys,
		NoHeaders: o.noHeaders})
	if err != nil {
		return err
	}
	if o.allNamespaces && o.namespace != "" {
		return vedette.Errorf(vedette.Invalid, "-n and -A exclude each other")
	}
	if o.chunkSize < 0 {
		return vedette.Errorf(vedette.Invalid, "invalid --chunk-size %d: must be 0 or more", o.chunkSize)
	}
	if o.chunkSize == 0 || o.chunkSize > maxChunkSize {
		o.chunkSize = maxChunkSize
	}
	o.watch = o.watch || o.watchOnly
	return errors.Join(o.selectOptions.prepare(), o.printOptions.prepare(o.watch, o.format))
}

// getter runs one get.
type getter struct {
	getOptions
	cmd     *cobra.Command
	client  *client.Client
	out     *output.Printer
	errOut  io.Writer
	notices output.Notices
}

func (o getOptions) newGetter(cmd *cobra.Command) (*getter, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	c, err := connect.Client(cmd)
	return &getter{cmd: cmd, client: c, getOptions: o, out: output.NewPrinter(cmd.OutOrStdout()), errOut: cmd.ErrOrStderr(),
		notices: output.Notices{Out: cmd.ErrOrStderr()}}, err
}

func (g *getter) run(ctx context.Context, resourceArgs []target.ResourceArg) error {
	switch {
	case g.watch:
		return g.runWatch(ctx, resourceArgs)
	case g.format.Columns() != nil || g.format.IsDocument() || g.format.IsTemplate():
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
	if arg.Namespace != "" { // of a file
		q.Namespace = arg.Namespace
	}
	return q
}

// runTables prints one table per kind. It prints what it found even if some objects were not
// found or could not be read.
func (g *getter) runTables(ctx context.Context, resourceArgs []target.ResourceArg) error {
	var tables []objectTable
	live, err := g.read(ctx, resourceArgs, func(ctx context.Context, q client.Query) (map[string]bool, error) {
		table, err := g.table(ctx, q)
		accounts := map[string]bool{}
		for _, row := range table.Rows {
			accounts[row.Account] = true
		}
		if err != nil || len(table.Rows) == 0 {
			return accounts, err
		}
		if last := len(tables) - 1; last >= 0 && tables[last].Kind == table.Kind {
			tables[last].append(table)
			return accounts, nil
		}
		tables = append(tables, table)
		return accounts, nil
	})
	if len(tables)+len(live) == 0 && err == nil && !g.ignoreNotFound {
		g.printNoneFound()
	}
	g.notices.Flush(noticesHint)
	return errors.Join(g.printTables(tables), g.printLive(live, len(tables)), err)
}

// printNoneFound says that there is no such object.
func (g *getter) printNoneFound() {
	text := "No resources found"
	if g.namespace != "" {
		text += " in namespace " + g.namespace
	}
	fmt.Fprintln(g.errOut, text+".")
}

// table reads all pages of a query.
func (g *getter) table(ctx context.Context, query client.Query) (objectTable, error) {
	query.Labels = g.showLabels || len(g.labelColumns) > 0
	query.Manifests = g.sorter != nil || g.fields != nil
	var all objectTable
	for {
		page, err := g.client.Table(ctx, query)
		if err != nil && query.Cursor != "" {
			err = fmt.Errorf("read objects after %d of %d: %w", len(all.Rows), all.Total, err)
		}
		if err != nil {
			return all, err
		}
		if query.Cursor == "" {
			g.warnStale(page.Freshness)
			all.Columns = page.Columns
			all.Freshness = page.Freshness
			all.Total = page.Total
		}
		if err := g.addRows(&all, page); err != nil {
			return all, err
		}
		query.Cursor = page.Cursor
		if query.Cursor == "" {
			return all, nil
		}
	}
}

func (g *getter) printTables(tables []objectTable) error {
	for i, t := range tables {
		if err := sortBy(g.sorter, t.Rows, t.keys); err != nil {
			return err
		}
		if g.format.Name() == objectformat.Name {
			for _, row := range t.Rows {
				g.out.Line(output.ObjectPath(row.Account, t.Kind, row.Namespace, row.Name))
			}
			continue
		}
		if i > 0 {
			g.out.Line("")
		}
		layout := output.NewTable(t.Columns, g.tableOptions(len(tables) > 1))
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
