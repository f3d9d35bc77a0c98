// Package golden compares test results with files. With the flag -update, tests write the files
// instead. Only tests import it.
package golden

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the test results to the golden files")

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
