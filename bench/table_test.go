package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
