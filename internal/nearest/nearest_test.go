package nearest_test

import (
	"testing"

	"github.com/vedette-io/vedette/internal/nearest"
)

func TestHint(t *testing.T) {
	kinds := []string{"pods", "deployments.apps", "services", "statefulsets.apps", "podtemplates"}
	for _, tt := range []struct{ why, word, want string }{
		{"a letter is missing", "pds", ": did you mean pods?"},
		{"a letter is wrong", "servises", ": did you mean services?"},
		{"the case is wrong and the end is missing", "Deployment", ": did you mean deployments.apps?"},
		{"something was added", "servicesOfMine", ": did you mean services?"},
		{"more was added than was there", "podsOfMine", ""},
		{"two letters are too few to begin with", "po", ""},
		{"two are near", "podt", ": did you mean pods or podtemplates?"},
		{"nothing is near", "zebra", ""},
		{"nothing is no word", "", ""},
	} {
		if got := nearest.Hint(tt.word, kinds); got != tt.want {
			t.Errorf("%s: Hint(%q) = %q, want %q", tt.why, tt.word, got, tt.want)
		}
	}
}

func FuzzTo(f *testing.F) {
	f.Add("pods", "pod")
	f.Add("", "\xff")
	f.Fuzz(func(t *testing.T, word, candidate string) {
		for _, name := range nearest.Matches(word, []string{candidate}) {
			if name != candidate {
				t.Errorf("To(%q) = %q, which is no candidate", word, name)
			}
		}
		if word != "" && len(nearest.Matches(word, []string{word})) != 1 {
			t.Errorf("%q is not near itself", word)
		}
	})
}
