package kubectlmap

import (
	"slices"
	"strings"
	"testing"
)

// TestCommandsAreComplete checks that each command says what there is instead, once and in order.
func TestCommandsAreComplete(t *testing.T) {
	all := Commands()
	if !slices.IsSortedFunc(all, func(a, b Command) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("the commands are not sorted by their names")
	}
	status := map[string]Status{}
	for _, c := range all {
		if _, twice := status[c.Path]; twice {
			t.Errorf("%s occurs twice", c.Path)
		}
		status[c.Path] = c.Status
		if (c.Instead == "") != (c.Status == Same) || strings.HasSuffix(c.Instead, ".") {
			t.Errorf("%s: got the status %s and %q", c.Path, c.Status, c.Instead)
		}
		if strings.Count(c.Instead, "`")%2 != 0 {
			t.Errorf("%s: a backquote is missing in %q", c.Path, c.Instead)
		}
		if parent, _, isSub := strings.Cut(c.Path, " "); isSub && status[parent] == "" || status[parent] == Absent && isSub {
			t.Errorf("%s: its parent is missing or absent", c.Path)
		}
	}
}
