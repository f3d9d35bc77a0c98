package artifacts

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// FuzzIndex checks that an index that is split has the same charts as one that is parsed as a
// whole, if both accept it, and that nothing panics.
func FuzzIndex(f *testing.F) {
	for _, seed := range []string{"entries:\n  a:\n  - version: '1'\n    urls: [x]\n  b: []\n", "entries:\n    a:\n        - version: 1\nx: 1\n",
		`{"entries":{"a":[{"version":"1"}]}}`, "entries:\n  'a b': [{version: x}]\n", "entries: {}\n", "entries:\n- a\n", "entries:\n  a:\n  - |\n   x:\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := map[string][]chart{}
		err := scanIndex(strings.NewReader(text), func(e indexEntry) error {
			charts, err := e.charts()
			got[e.name] = charts
			return err
		})
		var whole struct {
			Entries map[string][]chart `yaml:"entries"`
		}
		// Only the form that Helm writes is compared.
		if err != nil || !strings.HasPrefix(text, "entries:\n  a:\n  - version: ") || yaml.Unmarshal([]byte(text), &whole) != nil {
			return
		}
		want := slices.Sorted(maps.Keys(whole.Entries))
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("%q: got charts %q, want %q", text, names, want)
		}
	})
}

// BenchmarkIndex shows what an index of 20 MB costs: see allocated bytes.
func BenchmarkIndex(b *testing.B) {
	var index strings.Builder
	index.WriteString("apiVersion: v1\nentries:\n")
	for i := range 200 {
		index.WriteString("  chart-" + strings.Repeat("x", i) + ":\n")
		index.WriteString(strings.Repeat("  - apiVersion: v2\n    description: some text about the chart\n    version: 1.2.3\n    urls:\n    - https://example.com/chart-1.2.3.tgz\n", 800))
	}
	b.SetBytes(int64(index.Len()))
	b.ReportAllocs()
	for b.Loop() {
		err := scanIndex(strings.NewReader(index.String()), func(e indexEntry) error {
			if e.name != "chart-xxx" {
				return nil
			}
			_, err := e.charts()
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
