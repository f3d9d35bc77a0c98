package compatibility_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette/internal/compare"
	"github.com/vedette-io/vedette/test/compatibility"
)

func TestOnlyTheSectionIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("a\n<!-- x -->\nold\n<!-- end of x -->\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	report := &compare.Report{Total: 3, Equal: 1, Accepted: 1, Different: 1, Forms: []compare.FormReport{{Form: "/tags", Total: 3, Equal: 1, Accepted: 1, Different: 1,
		Groups: []compare.Group{{Field: ".n", Answers: 1}, {Field: ".m", Reason: "a fault", Answers: 1}, {Field: "status 500/200", Reason: "a fault", Answers: 2}}}}}
	for range 2 { // the second time it replaces its own text
		if err := compatibility.WriteSection(file, "x", compatibility.Markdown(report)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "a\n<!-- x -->\n\n3 answers: 1 equal, 1 accepted, 1 different.\n\n" +
		"| path | answers | equal | accepted | different |\n|---|---|---|---|---|\n| `/tags` | 3 | 1 | 1 | 1 |\n\n" +
		"| path | accepted difference | answers | reason |\n|---|---|---|---|\n| `/tags` | `.m`, `status 500/200` | 2 | a fault |\n\n<!-- end of x -->\nb\n"
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	if err := compatibility.WriteSection(file, "y", ""); err == nil {
		t.Error("got no error for a section that does not exist")
	}
}
