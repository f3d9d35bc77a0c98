package fleet

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// listFormat is the flag -o of commands that list accounts, agents, feeds or operations.
type listFormat struct{ value string }

func (f *listFormat) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.value, "output", "o", "", "Output format: wide, json, yaml or name. Defaults to a table.")
}

// withClient is the function withClient for commands with the flag.
func (f *listFormat) withClient(run func(cmd *cobra.Command, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f.validate(); err != nil {
			return err
		}
		return withClient(run)(cmd, args)
	}
}

func (f listFormat) validate() error {
	return output.CheckFormat(f.value, "wide", "json", "yaml", "name")
}

func (f listFormat) isTable() bool { return f.value == "" || f.value == "wide" }

// listLayout says how to print the items of a list. A row has the cells of both headers, whose
// columns are separated by "|".
type listLayout[T any] struct {
	header, wideHeader string
	name               func(T) string
	row                func(T) []string
}

// printList prints all items. JSON and YAML have all fields that the server sent, in an object with
// the field items, also for a single item.
func printList[T any](cmd *cobra.Command, format listFormat, items []client.Item[T], layout listLayout[T]) error {
	out := output.NewPrinter(cmd.OutOrStdout())
	switch format.value {
	case "json", "yaml":
		return printDocument(cmd, listDocument(items), format.value)
	case "name":
		for _, item := range items {
			out.Line(layout.name(item.Value))
		}
		return out.Flush()
	}
	return output.PrintTable(cmd.OutOrStdout(), cmd.ErrOrStderr(), layout.headerOf(format), layout.rows(items, format))
}

// listDocument returns what the server sent of items, as JSON and YAML show it.
func listDocument[T any](items []client.Item[T]) map[string]any {
	raw := make([]json.RawMessage, len(items))
	for i := range items {
		raw[i] = items[i].Raw
	}
	return map[string]any{"items": raw}
}

// printDocument prints a document as JSON or YAML.
func printDocument(cmd *cobra.Command, document any, format string) error {
	text, err := manifests.Encode(document, format)
	if err != nil {
		return err
	}
	out := output.NewPrinter(cmd.OutOrStdout())
	out.Document(text)
	return out.Flush()
}

func (l listLayout[T]) headerOf(format listFormat) string {
	if format.value == "wide" {
		return l.header + "|" + l.wideHeader
	}
	return l.header
}

func (l listLayout[T]) rows(items []client.Item[T], format listFormat) [][]string {
	var rows [][]string
	columns := strings.Count(l.headerOf(format), "|") + 1
	for _, item := range items {
		rows = append(rows, l.row(item.Value)[:columns])
	}
	return rows
}
