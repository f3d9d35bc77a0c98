package textcheck

import (
	"encoding/json"
	"testing"
	"unicode"
)

// TestEscapedJSONKeepsItsValues checks that documents keep their values, and contain no hidden character.
func TestEscapedJSONKeepsItsValues(t *testing.T) {
	for _, text := range []string{"", "größe-日本-🚀", "\x7f\u009b31m", "a\u202eb\u2066c", "\u2028\u200b\ufeff", "\x1b[2J\n", "bad\xff"} {
		document, err := json.Marshal(map[string]string{text: text})
		if err != nil {
			t.Fatal(err)
		}
		escaped := EscapeJSON(string(document))
		for _, r := range escaped {
			if IsHidden(r) {
				t.Errorf("%q: got %U", text, r)
			}
		}
		var before, after map[string]string
		if json.Unmarshal(document, &before) != nil || json.Unmarshal([]byte(escaped), &after) != nil {
			t.Fatalf("%q: got %q, which is not JSON", text, escaped)
		}
		for key, value := range before {
			if after[key] != value {
				t.Errorf("%q: got %q", text, escaped)
			}
		}
	}
	for r := rune(0x10000); r <= unicode.MaxRune; r++ {
		if IsHidden(r) {
			t.Fatalf("EscapeJSON cannot escape %U", r)
		}
	}
}
