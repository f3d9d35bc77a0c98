package replication_test

import (
	"flag"
	"os"
	"testing"

	"github.com/vedette-io/vedette/test/databases"
)

var all = flag.Bool("all", false, "also run what takes long: the whole suite of the store, and faults under load")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(databases.Main(m))
}

// onlyIfAll skips a test that takes long, unless all tests are wanted.
func onlyIfAll(t *testing.T) {
	t.Helper()
	if !*all {
		t.Skip("takes long: run it with -all, as `make replication` does")
	}
}
