package compatibility

import (
	"fmt"
	"os"
	"strings"

	"github.com/vedette-io/vedette/internal/compare"
)

// Markdown returns a report as tables for the documentation: results by form, and what was accepted.
func Markdown(r *compare.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d answers: %d equal, %d accepted, %d different.\n\n", r.Total, r.Equal, r.Accepted, r.Different+r.Failed)
	b.WriteString("| path | answers | equal | accepted | different |\n|---|---|---|---|---|\n")
	for _, f := range r.Forms {
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %d |\n", f.Form, f.Total, f.Equal, f.Accepted, f.Different+f.Failed)
	}
	b.WriteString("\n| path | accepted difference | answers | reason |\n|---|---|---|---|\n")
	for _, f := range r.Forms {
		writeAccepted(&b, f)
	}
	return b.String()
}

// writeAccepted writes a line for each reason. Groups are sorted by reason.
func writeAccepted(b *strings.Builder, f compare.FormReport) {
	for i := 0; i < len(f.Groups); {
		reason := f.Groups[i].Reason
		fields := []string(nil)
		answers := 0
		for ; i < len(f.Groups) && f.Groups[i].Reason == reason; i++ {
			fields = append(fields, "`"+f.Groups[i].Field+"`")
			answers = max(answers, f.Groups[i].Answers)
		}
		if reason != "" {
			fmt.Fprintf(b, "| `%s` | %s | %d | %s |\n", f.Form, strings.Join(fields, ", "), answers, reason)
		}
	}
}

// WriteSection replaces a section of a file: what is between the comments "<!-- NAME -->" and
// "<!-- end of NAME -->".
func WriteSection(file, name, text string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	before, rest, hasBegin := strings.Cut(string(content), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s has no section between %s and %s", file, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+text+"\n"+end+after), 0o644)
}
