package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResultsAreWrittenAsJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	results := &table{}
	results.begin("api")
	results.add(row{measure: "GET /x", target: "p50 3 ms", result: "p50 2 ms", values: map[string]float64{"p50Ms": 2}})
	results.end()
	if err := results.save(options{json: file}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine string
		Load    map[string]string
		Rows    []jsonRow
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 1 || got.Rows[0].Part != "api" || got.Rows[0].Values["p50Ms"] != 2 || got.Machine == "" || len(got.Load) != 1 {
		t.Errorf("got %s", text)
	}
}

func TestLongBenchmarksMustBeNamed(t *testing.T) {
	for only, want := range map[string]int{"": len(benchmarks) - 1, "api": 1, "wire,api": 2} {
		if got, err := selectBenchmarks(only); err != nil || len(got) != want {
			t.Errorf("%q: got %d benchmarks, %v, want %d", only, len(got), err, want)
		}
	}
	if _, err := selectBenchmarks("nonsense"); err == nil {
		t.Error("an unknown benchmark: got no error")
	}
}

// TestWriteKeepsResultsOfTheLastRun measures one part twice, and another one once.
func TestWriteKeepsResultsOfTheLastRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "performance.md")
	write := func(part, result string) {
		t.Helper()
		results := &table{}
		results.part = part
		results.add(row{measure: "time / size", target: "1 s", result: result})
		results.add(row{measure: "empty"})
		if err := results.write(file); err != nil {
			t.Fatal(err)
		}
	}
	write("store", "3 s")
	write("wire", "7 bytes")
	remarks := "\n" + remarksMarker + "\n## Remarks\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, remarks...), 0o600); err != nil {
		t.Fatal(err)
	}
	write("store", "2 s")
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| time / size | 1 s | 3 s | 2 s |", "| time / size | 1 s |  | 7 bytes |", "| empty |  |  |  |  |  |", "\nBefore: ", remarks} {
		if !strings.Contains(string(got), want) {
			t.Errorf("got %s\nwant %q", got, want)
		}
	}
}

// TestDatabasesAreShownSideBySide checks that the rows of a request are side by side, though one database has
// none, and that the ratio is the largest.
func TestDatabasesAreShownSideBySide(t *testing.T) {
	values := func(p50 float64) map[string]float64 {
		return map[string]float64{"bytes": 900, "changedP50Ms": p50, "changedP99Ms": 2 * p50, "unchangedP50Ms": 0.2}
	}
	tab := table{rows: []row{
		{part: "store", measure: "SQLite, bytes", result: "1"},
		{part: "api", measure: "SQLite, 50 accounts, /a", target: "p50 30 ms", ratio: "3 % of aim", values: values(1)},
		{part: "api", measure: "SQLite, 50 accounts, /b", values: map[string]float64{"unchangedP50Ms": 7, "unchangedP99Ms": 8}},
		{part: "api", measure: "MariaDB, 50 accounts, /a", target: "p50 30 ms", ratio: "110 % of aim", values: values(33)},
	}}
	tab.mergeDatabases("api", databaseCases)
	if len(tab.rows) != 3 || tab.rows[0].measure != "SQLite, bytes" {
		t.Fatalf("got %+v, want the row of the other part and two requests", tab.rows)
	}
	r := tab.rows[1]
	if got, want := fmt.Sprint(r.measure, "|", r.target, "|", r.result, "|", r.ratio, "|", r.remark),
		"50 accounts, /a|p50 30 ms|p50 1.0 / - / 33.0 ms, p99 2.0 / - / 66.0 ms|110 % of aim|0.9 KB; unchanged p50 0.2 / - / 0.2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r.values["MariaDB changedP50Ms"] != 33 || tab.rows[2].result != "p50 7.0 / - / - ms, p99 8.0 / - / - ms" {
		t.Errorf("got %v and %q", r.values, tab.rows[2].result)
	}
}
