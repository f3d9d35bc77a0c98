package read

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

const apiResourcesLong = `List the kinds that the clusters serve, as kubectl api-resources does for one.

ACCOUNTS says how many of the clusters serve a kind: all, or N of M. APIVERSION is the
version that a cluster prefers. If clusters prefer different versions, all are listed, the
most frequent one first. -o wide names the clusters.

Clusters that do not answer are named on standard error, and the command fails.`

const apiResourcesExample = `  vedette api-resources
  vedette api-resources --account 'prod-*' --api-group apps -o wide
  vedette api-resources --namespaced=false --verbs list,watch --sort-by kind
  vedette api-resources --categories all -o name`

type apiResourcesOptions struct {
	account, group, output, sortBy string
	verbs, categories              []string
	namespaced, noHeaders          bool
}

func newAPIResources() *cobra.Command {
	var o apiResourcesOptions
	cmd := &cobra.Command{
		Use:     "api-resources",
		Short:   "List the kinds that one or more clusters serve",
		Long:    apiResourcesLong,
		Example: apiResourcesExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			c, err := connect.Client(cmd)
			if err != nil {
				return err
			}
			served, err := c.ServedKinds(cmd.Context(), o.account, "")
			if err != nil {
				return err
			}
			flags := cmd.Flags()
			kinds := slices.DeleteFunc(served.Items, func(k client.ServedKind) bool {
				return flags.Changed("api-group") && k.Group != o.group || flags.Changed("namespaced") && k.Namespaced != o.namespaced || !o.selects(k)
			})
			o.sort(kinds)
			if err := o.print(cmd, kinds, served.Accounts); err != nil {
				return err
			}
			return unknownKinds(cmd, served)
		},
	}
	flags := cmd.Flags()
	target.AddAccountsFlag(cmd, &o.account)
	flags.StringVar(&o.group, "api-group", "", "Show only kinds of this API group. Empty for the core group.")
	flags.BoolVar(&o.namespaced, "namespaced", true, "Show only kinds with a namespace, or with false only kinds without one. Defaults to both.")
	flags.StringSliceVar(&o.verbs, "verbs", nil, "Show only kinds that support all of these verbs.")
	flags.StringSliceVar(&o.categories, "categories", nil, "Show only kinds that belong to all of these categories.")
	flags.StringVarP(&o.output, "output", "o", "", "Output format: wide or name. Defaults to a table.")
	flags.StringVar(&o.sortBy, "sort-by", "", "Sort by name or kind. Defaults to the API group, and then the name.")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Do not print the header of the table.")
	return cmd
}

func (o apiResourcesOptions) validate() error {
	if err := output.CheckFormat(o.output, "wide", "name"); err != nil {
		return err
	}
	if !slices.Contains([]string{"", "name", "kind"}, o.sortBy) {
		return vedette.Errorf(vedette.Invalid, "invalid --sort-by %q: use name or kind", o.sortBy)
	}
	return nil
}

// selects reports whether a kind has all verbs and categories.
func (o apiResourcesOptions) selects(k client.ServedKind) bool {
	for _, verb := range o.verbs {
		if !slices.Contains(k.Verbs, verb) {
			return false
		}
	}
	for _, category := range o.categories {
		if !slices.Contains(k.Categories, category) {
			return false
		}
	}
	return true
}

func (o apiResourcesOptions) sort(kinds []client.ServedKind) {
	switch o.sortBy {
	case "name":
		slices.SortStableFunc(kinds, func(x, y client.ServedKind) int { return cmp.Compare(x.Plural, y.Plural) })
	case "kind":
		slices.SortStableFunc(kinds, func(x, y client.ServedKind) int { return cmp.Compare(x.Kind, y.Kind) })
	}
}

func (o apiResourcesOptions) print(cmd *cobra.Command, kinds []client.ServedKind, accounts int) error {
	out := output.NewPrinter(cmd.OutOrStdout())
	if o.output == "name" {
		for _, k := range kinds {
			out.Line(qualifiedPlural(k))
		}
		return out.Flush()
	}
	if len(kinds) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "No resources found.")
		return nil
	}
	header := []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "ACCOUNTS"}
	if o.output == "wide" {
		header = []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "VERBS", "CATEGORIES", "ACCOUNTS", "ACCOUNT NAMES"}
	}
	if o.noHeaders {
		header = nil
	}
	table := output.NewTextTable(header)
	for _, k := range kinds {
		kind, _, _ := strings.Cut(k.Kind, ".")
		cells := []string{k.Plural, strings.Join(k.ShortNames, ","), apiVersionsOf(k), strconv.FormatBool(k.Namespaced), kind}
		if o.output == "wide" {
			cells = append(cells, strings.Join(k.Verbs, ","), strings.Join(k.Categories, ","), servingAccounts(k, accounts), accountNamesOf(k))
		} else {
			cells = append(cells, servingAccounts(k, accounts))
		}
		table.Add(cells)
	}
	out.Table(table)
	return out.Flush()
}

func qualifiedPlural(k client.ServedKind) string {
	if k.Group == "" {
		return k.Plural
	}
	return k.Plural + "." + k.Group
}

// apiVersionsOf returns the versions that clusters prefer: "apps/v1", or "example.com/v1,v1beta1" if they differ.
func apiVersionsOf(k client.ServedKind) string {
	var versions []string
	for _, v := range k.Versions {
		versions = append(versions, v.Version)
	}
	text := strings.Join(versions, ",")
	if k.Group == "" {
		return text
	}
	return k.Group + "/" + text
}

func servingAccounts(k client.ServedKind, accounts int) string {
	if k.AccountCount == accounts {
		return "all"
	}
	return fmt.Sprintf("%d of %d", k.AccountCount, accounts)
}

// accountNamesOf returns the accounts whose clusters serve a kind, by version if they differ.
func accountNamesOf(k client.ServedKind) string {
	var texts []string
	for _, v := range k.Versions {
		text := strings.Join(v.Accounts, ",")
		if more := v.AccountCount - len(v.Accounts); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		if len(k.Versions) > 1 {
			text = v.Version + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// unknownKinds prints the accounts whose clusters have not answered. A list without them is not whole.
func unknownKinds(cmd *cobra.Command, served client.ServedKinds) error {
	notices := output.Notices{Out: cmd.ErrOrStderr()}
	for _, note := range served.Unknown {
		notices.Add(note.Account, fmt.Sprintf("%s: it is not known what its cluster serves: %s", note.Account, note.Message))
	}
	notices.Flush("see `vedette accounts`")
	if len(served.Unknown) == 0 {
		return nil
	}
	return vedette.Errorf(vedette.Unavailable, "%d of %s did not answer, so the list may not be complete", len(served.Unknown),
		output.Count(served.Accounts, "cluster"))
}
