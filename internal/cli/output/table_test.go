package output

import (
	"bytes"
	"io"
	"strconv"
	"testing"

	"github.com/vedette-io/vedette/internal/client"
)

// TestStatusColour checks that only the status is coloured, that columns stay aligned, and that
// control characters are replaced.
func TestStatusColour(t *testing.T) {
	var b bytes.Buffer
	out := NewPrinter(&b)
	if out.colour {
		t.Error("got colours for a buffer, want none")
	}
	out.colour = true
	l := NewTable(client.Columns{Kind: "Pod", Namespaced: true, Columns: []client.Column{{Name: "STATUS"}, {Name: "AGE"}}}, false, false)
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
		out, table := NewPrinter(io.Discard), NewTable(columns, false, false)
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
