package output

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestNoticesAreShownOnceAndLimited(t *testing.T) {
	var out bytes.Buffer
	n := Notices{Out: &out}
	for i := range 490 {
		n.Add(fmt.Sprint(i), fmt.Sprintf("prod-%d: is\nlate", i))
		if n.Add(fmt.Sprint(i), "again") {
			t.Fatal("a notice was new twice")
		}
	}
	n.AddMore(5)
	n.Flush("see all")
	n.Flush("see all")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != MaxNotices+1 || lines[10] != "and 485 more: see all" || strings.Contains(out.String(), "again") {
		t.Errorf("got %q", lines)
	}
}
