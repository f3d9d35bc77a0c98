package convergence

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/vedette-io/vedette/test/clockskew"
	"github.com/vedette-io/vedette/test/programs"
)

var (
	singleSeed   = flag.Int64("seed", 0, "run this seed only")
	seedCount    = flag.Int64("seeds", 1, "number of seeds to run on each database")
	firstSeed    = flag.Int64("from", 1, "first seed to run")
	skew         = flag.Duration("skew", 0, "error of our programs' clocks; the first build takes minutes")
	bulkObjects  = flag.Int("objects", 10000, "number of objects in tests with many objects")
	allLosses    = flag.Bool("losses", false, "lose a cluster in all ways in the test of the lag, which takes three minutes")
	keepLogsFlag = flag.Bool("keep", false, "keep the logs of all processes even if the test passes")
	singleDB     = flag.String("db", "", "run only on this database: sqlite, postgres, mariadb, or shards for two over which accounts are spread; \"all\" also runs tests on all that use only one by default")
)

// programDir is the directory of the programs under test, which are built from this module.
var programDir string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "vedette-convergence-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programDir = dir
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(dir string) error {
	var flags []string
	if *skew != 0 {
		var err error
		if flags, err = clockskew.BuildFlags(dir); err != nil {
			return err
		}
	}
	return programs.BuildWith(context.Background(), dir, flags, "vedette-agent", "vedette-server")
}
