package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteJSON(t *testing.T) {
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

// TestSelectBenchmarks checks that long benchmarks must be named.
func TestSelectBenchmarks(t *testing.T) {
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
