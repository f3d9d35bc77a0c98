// Package output writes what commands of the CLI print: tables, names, logs, and what
// takes long. It removes control characters, because much of the text comes from people
// who may write to a cluster, and could move the reader's cursor.
package output

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/vedette-io/vedette/internal/textcheck"
)

// ErrWrite is joined to the error of a write to the command's output.
var ErrWrite = errors.New("write the output")

// Printer writes lines. It colours a status if it writes to a terminal and NO_COLOR is
// not set.
type Printer struct {
	w        *bufio.Writer
	terminal bool
	colour   bool
}

// NewPrinter returns a buffered printer. Its caller must call Flush.
func NewPrinter(w io.Writer) *Printer {
	terminal := isTerminal(w)
	return &Printer{w: bufio.NewWriter(w), terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == ""}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// Line writes a line without hidden characters. Errors are returned by Flush, because bufio keeps the
// first one.
func (p *Printer) Line(text string) { p.Document(Sanitize(text)) }

// Document writes lines as they are: a document that is encoded already, or sanitized and coloured text.
func (p *Printer) Document(text string) {
	_, _ = p.w.WriteString(text)
	_ = p.w.WriteByte('\n')
}

// Text writes a text as it is, without a line feed: scripts read the output of templates. A terminal gets it without hidden
// characters.
func (p *Printer) Text(text string) {
	if p.terminal {
		_, _ = SafeWriter{p.w}.Write([]byte(text)) // as in Line
		return
	}
	_, _ = p.w.WriteString(text)
}

// Status returns a status in its colour, if the output is a terminal.
func (p *Printer) Status(text string) string {
	text = Sanitize(text)
	if p.colour {
		return colourize(text)
	}
	return text
}

// Flush writes what is buffered, and returns the first error of all writes.
func (p *Printer) Flush() error { return p.w.Flush() }

// Table prints the rows that were added since the last call.
func (p *Printer) Table(t *Table) {
	for _, cells := range t.lines {
		t.writeRow(p.w, cells, p.colour)
		_ = p.w.WriteByte('\n')
	}
	t.lines = nil
}

// Sanitize replaces hidden characters by "?".
func Sanitize(text string) string { return textcheck.Sanitize(text) }

// SafeWriter sanitizes what is written, besides line feeds and tabs. Commands write their errors
// to one, because errors quote servers and clusters. Each write must be whole characters.
type SafeWriter struct{ To io.Writer }

// Write writes a text without hidden characters.
func (w SafeWriter) Write(text []byte) (int, error) {
	n, err := textcheck.SafeWriter{To: w.To}.Write(text)
	if err != nil {
		return n, errors.Join(ErrWrite, err)
	}
	return n, nil
}

// SanitizeCells sanitizes a line but keeps its tabs.
func SanitizeCells(text string) string {
	cells := strings.Split(text, "\t")
	for i, cell := range cells {
		cells[i] = Sanitize(cell)
	}
	return strings.Join(cells, "\t")
}

const (
	green       = "\x1b[32m"
	yellow      = "\x1b[33m"
	red         = "\x1b[31m"
	resetColour = "\x1b[0m"
)

// colourize colours a status green, yellow or red. A status that it does not know is red,
// because most reasons for a failure are words of their own ("ImagePullBackOff").
func colourize(status string) string {
	switch status {
	case "Running", "Active", "Ready", "Bound", "Available", "done":
		return green + status + resetColour
	case "Completed", "Complete", "Succeeded", "STATUS", "":
		return status
	case "Pending", "ContainerCreating", "PodInitializing", "Terminating", "NotReady", "Suspended", "SchedulingGated", "Released", "<deleted>",
		"pending":
		return yellow + status + resetColour
	}
	if strings.HasPrefix(status, "Init:") && strings.Contains(status, "/") || strings.HasPrefix(status, "Ready,") {
		return yellow + status + resetColour
	}
	return red + status + resetColour
}
