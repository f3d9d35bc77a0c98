package yamlcount_test

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette/internal/yamlcount"
)

// TestExpandedSizeBoundsTheJSON compares what is measured with the JSON that a document becomes.
func TestExpandedSizeBoundsTheJSON(t *testing.T) {
	var nested strings.Builder
	nested.WriteString("a0: &a0 [x, x]\n")
	for i := 1; i < 60; i++ {
		fmt.Fprintf(&nested, "a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	for name, tt := range map[string]struct {
		text       string
		isManifest bool
	}{
		"a manifest":             {"kind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n    <b>\"\\\n", true},
		"an alias":               {"a: &a {b: [1, 2]}\nc: *a\nd: {<<: *a, e: 1}\n", true},
		"escapes":                {"a: '" + strings.Repeat("<", 1000) + "'\n", true},
		"aliases of a long text": {"a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 90) + "]\n", false},
		"aliases of aliases":     {nested.String(), false},
		"aliases in keys":        {"a: &a {b: c}\n? *a\n: d\n", true},
		"itself":                 {"a: &a [*a]\n", false},
		"long text of escapes":   {"a: '" + strings.Repeat("<", 3<<20) + "'\n", false},
	} {
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(tt.text), &document); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		size := yamlcount.Expanded(&document)
		if size.IsManifest() != tt.isManifest {
			t.Errorf("%s: got %+v, want that it may be a manifest: %v", name, size, tt.isManifest)
		}
		if !size.IsManifest() {
			continue
		}
		if text, err := kyaml.YAMLToJSON([]byte(tt.text)); err == nil && size.Bytes < int64(len(text)) {
			t.Errorf("%s: got %+v, but it becomes %d bytes", name, size, len(text))
		}
	}
}
