package main

import (
	"bufio"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// printer writes lines, and colours where a person looks at them.
type printer struct {
	w      *bufio.Writer
	colour bool
}

func newPrinter(w io.Writer) *printer {
	return &printer{w: bufio.NewWriter(w), colour: isTerminal(w) && os.Getenv("NO_COLOR") == ""}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

func (p *printer) line(text string) {
	// bufio keeps the first error and flush returns it.
	_, _ = p.w.WriteString(text)
	_ = p.w.WriteByte('\n')
}

func (p *printer) flush() error { return p.w.Flush() }

// table prints the lines that a layout has gathered, and forgets them.
func (p *printer) table(l *layout) {
	for _, cells := range l.lines {
		p.line(l.format(cells, p.colour))
	}
	l.lines = nil
}

// layout is the shape of a table: its columns, and how wide they have become.
// Widths only grow, so that lines that come later stand under the same heads as
// long as they can.
type layout struct {
	columns      client.Columns
	wide         bool
	withKind     bool // names are shown as kind/name
	statusColumn int  // the cell that is coloured; -1 for none
	widths       []int
	lines        [][]string
}

func newLayout(columns client.Columns, wide, withKind bool) *layout {
	l := &layout{columns: columns, wide: wide, withKind: withKind, statusColumn: -1}
	for i, head := range l.header() {
		if head == "STATUS" {
			l.statusColumn = i
		}
	}
	return l
}

func (l *layout) header() []string {
	cells := []string{"ACCOUNT"}
	if l.columns.Namespaced {
		cells = append(cells, "NAMESPACE")
	}
	cells = append(cells, "NAME")
	for _, c := range l.columns.Columns {
		if l.wide || !c.Wide {
			cells = append(cells, c.Name)
		}
	}
	return cells
}

func (l *layout) row(r client.Row) []string {
	cells := []string{r.Account}
	if l.columns.Namespaced {
		cells = append(cells, r.Namespace)
	}
	name := r.Name
	if l.withKind {
		k := vedette.ParseKind(l.columns.Kind)
		k.Name = strings.ToLower(k.Name)
		name = k.String() + "/" + name
	}
	cells = append(cells, name)
	for i, c := range l.columns.Columns {
		if (l.wide || !c.Wide) && i < len(r.Cells) {
			cells = append(cells, r.Cells[i])
		}
	}
	return cells
}

func (l *layout) add(cells []string) {
	for i, cell := range cells {
		if i == len(l.widths) {
			l.widths = append(l.widths, 0)
		}
		l.widths[i] = max(l.widths[i], utf8.RuneCountInString(cell))
	}
	l.lines = append(l.lines, cells)
}

const columnGap = "   "

func (l *layout) format(cells []string, colour bool) string {
	var b strings.Builder
	for i, cell := range cells {
		text := sanitize(cell)
		if colour && i == l.statusColumn {
			text = colourize(text)
		}
		b.WriteString(text)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", max(0, l.widths[i]-utf8.RuneCountInString(cell))) + columnGap)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// sanitize takes from a text what would move a terminal's cursor: most of it was
// written by whoever may write to a cluster.
func sanitize(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}

// sanitizeCells is clean for lines whose cells are separated by tabs.
func sanitizeCells(text string) string {
	cells := strings.Split(text, "\t")
	for i, cell := range cells {
		cells[i] = sanitize(cell)
	}
	return strings.Join(cells, "\t")
}

const (
	green       = "\x1b[32m"
	yellow      = "\x1b[33m"
	red         = "\x1b[31m"
	resetColour = "\x1b[0m"
)

// colourize colours a status by what it means for a person's evening.
func colourize(status string) string {
	switch status {
	case "Running", "Active", "Ready", "Bound", "Available", "done":
		return green + status + resetColour
	case "Completed", "Complete", "Succeeded", "STATUS", "":
		return status
	case "Pending", "ContainerCreating", "PodInitializing", "Terminating", "NotReady", "Suspended", "SchedulingGated", "Released", "<deleted>", "pending":
		return yellow + status + resetColour
	}
	if strings.HasPrefix(status, "Init:") && strings.Contains(status, "/") || strings.HasPrefix(status, "Ready,") {
		return yellow + status + resetColour
	}
	return red + status + resetColour
}

// visibleColumns returns the columns after the name that are shown.
func (l *layout) visibleColumns() []client.Column {
	var out []client.Column
	for _, c := range l.columns.Columns {
		if l.wide || !c.Wide {
			out = append(out, c)
		}
	}
	return out
}
