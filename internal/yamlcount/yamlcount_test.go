package yamlcount_test

import (
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/vedette-io/vedette/internal/yamlcount"
)

// TestValuesBoundMemory parses documents that become much more than they are.
func TestValuesBoundMemory(t *testing.T) {
	const n = 20_000
	for name, text := range map[string]string{
		"a list in a line":      "[" + strings.Repeat("a,", n) + "a]",
		"empty values":          "[" + strings.Repeat("{},", n) + "a]",
		"lists in lists":        strings.Repeat(strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+"\n---\n", 1),
		"pairs":                 "[" + strings.Repeat("a: ,", n) + "a]",
		"keys without values":   "{" + strings.Repeat("? ,", 1) + "a}",
		"lines":                 strings.Repeat("- a\n", n),
		"empty lines of a list": strings.Repeat("-\n", n),
		"lists in a line":       strings.Repeat("- - - - a\n", n/4),
		"keys":                  strings.Repeat("- a:\n", n),
		"keys in keys":          strings.Repeat("- a:\n    b:\n      c:\n", n/3),
		"complex keys":          strings.Repeat("- ? ? a\n", n/2),
		"quoted keys":           "[" + strings.Repeat(`{"a":"b"},`, n) + "a]",
		"tabs":                  strings.Repeat("-\ta:\tb\n", n),
	} {
		var before, after runtime.MemStats
		var node yaml.Node
		runtime.GC()
		runtime.ReadMemStats(&before)
		err := yaml.Unmarshal([]byte(text), &node)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(&node)
		taken, counted := int64(after.HeapAlloc)-int64(before.HeapAlloc), yamlcount.Values([]byte(text))*yamlcount.NodeBytes+len(text)
		t.Logf("%s: %d bytes of YAML take %d, counted as %d (%v)", name, len(text), taken, counted, err)
		if taken > int64(counted)+64<<10 {
			t.Errorf("%s: %d bytes of YAML take %d bytes, more than the %d that were counted", name, len(text), taken, counted)
		}
	}
}
