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
	oneSeed  = flag.Int64("seed", 0, "run this seed only")
	seeds    = flag.Int64("seeds", 2, "how many seeds to run for each database")
	firstOne = flag.Int64("from", 1, "the first of them")
	oneDB    = flag.String("db", "", "run on this database only: sqlite, postgres or mariadb")
)

// programs is the directory of the programs under test, built from this module.
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
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator),
		"github.com/vedette-io/vedette/cmd/vedette-agent", "github.com/vedette-io/vedette/cmd/vedette-server")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func program(name string) string { return filepath.Join(programs, name) }
