package nearest_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/nearest"
)

func TestHintNamesSimilarWords(t *testing.T) {
	kinds := []string{"pods", "deployments.apps", "services", "statefulsets.apps", "podtemplates"}
	for _, tt := range []struct{ name, word, want string }{
		{"missing letter", "pds", ": did you mean pods?"},
		{"wrong letter", "servises", ": did you mean services?"},
		{"prefix in another case", "Deployment", ": did you mean deployments.apps?"},
		{"short suffix", "servicesOfMine", ": did you mean services?"},
		{"long suffix", "podsOfMine", ""},
		{"prefix of two letters", "po", ""},
		{"two matches", "podt", ": did you mean pods or podtemplates?"},
		{"no match", "zebra", ""},
		{"empty word", "", ""},
	} {
		if got := nearest.Hint(tt.word, kinds); got != tt.want {
			t.Errorf("%s: Hint(%q) = %q, want %q", tt.name, tt.word, got, tt.want)
		}
	}
}

func TestLongListsOfNamesAreCut(t *testing.T) {
	names := strings.Fields("a b c d e f g h i j k l")
	for n, want := range map[int]string{0: "there are no accounts", 1: "there is a", 2: "there are a and b", 3: "there are a, b and c",
		10: "there are a, b, c, d, e, f, g, h, i and j", 12: "there are a, b, c, d, e, f, g, h, i, j and 2 more"} {
		if got := nearest.There(names[:n], "accounts"); got != want {
			t.Errorf("got %q of %d names, want %q", got, n, want)
		}
	}
}

func TestListEndsWithTheHint(t *testing.T) {
	names := strings.Fields("a b c d e f g h i j prod-1 l")
	if got := nearest.ListFor("prod-2", names); got != "a, b, c, d, e, f, g, h, i, j and 2 more: did you mean prod-1?" {
		t.Errorf("got %q", got)
	}
	if got := nearest.ListFor("prod-2", names[8:]); got != "i, j, prod-1 and l" {
		t.Errorf("got %q", got)
	}
}

func FuzzTo(f *testing.F) {
	f.Add("pods", "pod")
	f.Add("", "\xff")
	f.Fuzz(func(t *testing.T, word, candidate string) {
		for _, name := range nearest.Matches(word, []string{candidate}) {
			if name != candidate {
				t.Errorf("Matches(%q) = %q, which is not a candidate", word, name)
			}
		}
		if word != "" && len(nearest.Matches(word, []string{word})) != 1 {
			t.Errorf("%q does not match itself", word)
		}
	})
}
