package nearest_test

import (
	"testing"

	"github.com/vedette-io/vedette/internal/nearest"
)

func TestHint(t *testing.T) {
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
