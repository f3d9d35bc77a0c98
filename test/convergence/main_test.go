package convergence

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var (
	singleSeed   = flag.Int64("seed", 0, "run this seed only")
	seedCount    = flag.Int64("seeds", 2, "number of seeds to run on each database")
	firstSeed    = flag.Int64("from", 1, "first seed to run")
	skew         = flag.Duration("skew", 0, "error of our programs' clocks; the first build takes minutes")
	bulkObjects  = flag.Int("objects", 20000, "number of objects in tests with many objects")
	keepLogsFlag = flag.Bool("keep", false, "keep the logs of all processes even if the test passes")
	singleDB     = flag.String("db", "", "run only on this database: sqlite, postgres or mariadb; \"all\" also runs tests on all that use only one by default")
)

// programs is the directory of the programs under test, which are built from this module.
var programs string

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
	programs = dir
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "build the programs:", err)
		return 1
	}
	return m.Run()
}

func build(dir string) error {
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if *skew != 0 {
		flags, err := overlay(dir)
		if err != nil {
			return err
		}
		args = append(args, flags...)
	}
	args = append(args, "github.com/vedette-io/vedette/cmd/vedette-agent", "github.com/vedette-io/vedette/cmd/vedette-server")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func program(name string) string { return filepath.Join(programs, name) }
