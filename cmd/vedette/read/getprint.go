package read

import (
	"bytes"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/objectformat"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// printOptions are the flags of get that say what is printed of each object.
type printOptions struct {
	template                               string
	allowMissingKeys, showLabels, showKind bool
	outputWatchEvents, watchOnly           bool
	labelColumns                           []string
}

func (o *printOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.addTemplateFlags(flags)
	flags.BoolVar(&o.showLabels, "show-labels", false, "Add a column with all labels.")
	flags.StringSliceVarP(&o.labelColumns, "label-columns", "L", nil, "Labels to show as columns, separated by commas.")
	flags.BoolVar(&o.showKind, "show-kind", false, "Show names as kind/name.")
	flags.BoolVar(&o.watchOnly, "watch-only", false, "Watch for changes, without showing the objects first.")
	flags.BoolVar(&o.outputWatchEvents, "output-watch-events", false, "With --watch, print the type of each event: ADDED, MODIFIED or DELETED.")
}

func (o *printOptions) addTemplateFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.template, "template", "", "Template for -o go-template or jsonpath. Without -o, a Go template.")
	flags.BoolVar(&o.allowMissingKeys, "allow-missing-template-keys", true, "Templates print nothing for a missing key. If false, they fail.")
}

func (o *printOptions) prepare(watch bool, format *objectformat.Format) error {
	switch {
	case o.outputWatchEvents && !watch:
		return vedette.Errorf(vedette.Invalid, "--output-watch-events option can only be used with --watch or --watch-only")
	case o.showLabels && !format.IsTable():
		return vedette.Errorf(vedette.Invalid, "--show-labels option cannot be used with %s printer", format.Name())
	case o.template != "" && !format.IsTemplate() && format.Columns() == nil:
		return vedette.Errorf(vedette.Invalid, "--template needs -o go-template or -o jsonpath")
	}
	return nil
}

// newTextTable returns a table with a header, unless --no-headers is given.
func (g *getter) newTextTable(header ...string) *output.Table {
	if g.noHeaders {
		header = nil
	}
	return output.NewTextTable(header)
}

func (g *getter) tableOptions(severalKinds bool) output.TableOptions {
	return output.TableOptions{Wide: g.format.Name() == objectformat.Wide, WithKind: g.showKind || severalKinds,
		WithEvents: g.outputWatchEvents, Labels: g.labelColumns, AllLabels: g.showLabels}
}

// decode returns an object with its account and with numbers as templates expect them; nil if the field selector
// does not match.
func (g *getter) decode(o client.Object) (map[string]any, error) {
	object, err := manifests.WithAccountAnnotation(o)
	if err != nil {
		return nil, err
	}
	if g.fields == nil && g.sorter == nil && g.format.IsDocument() {
		return object, nil // numbers stay as they were written
	}
	objectformat.ConvertNumbers(object)
	if kind := vedette.ParseKind(o.Kind); g.fields != nil && g.fields.IsCached(kind) && !g.fields.Matches(kind, object) {
		return nil, nil
	}
	return object, nil
}

// printTemplate prints the output of a template as it is, without a line feed, as kubectl does.
func (g *getter) printTemplate(document map[string]any) error {
	var b bytes.Buffer
	if err := g.format.Print(&b, document); err != nil {
		return err
	}
	g.out.Text(b.String())
	return g.out.Flush()
}
