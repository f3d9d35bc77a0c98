package output

import "testing"

func TestNounFollowsTheCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 clusters", 1: "1 cluster", 2: "2 clusters"} {
		if got := Count(n, "cluster"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
