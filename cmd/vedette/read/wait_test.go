package read

import (
	"strings"
	"testing"
)

func TestVersionsAreComparedAsNumbers(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"10", "9", true}, {"9", "10", false}, {"10", "10", false}, {"10", "", false}, {"x", "", false}, {"10", "x", false}, {"010", "9", false}, {"", "", false},
		{strings.Repeat("9", 40), strings.Repeat("9", 39), true}} {
		if got := isNewer(tt.a, tt.b); got != tt.want {
			t.Errorf("%q against %q: got %v", tt.a, tt.b, got)
		}
	}
}
