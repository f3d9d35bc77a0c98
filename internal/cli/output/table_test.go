package output

import (
	"bytes"
	"testing"

	"github.com/vedette-io/vedette/internal/client"
)

// TestStatusColour paints a status and nothing else, keeps columns straight, and lets
// no cell move the cursor.
func TestStatusColour(t *testing.T) {
	var b bytes.Buffer
	out := NewPrinter(&b)
	if out.colour {
		t.Error("a buffer is taken for a terminal")
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
