package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// PrintTable prints a table. The header's columns are separated by "|"; without any, there is no header.
func PrintTable(out, errOut io.Writer, header string, rows [][]string) error {
	if len(rows) == 0 {
		fmt.Fprintln(errOut, "No resources found.")
		return nil
	}
	var columns []string
	if header != "" {
		columns = strings.Split(header, "|")
	}
	t := NewTextTable(columns)
	for _, cells := range rows {
		t.Add(cells)
	}
	p := NewPrinter(out)
	p.Table(t)
	return p.Flush()
}

// Table aligns rows of cells. Rows are added first and printed by Printer.Table, which can
// happen repeatedly: column widths only grow, so that rows of a watch stay aligned with the
// header as long as possible. docs/decisions/0064 says why it is not text/tabwriter.
type Table struct {
	columns      client.Columns
	options      TableOptions
	statusColumn int // the cell that is coloured; -1 for none
	widths       []int
	lines        [][]string
}

// TableOptions say what a table of objects shows besides the columns of their kind.
type TableOptions struct {
	Wide       bool     // the columns of -o wide
	WithKind   bool     // names as kind/name
	WithEvents bool     // a first column for the type of the event
	Labels     []string // a column for each of these labels
	AllLabels  bool     // a column with all labels
}

// NewTable returns an empty table for objects of one kind.
func NewTable(columns client.Columns, options TableOptions) *Table {
	t := &Table{columns: columns, options: options}
	t.statusColumn = slices.Index(t.Header(), "STATUS")
	return t
}

// NewTextTable returns a table for rows of text, with the given header unless it is nil.
func NewTextTable(header []string) *Table {
	t := &Table{statusColumn: slices.Index(header, "STATUS")}
	if header != nil {
		t.Add(header)
	}
	return t
}

// Text returns the lines of the table, without colours.
func (t *Table) Text() []string {
	var lines []string
	for _, cells := range t.lines {
		var b strings.Builder
		t.writeRow(&b, cells, false)
		lines = append(lines, b.String())
	}
	return lines
}

// Kind returns the kind whose objects the table shows.
func (t *Table) Kind() string { return t.columns.Kind }

// MarkDeleted replaces the status of a row, or its first cell after the name if it has no
// status, by "<deleted>". It reports whether the row has such a cell.
func (t *Table) MarkDeleted(cells []string) bool {
	column := t.statusColumn
	if column < 0 {
		column = slices.Index(t.Header(), "NAME") + 1
	}
	if column >= len(cells) {
		return false
	}
	cells[column] = "<deleted>"
	return true
}

// Header returns the names of the columns that are shown.
func (t *Table) Header() []string {
	var cells []string
	if t.options.WithEvents {
		cells = append(cells, "EVENT")
	}
	cells = append(cells, "ACCOUNT")
	if t.columns.Namespaced {
		cells = append(cells, "NAMESPACE")
	}
	cells = append(cells, "NAME")
	for _, c := range t.visibleColumns() {
		cells = append(cells, c.Name)
	}
	for _, label := range t.options.Labels {
		cells = append(cells, strings.ToUpper(label[strings.LastIndexByte(label, '/')+1:]))
	}
	if t.options.AllLabels {
		cells = append(cells, "LABELS")
	}
	return cells
}

// Row returns the cells of an object that are shown.
func (t *Table) Row(r client.Row) []string {
	return t.EventRow("", r)
}

// EventRow is Row with the type of an event.
func (t *Table) EventRow(event string, r client.Row) []string {
	var cells []string
	if t.options.WithEvents {
		cells = append(cells, event)
	}
	cells = append(cells, r.Account)
	if t.columns.Namespaced {
		cells = append(cells, r.Namespace)
	}
	name := r.Name
	if t.options.WithKind {
		k := vedette.ParseKind(t.columns.Kind)
		k.Name = strings.ToLower(k.Name)
		name = k.String() + "/" + name
	}
	cells = append(cells, name)
	for i, c := range t.columns.Columns {
		if (t.options.Wide || !c.Wide) && i < len(r.Cells) {
			cells = append(cells, r.Cells[i])
		}
	}
	for _, label := range t.options.Labels {
		cells = append(cells, r.Labels[label])
	}
	if t.options.AllLabels {
		cells = append(cells, labels.FormatLabels(r.Labels))
	}
	return cells
}

// Add appends a row. The table keeps the slice until the row is printed.
func (t *Table) Add(cells []string) {
	for i, cell := range cells {
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], min(displayWidth(cell), maxColumnWidth))
	}
	t.lines = append(t.lines, cells)
}

// maxColumnWidth is the width up to which rows are aligned with a cell. A longer one moves what follows in
// its own row only. No name in Kubernetes is longer.
const maxColumnWidth = 253

// columnGap is how many spaces separate columns: as many as kubectl's.
const columnGap = 3

// writeRow writes a row without spaces at its end. Empty cells at the end are left out.
func (t *Table) writeRow(w rowWriter, cells []string, colour bool) {
	last := len(cells) - 1
	for last > 0 && strings.TrimRight(cells[last], " ") == "" {
		last--
	}
	for i, cell := range cells[:last+1] {
		text := Sanitize(cell)
		if i == last {
			text = strings.TrimRight(text, " ")
		}
		if colour && i == t.statusColumn {
			text = colourize(text)
		}
		// rowWriter's writers keep their first error or have none.
		_, _ = w.WriteString(text)
		if i == last {
			return
		}
		for range max(0, t.widths[i]-displayWidth(cell)) + columnGap {
			_ = w.WriteByte(' ')
		}
	}
}

// rowWriter is a bufio.Writer or a strings.Builder.
type rowWriter interface {
	io.StringWriter
	io.ByteWriter
}

// visibleColumns returns the columns after the name that are shown.
func (t *Table) visibleColumns() []client.Column {
	var out []client.Column
	for _, c := range t.columns.Columns {
		if t.options.Wide || !c.Wide {
			out = append(out, c)
		}
	}
	return out
}
