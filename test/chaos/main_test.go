package chaos

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/vedette-io/vedette/test/clockskew"
	"github.com/vedette-io/vedette/test/programs"
)

var (
	firstSeed    = flag.Int64("seed", 0, "seed of the first round; the next round has the next seed. 0: those of the file seeds")
	runTime      = flag.Duration("time", 0, "run rounds for this time, shared by the databases; 0: one round for each seed")
	onDatabase   = flag.String("db", "postgres", "comma-separated databases, one after the other: postgres, patroni (three nodes of PostgreSQL), mariadb, galera (through HAProxy), galera-nodes (each server at a node of its own)")
	planeCount   = flag.Int("planes", 1, "number of control planes; each has an account")
	isLong       = flag.Bool("long", false, "let faults last for up to a minute, and more of them happen")
	withClocks   = flag.Bool("clocks", false, "let clocks jump; the first build takes minutes")
	withRestores = flag.Bool("restores", false, "let clusters be restored from backups of their etcd")
	keepLogs     = flag.Bool("keep", false, "keep all logs even if the test passes")
	debug        = flag.Bool("debug", false, "let servers and agents log more")
)

// programDir is the directory of the programs under test.
var programDir string

func TestMain(m *testing.M) {
	flag.Parse()
	_ = mysql.SetLogger(&mysql.NopLogger{}) // databases that end break connections
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "vedette-chaos-")
	if err == nil {
		defer os.RemoveAll(dir)
		programDir = dir
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(dir string) error {
	var flags []string
	if *withClocks {
		var err error
		if flags, err = clockskew.BuildFlags(dir); err != nil {
			return err
		}
	}
	return programs.BuildWith(context.Background(), dir, flags, "vedette-agent", "vedette-server")
}

// seedsOf returns the seeds to run on a database, without end if a time is given.
func seedsOf(t *testing.T, database string) func(yield func(int64) bool) {
	if *firstSeed == 0 && *runTime == 0 {
		return recordedSeeds(t, database)
	}
	first := *firstSeed
	if first == 0 {
		first = time.Now().Unix()
	}
	return func(yield func(int64) bool) {
		for seed := first; yield(seed) && *runTime > 0; seed++ {
		}
	}
}

// recordedSeeds returns the seeds of the file for a database.
func recordedSeeds(t *testing.T, database string) func(yield func(int64) bool) {
	t.Helper()
	file, err := os.Open("seeds")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var seeds []int64
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 || fields[0] != database {
			continue
		}
		for _, f := range fields[1:] {
			seed, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				t.Fatalf("seeds: %v", err)
			}
			seeds = append(seeds, seed)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(seeds) == 0 {
		t.Fatalf("the file seeds has none for %s", database)
	}
	return func(yield func(int64) bool) {
		for _, seed := range seeds {
			if !yield(seed) {
				return
			}
		}
	}
}
