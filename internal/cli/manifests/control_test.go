package manifests_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette/internal/cli/manifests"
)

// TestEncodeControlCharacters writes values that JSON takes as they are, and YAML does not: one object with such an annotation must not
// hide all others of a list.
func TestEncodeControlCharacters(t *testing.T) {
	for _, text := range []string{"\x7f", "a\u0080", "\u009b31m", "\x1b[2J", "\ufffe", "\uffff", "\u202e", "\u0085", "größe-🚀"} {
		for _, format := range []string{"json", "yaml"} {
			encoded, err := manifests.Encode(map[string]any{"a": text}, format)
			if err != nil {
				t.Errorf("%q as %s: %v", text, format, err)
				continue
			}
			var got map[string]string
			if err := yaml.Unmarshal([]byte(encoded), &got); err != nil || got["a"] != text {
				t.Errorf("%q as %s: got %q, %v", text, format, encoded, err)
			}
		}
	}
}
