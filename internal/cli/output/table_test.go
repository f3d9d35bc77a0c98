package output

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/client"
)

// TestOnlyTheStatusIsColoured checks that only the status is coloured, that columns stay aligned, and that
// control characters are replaced.
func TestOnlyTheStatusIsColoured(t *testing.T) {
	var b bytes.Buffer
	out := NewPrinter(&b)
	if out.colour {
		t.Error("got colours for a buffer, want none")
	}
	out.colour = true
	l := NewTable(client.Columns{Kind: "Pod", Namespaced: true, Columns: []client.Column{{Name: "STATUS"}, {Name: "AGE"}}}, TableOptions{})
	l.Add(l.Header())
	l.Add(l.Row(client.Row{Account: "a", Namespace: "n", Name: "p", Cells: []string{"Running", "\x1b[2J"}}))
	l.Add(l.Row(client.Row{Account: "a", Namespace: "n", Name: "q", Cells: []string{"CrashLoopBackOff", "1d"}}))
	out.Table(l)
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "ACCOUNT   NAMESPACE   NAME   STATUS             AGE\n" +
		"a         n           p      \x1b[32mRunning\x1b[0m            ?[2J\n" +
		"a         n           q      \x1b[31mCrashLoopBackOff\x1b[0m   1d\n"
	if b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", b.String(), want)
	}
}

// BenchmarkTable prints 10,000 pods, as `get pods -A` does.
func BenchmarkTable(b *testing.B) {
	columns := client.Columns{Kind: "Pod", Namespaced: true, Columns: []client.Column{{Name: "READY"}, {Name: "STATUS"}, {Name: "RESTARTS"}, {Name: "AGE"}}}
	var rows []client.Row
	for i := range 10_000 {
		rows = append(rows, client.Row{Account: "prod-" + strconv.Itoa(i%20), Namespace: "shop", Name: "web-6c9f4-" + strconv.Itoa(i), Cells: []string{"1/1", "Running", "0", "5d2h"}})
	}
	b.ReportAllocs()
	for b.Loop() {
		out, table := NewPrinter(io.Discard), NewTable(columns, TableOptions{})
		table.Add(table.Header())
		for _, row := range rows {
			table.Add(table.Row(row))
		}
		out.Table(table)
		if err := out.Flush(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestHostileCellsKeepColumnsAligned checks that columns stay aligned on a terminal, whatever cells contain, and that a
// very long cell does not make other rows long.
func TestHostileCellsKeepColumnsAligned(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	table := NewTextTable([]string{"NAME", "STATUS"})
	for _, name := range []string{"a", "日本", "e\u0301", "a\x1b[2J\u202e\u200b", "🚀", "\xff", long} {
		table.Add([]string{name, "ok"})
	}
	want := []string{"NAME" + strings.Repeat(" ", 249+3) + "STATUS"}
	for _, cell := range []struct {
		text  string
		width int
	}{{"a", 1}, {"日本", 4}, {"e\u0301", 1}, {"a?[2J??", 7}, {"🚀", 2}, {"\uFFFD", 1}} {
		want = append(want, cell.text+strings.Repeat(" ", 253-cell.width+3)+"ok")
	}
	want = append(want, long+"   ok")
	if got := table.Text(); !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
