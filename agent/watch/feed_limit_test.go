package watch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestFeedsAreLimited checks which feeds an account with too many of them keeps.
func TestFeedsAreLimited(t *testing.T) {
	specs := func(names string) (specs []FeedSpec) {
		for name := range strings.FieldsSeq(names) {
			specs = append(specs, FeedSpec{Feed: vedette.Feed{Kind: vedette.ParseKind(name)}})
		}
		return specs
	}
	for _, tt := range []struct {
		name, declared, marks, selected, want string
	}{
		{"as many as are allowed", "", "", "a b c", "a b c"},
		{"the first of the selection", "", "", "a b c d e", "a b c"},
		{"those that run stay", "d", "", "a b c d e", "a b d"},
		{"those that the server has a mark of stay", "", "e d", "a b c d e", "a d e"},
		{"a kind that is added displaces none", "b c d", "", "a b c d", "b c d"},
		{"a kind that is removed makes room", "b c d", "", "a b c e", "a b c"},
		{"more marks than are allowed", "", "a b c d", "a b c d", "a b c"},
	} {
		marks := map[vedette.Feed]vedette.Mark{}
		for _, n := range specs(tt.marks) {
			marks[n.Feed] = "1"
		}
		w := &Watcher{cfg: Config{MaxFeeds: 3}, declared: specs(tt.declared)}
		limited, problem := w.limitFeeds(specs(tt.selected), marks)
		var got []string
		for _, n := range limited {
			got = append(got, n.Feed.String())
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, s, tt.want)
		}
		n := len(strings.Fields(tt.selected))
		if wantProblem := fmt.Sprintf("selects %d feeds in this cluster, and only 3 of them", n); (n > 3) != strings.Contains(problem, wantProblem) {
			t.Errorf("%s: got problem %q", tt.name, problem)
		}
	}
}
