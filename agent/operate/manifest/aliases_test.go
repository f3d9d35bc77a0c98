package manifest_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// TestAliasesAreCounted parses YAML whose JSON is a hundred times as long.
func TestAliasesAreCounted(t *testing.T) {
	text := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 90) + "]\n"
	if _, err := manifest.YAMLToJSON([]byte(text), "patch"); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "aliases") {
		t.Errorf("got %v, want that the patch is rejected", err)
	}
	if raw, err := manifest.YAMLToJSON([]byte("a: &a [x]\nb: *a\n"), "patch"); err != nil || string(raw) != `{"a":["x"],"b":["x"]}` {
		t.Errorf("got %s, %v, want the aliases replaced", raw, err)
	}
}
