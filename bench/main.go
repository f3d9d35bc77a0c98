// Command bench compares Vedette with the usual alternatives, on this machine and in one run.
// It prints one table: what was measured, the target, and the result.
//
//	go run ./bench [--only first-sync,memory] [--quick] [--write docs/performance.md]
//
// It measures the processes that users run: vedette-agent, vedette-server, kube-apiserver,
// PostgreSQL and MariaDB. None of this is a test, because tests do not depend on a clock.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// benchmark is one part of the table.
type benchmark struct {
	name string
	run  func(ctx context.Context, b *bench) error
	// onlyNamed is for benchmarks that take so long that they run only if they are named.
	onlyNamed bool
}

var benchmarks = []benchmark{
	{"first-sync", firstSync, false}, {"memory", memory, false}, {"accounts", manyAccounts, false}, {"verification", verification, false},
	{"latency", latency, false}, {"wire", wireBytes, false},
	{"store", storeRates, false}, {"resume", resume, false}, {"operations", operations, false}, {"api", apiLatency, true},
}

// bench is one run.
type bench struct {
	dir   string // for logs, databases and programs; removed at the end
	quick bool   // a tenth of everything
	// profiles is the directory for profiles of agents with many accounts; empty for none.
	profiles string
	table    table

	databases []databaseCase // for the benchmarks that measure each of them
}

// scale returns n, or a tenth of it in a quick run.
func (b *bench) scale(n int) int {
	if b.quick {
		return n / 10
	}
	return n
}

func main() {
	if len(os.Args) > 1 && isClient(os.Args[1], os.Args[2:]) {
		return
	}
	only := flag.String("only", "", "measures to take, separated by commas: "+benchmarkNames()+"; empty for all but api")
	write := flag.String("write", "", "Markdown `file` to write the table to; parts that were not measured stay as they are there")
	jsonFile := flag.String("json", "", "JSON `file` to write the results to, with all figures")
	databases := flag.String("databases", "", "databases to measure store and api on, separated by commas, such as SQLite,MariaDB; empty for all")
	quick := flag.Bool("quick", false, "measure a tenth of everything: to see that it works, not for the figures")
	profiles := flag.String("profiles", "", "existing `directory` to write profiles of the agent to, in the part accounts; profiling takes time of its own")
	keep := flag.Bool("keep", false, "leave logs and databases behind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, options{*only, *write, *jsonFile, *databases, *profiles, *quick, *keep}); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// isClient reports whether a command is that of a client to compare with, and runs it.
func isClient(command string, args []string) bool {
	run := map[string]func([]string) error{listCommand: listAndWait, watchCommand: watchAndDiscard}[command]
	if run == nil {
		return false
	}
	if err := run(args); err != nil {
		fmt.Fprintf(os.Stderr, "bench %s: %v\n", command, err)
		os.Exit(1)
	}
	return true
}

func benchmarkNames() string {
	var all []string
	for _, m := range benchmarks {
		all = append(all, m.name)
	}
	return strings.Join(all, ",")
}

// options are the flags.
type options struct {
	only, write, json, databases, profiles string
	quick, keep                            bool
}

func run(ctx context.Context, o options) error {
	selected, err := selectBenchmarks(o.only)
	if err != nil {
		return err
	}
	databases, err := selectDatabases(o.databases)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vedette-bench-")
	if err != nil {
		return err
	}
	if o.keep {
		logf("logs and databases are in %s", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	b := &bench{dir: dir, quick: o.quick, profiles: o.profiles, databases: databases}
	if err := b.build(ctx); err != nil {
		return err
	}
	for _, m := range selected {
		logf("measuring %s", m.name)
		b.table.begin(m.name)
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("measure %s: %w", m.name, err)
		}
		b.table.end()
	}
	fmt.Println()
	b.table.print(os.Stdout)
	return b.table.save(o)
}

// selectBenchmarks returns the benchmarks with the given names.
func selectBenchmarks(only string) ([]benchmark, error) {
	if only == "" {
		return slices.DeleteFunc(slices.Clone(benchmarks), func(m benchmark) bool { return m.onlyNamed }), nil
	}
	var selected []benchmark
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(benchmarks, func(m benchmark) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown benchmark %q: use %s", name, benchmarkNames())
		}
		selected = append(selected, benchmarks[i])
	}
	return selected, nil
}

var started = time.Now()

func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%7.1fs  %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
}
