package compare

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// exampleLength is how much of a value is printed.
const exampleLength = 240

// PrintJSON writes a report as JSON.
func (r *Report) PrintJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// Print writes a report as text: a line for each form, and its groups. onlyDiffering leaves out forms
// whose answers are all equal or accepted.
func (r *Report) Print(w io.Writer, onlyDiffering bool) error {
	b := bufio.NewWriter(w)
	for _, f := range r.Forms {
		if !onlyDiffering || f.Different+f.Failed > 0 {
			f.print(b)
		}
	}
	fmt.Fprintf(b, "\n%d answers: %d equal, %d accepted, %d different, %d failed\n", r.Total, r.Equal, r.Accepted, r.Different, r.Failed)
	return b.Flush()
}

func (f *FormReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %d of %d equal", printable(f.Form), f.Equal, f.Total)
	for _, count := range []struct {
		n    int
		text string
	}{{f.Accepted, "accepted"}, {f.Different, "different"}, {f.Failed, "failed"}} {
		if count.n > 0 {
			fmt.Fprintf(w, ", %d %s", count.n, count.text)
		}
	}
	fmt.Fprintln(w)
	for _, g := range f.Groups {
		g.print(w)
	}
}

func (g *Group) print(w io.Writer) {
	if g.Reason != "" {
		fmt.Fprintf(w, "    accepted %s ×%d in %d: %s\n", printable(g.Field), g.Count, g.Answers, g.Reason)
		return
	}
	fmt.Fprintf(w, "    %s ×%d in %d, for example %s\n", printable(g.Field), g.Count, g.Answers, printable(g.Path))
	if g.Error != "" {
		fmt.Fprintf(w, "        %s\n", shorten(g.Error))
		return
	}
	fmt.Fprintf(w, "        clouddriver: %s\n        vedette:     %s\n", valueText(g.Clouddriver), valueText(g.Vedette))
}

func valueText(value string) string {
	if value == "" {
		return "(absent)"
	}
	return shorten(value)
}

func shorten(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= exampleLength {
		return printable(string(runes))
	}
	return printable(string(runes[:exampleLength])) + "…"
}

// printable escapes what a terminal would obey instead of showing it. Names come from servers.
func printable(text string) string {
	if strings.IndexFunc(text, isUnprintable) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isUnprintable(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isUnprintable(r rune) bool { return !unicode.IsPrint(r) }
