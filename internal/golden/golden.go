// Package golden compares test results with files. With the flag -update, tests write the files
// instead. Only tests import it.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the test results to the golden files")

// Updates reports whether tests write golden files. Tests with a comparison of their own use it.
func Updates() bool { return *update }

// Compare fails the test if the content of file is not got. With -update it writes the file.
func Compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (update it with -update): got\n%s\nwant\n%s", file, got, want)
	}
}

// CompareSection fails the test if the part of file between the comments "<!-- NAME -->" and "<!-- end of NAME -->" is not got. With
// -update it writes that part.
func CompareSection(t *testing.T, file, name, got string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	want, after, ended := strings.Cut(rest, end)
	switch {
	case !found || !ended:
		t.Fatalf("%s has no section %q", file, name)
	case want == got:
	case *update:
		if err := os.WriteFile(file, []byte(before+begin+got+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("section %q of %s differs (update it with -update): got\n%s\nwant\n%s", name, file, got, want)
	}
}
