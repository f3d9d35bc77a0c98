package read

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/objectformat"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/tables"
)

// selectOptions are the flags of get that choose objects and their order.
type selectOptions struct {
	fieldSelector, sortBy, subresource string
	files                              manifests.Options
	ignoreNotFound                     bool

	fields *objectformat.FieldSelector // nil without --field-selector
	sorter *objectformat.Sorter        // nil without --sort-by
}

func (o *selectOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.fieldSelector, "field-selector", "",
		"Field selector (status.phase=Running,spec.nodeName!=a). Fields that agents report are evaluated by the command, others by the clusters.")
	flags.StringVar(&o.sortBy, "sort-by", "", "Sort the objects of all accounts by a JSONPath expression (.metadata.creationTimestamp).")
	flags.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "Succeed without output if an object does not exist.")
	flags.StringVar(&o.subresource, "subresource", "", "Not supported: says what to use instead.")
	o.files.AddFileFlags(cmd)
}

func (o *selectOptions) prepare() (err error) {
	switch o.subresource {
	case "":
	case "status":
		return vedette.Errorf(vedette.Invalid, "--subresource is not supported: the status is part of the object, see -o yaml or -o jsonpath={.status}")
	case "scale":
		return vedette.Errorf(vedette.Invalid, "--subresource is not supported: use -o jsonpath={.spec.replicas}, and `vedette scale` to change it")
	default:
		return vedette.Errorf(vedette.Invalid, "--subresource is not supported: agents read whole objects, see -o yaml")
	}
	if o.fields, err = objectformat.ParseFieldSelector(o.fieldSelector); err != nil {
		return err
	}
	o.sorter, err = objectformat.NewSorter(o.sortBy)
	return err
}

// resourceArgs returns what the arguments, or the files of -f, name.
func (o *getOptions) resourceArgs(cmd *cobra.Command, args []string) ([]target.ResourceArg, error) {
	switch {
	case len(o.files.Files) == 0 && len(args) == 0:
		return nil, vedette.Errorf(vedette.Invalid, "requires at least 1 arg, or -f: the usage is %s", cmd.UseLine())
	case len(o.files.Files) == 0:
		resourceArgs, err := target.ParseResourceArgs(args)
		if err == nil && o.fields != nil && slices.ContainsFunc(resourceArgs, func(arg target.ResourceArg) bool { return arg.Name != "" }) {
			err = vedette.Errorf(vedette.Invalid, "name cannot be provided when a selector is specified")
		}
		return resourceArgs, err
	case len(args) > 0:
		return nil, vedette.Errorf(vedette.Invalid, "arguments and -f exclude each other")
	case o.selector != "" || o.fields != nil:
		return nil, vedette.Errorf(vedette.Invalid, "-f names objects: it excludes -l and --field-selector")
	}
	o.files.Namespace = o.namespace
	found, err := o.files.Load(cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	if len(found.LoadErrors) > 0 { // an object that is left out would look like one that does not exist
		return nil, found.LoadErrors[0]
	}
	var resourceArgs []target.ResourceArg
	for _, d := range found.Documents {
		if err := d.CheckName(); err != nil {
			return nil, err
		}
		kind := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).GroupKind().String()
		resourceArgs = append(resourceArgs, target.ResourceArg{Kind: kind, Namespace: d.Metadata.Namespace, Name: d.Metadata.Name})
	}
	return resourceArgs, nil
}

// kindOf returns the kind that every cluster serves under a name, or the zero Kind.
func kindOf(name string) vedette.Kind {
	known, err := tables.FindResource(nil, name)
	if err != nil {
		return vedette.Kind{}
	}
	return known.Kind
}

// objectTable is a table of the objects of one kind, and their keys if it is to be sorted.
type objectTable struct {
	client.Table
	keys []objectformat.Key
}

func (t *objectTable) append(other objectTable) {
	t.Rows, t.keys = append(t.Rows, other.Rows...), append(t.keys, other.keys...)
}

// addRows adds the rows of a page that match. It keeps no manifests, because they are a hundred times as large.
func (g *getter) addRows(all *objectTable, page client.Table) error {
	if g.sorter == nil && g.fields == nil {
		all.Rows = append(all.Rows, page.Rows...)
		return nil
	}
	kind := vedette.ParseKind(page.Kind)
	for _, row := range page.Rows {
		object, err := decodeRow(kind, row)
		if err != nil {
			return err
		}
		if g.fields != nil && !g.fields.Matches(kind, object) {
			continue
		}
		if all.keys, err = g.sorter.Append(all.keys, object); err != nil {
			return err
		}
		row.Labels, row.Manifest = (&unstructured.Unstructured{Object: object}).GetLabels(), nil
		all.Rows = append(all.Rows, row)
	}
	return nil
}

// decodeRow returns the object of a row.
func decodeRow(kind vedette.Kind, row client.Row) (map[string]any, error) {
	if row.Manifest == nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the server sent %s %s of account %s without its manifest: it is of an earlier version, or the object is broken",
			kind, row.Name, row.Account)
	}
	object, err := manifests.Decode(row.Manifest)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s %s of account %s: %w", kind, row.Name, row.Account, err)
	}
	objectformat.ConvertNumbers(object)
	return object, nil
}

// sortObjects sorts items by the objects that they stand for.
func sortObjects[T any](by *objectformat.Sorter, items []T, objectOf func(T) (map[string]any, error)) error {
	var keys []objectformat.Key
	for _, item := range items {
		object, err := objectOf(item)
		if err != nil {
			return err
		}
		if keys, err = by.Append(keys, object); err != nil {
			return err
		}
	}
	return sortBy(by, items, keys)
}

// sortBy sorts items, each of which has a key. Without a sorter they stay in their order.
func sortBy[T any](by *objectformat.Sorter, items []T, keys []objectformat.Key) error {
	if by == nil {
		return nil
	}
	type keyed struct {
		item T
		key  objectformat.Key
	}
	all := make([]keyed, len(items))
	for i := range items {
		all[i] = keyed{items[i], keys[i]}
	}
	err := objectformat.Sort(by, all, func(k keyed) objectformat.Key { return k.key })
	for i := range all {
		items[i] = all[i].item
	}
	return err
}
