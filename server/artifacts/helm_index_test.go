package artifacts

import (
	"fmt"
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

// TestIndexOfSmallValues checks indexes that would take gigabytes of memory after they are parsed.
func TestIndexOfSmallValues(t *testing.T) {
	for _, tt := range []struct{ name, index, want string }{
		{"versions in one line", "entries:\n  a: [{}" + strings.Repeat(",{}", maxEntryValues) + "]\n", "a chart has more than 400000 values"},
		{"versions in lines", "entries:\n  a:\n" + strings.Repeat("  -\n", maxEntryValues), "a chart has more than 400000 values"},
		{"a name that must be parsed", "entries:\n  \"a\":\n" + strings.Repeat("  -\n", maxEntryValues), "a chart has more than 400000 values"},
		{"versions in JSON", `{"entries":{"a":[{}` + strings.Repeat(",{}", maxEntryValues+1) + `]}}`, "a chart has more than 400000 values"},
		{"URLs in JSON", `{"entries":{"a":[{"urls":[""` + strings.Repeat(`,""`, maxEntryValues+1) + `]}]}}`, "a chart has more than 400000 values"},
		{"a large chart in JSON", `{"entries":{"a":"` + strings.Repeat("x", 2*maxEntryBytes) + `"}}`, "a chart has more than 8 MiB of versions"},
		{"a large key in JSON", `{"` + strings.Repeat("x", 2*maxEntryBytes) + `":1}`, "a chart has more than 8 MiB of versions"},
	} {
		err := scanIndex(strings.NewReader(tt.index), func(e indexEntry) error {
			_, err := e.charts()
			return err
		})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestLargeIndexInJSON checks that the limit is one of each chart, not of the index.
func TestLargeIndexInJSON(t *testing.T) {
	var index strings.Builder
	index.WriteString(`{"x":"` + strings.Repeat("x", maxEntryBytes/2) + `","y":"` + strings.Repeat("y", maxEntryBytes/2) + `","entries":{`)
	for i := range 4 {
		fmt.Fprintf(&index, `"c%d":[{"version":"%d","urls":["%s"]}],`, i, i, strings.Repeat("u", maxEntryBytes/2))
	}
	index.WriteString(`"last":[{"version":"1"}]}}`)
	count := 0
	err := scanIndex(strings.NewReader(index.String()), func(e indexEntry) error {
		count++
		charts, err := e.charts()
		if len(charts) != 1 {
			t.Errorf("%s: got %d versions, want 1", e.name, len(charts))
		}
		return err
	})
	if err != nil || count != 5 {
		t.Errorf("got %d charts, %v, want 5", count, err)
	}
}
