// Package golden compares what a test made with a file beside it. Only tests
// import it. With -update the files are written instead.
package golden

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write what came out to the files that hold what is expected")

// Compare fails a test where a file does not hold what the test got.
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
		t.Errorf("%s differs (write it anew with -update); got\n%s\nwant\n%s", file, got, want)
	}
}
