package vedette_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
)

func TestCleanTextIsValidAndShort(t *testing.T) {
	for _, c := range []struct {
		name, in, out string
		limit         int
	}{
		{"a clean text stays", "tab\tand\nline, äöü", "tab\tand\nline, äöü", 100},
		{"Latin-1 of a proxy", "407 Acc\xe8s refus\xe9", "407 Acc\uFFFDs refus\uFFFD", 100},
		{"NUL, which PostgreSQL refuses", "a\x00b", "a b", 100},
		{"escape sequences of terminals", "\x1b[31mred\u009b", " [31mred ", 100},
		{"too long", "0123456789", "0123…", 7},
		{"cut within a character", "012äöü", "012…", 7},
		{"exactly as long as it may be", "0123456", "0123456", 7},
		{"grows beyond the limit when it is repaired", strings.Repeat("\xff", 6), "\uFFFD…", 6},
	} {
		got := vedette.CleanText(c.in, c.limit)
		if got != c.out || !utf8.ValidString(got) || len(got) > c.limit {
			t.Errorf("%s: got %q (%d bytes), want %q", c.name, got, len(got), c.out)
		}
	}
}
