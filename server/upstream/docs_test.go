package upstream

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/golden"
)

// TestDocumentationShowsTheTable checks that docs/spinnaker.md shows the table. -update writes it.
func TestDocumentationShowsTheTable(t *testing.T) {
	const file, begin, end = "../../docs/spinnaker.md", "<!-- endpoints: generated from server/upstream -->\n", "<!-- end of endpoints -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, hasBegin := strings.Cut(string(page), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		t.Fatalf("%s has no block between %q and %q", file, begin, end)
	}
	golden.Compare(t, file, before+begin+markdownTable()+end+after)
}

func markdownTable() string {
	var b strings.Builder
	b.WriteString("\n| endpoint | answered | if the other Clouddriver is slow or down | remarks |\n|---|---|---|---|\n")
	for _, e := range Table() {
		fmt.Fprintf(&b, "| `%s /%s` | %s | %s | %s |\n", e.Method(), e.Path(), e.Mode, e.Policy, e.Note)
	}
	b.WriteString("| everything else | passed on |  |  |\n\n")
	return b.String()
}
