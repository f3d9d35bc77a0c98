package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestUndoFindsWhatItTookBack checks which operation an undo takes back. Each history is a list of changes "from-to"; its operations are
// numbered.
func TestUndoFindsWhatItTookBack(t *testing.T) {
	for _, tt := range []struct{ name, history, undo, want string }{
		{"the last change", "-a a-b", "b-a", "1"},
		{"an undo", "-a a-b b-a", "a-b", "2"},
		{"two changes: the last one", "-a a-b b-c", "c-a", "2"},
		{"the first change, when the second was undone", "-a a-b b-c c-b", "b-a", "1"},
		{"the first change, when two others were undone", "-a a-b b-c c-d d-b", "b-a", "1"},
		{"the second change, when the third was undone", "-a a-b b-c c-d d-c", "c-a", "2"},
		{"a change that was made twice", "-a a-b b-a a-b", "b-a", "3"},
		{"the object was as it is restored in between", "-a a-b b-a a-c c-b", "b-a", "4"},
		{"a change of something else", "-a a-b b-b", "b-a", "1"},
		{"what kubectl did", "-a a-b", "c-a", ""},
		{"what kubectl did after a change", "-a a-b b-a", "b-a", ""},
		{"what kubectl did, although it was so before", "-a a-b b-c", "b-x", ""},
		{"a change of what kubectl did", "-a k-b", "b-a", "1"},
		{"to what kubectl did", "-a a-b b-c c-b", "b-k", "3"},
		{"the creation", "-a", "a-b", "0"},
		{"no history", "", "b-a", ""},
	} {
		before, after, _ := strings.Cut(tt.undo, "-")
		search := undoneSearch{before: before, after: after}
		history := strings.Fields(tt.history)
		for i := len(history) - 1; i >= 0; i-- {
			from, to, _ := strings.Cut(history[i], "-")
			if search.visit(vedette.OperationID(fmt.Sprint(i)), vedette.ObjectChange{TemplateBefore: from, TemplateAfter: to}) {
				break
			}
		}
		if got := search.undone(); string(got) != tt.want {
			t.Errorf("%s: %s and an undo %s: got %q, want %q", tt.name, tt.history, tt.undo, got, tt.want)
		}
	}
}
