package artifacts

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func free(int) error { return nil }

// FuzzIndex checks that an index that is split has the same charts as one that is parsed as a
// whole, if both accept it, and that nothing panics.
func FuzzIndex(f *testing.F) {
	for _, seed := range []string{"entries:\n  a:\n  - version: '1'\n    urls: [x]\n  b: []\n", "entries:\n    a:\n        - version: 1\nx: 1\n",
		`{"entries":{"a":[{"version":"1"}]}}`, "entries:\n  'a b': [{version: x}]\n", "entries: {}\n", "entries:\n- a\n", "entries:\n  a:\n  - |\n   x:\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := map[string][]chart{}
		err := scanIndex(strings.NewReader(text), free, func(e indexEntry) error {
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
		err := scanIndex(strings.NewReader(index.String()), free, func(e indexEntry) error {
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
		{"lists in lists", "entries:\n  a:\n" + strings.Repeat("  - "+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+"\n", 100), "a chart has more than 400000 values"},
		{"keys in a line", "entries:\n  a:\n  - {" + strings.Repeat("? ", 500_000) + "}\n", "a chart has more than 400000 values"},
		{"a large chart in JSON", `{"entries":{"a":"` + strings.Repeat("x", 2*maxEntryBytes) + `"}}`, "a chart has more than 8 MiB of versions"},
		{"a large key in JSON", `{"` + strings.Repeat("x", 2*maxEntryBytes) + `":1}`, "a chart has more than 8 MiB of versions"},
	} {
		err := scanIndex(strings.NewReader(tt.index), free, func(e indexEntry) error {
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
	err := scanIndex(strings.NewReader(index.String()), free, func(e indexEntry) error {
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

// TestNamesNeedNoVersions scans charts whose names must be parsed, and which nobody asks for.
func TestNamesNeedNoVersions(t *testing.T) {
	versions := "    - urls: [" + strings.Repeat("a,", 100) + "]\n"
	for name, want := range map[string]string{`"a"`: "a", "'a: b'": "a: b", "a b": "a b", "a#b": "a#b", "!!str a": "a", `"\u0061": #`: "a", "a:b": "a:b"} {
		index := "entries:\n  " + name + ":\n" + strings.Repeat(versions, 3000) + "  last: []\n"
		var names []string
		taken := testing.AllocsPerRun(1, func() {
			names = nil
			if err := scanIndex(strings.NewReader(index), free, func(e indexEntry) error { names = append(names, e.name); return nil }); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if !slices.Equal(names, []string{want, "last"}) {
			t.Errorf("%s: got charts %q, want %q", name, names, want)
		}
		if taken > 10_000 {
			t.Errorf("%s: %v allocations, want that no version is parsed", name, taken)
		}
	}
	names := 0
	err := scanIndex(strings.NewReader("entries:\n  \"a\": [{version: x}]\n  ? b\n  : []\n"), free, func(indexEntry) error { names++; return nil })
	if err == nil || names != 1 {
		t.Errorf("got %d charts and %v, want one, and an error for a key that is not one line", names, err)
	}
}

// TestScansPayForWhatTheyHold scans charts that do not end.
func TestScansPayForWhatTheyHold(t *testing.T) {
	const size = 5 << 20
	noMemory := errors.New("no memory")
	for name, index := range map[string]string{
		"a line":          "entries:\n  a: " + strings.Repeat("x", size),
		"lines":           "entries:\n  a:\n" + strings.Repeat("  - version: '1'\n", size/17),
		"before entries":  "x: " + strings.Repeat("x", size),
		"JSON":            `{"entries":{"a":"` + strings.Repeat("x", size),
		"JSON of another": `{"x":"` + strings.Repeat("x", size),
	} {
		paid := 0
		visit := func(indexEntry) error { return nil }
		body := io.MultiReader(strings.NewReader(index), readerFunc(func([]byte) (int, error) {
			if paid < 2*size {
				t.Errorf("%s: %d bytes were paid for %d that have not ended", name, paid, size)
			}
			return 0, io.ErrUnexpectedEOF
		}))
		_ = scanIndex(body, func(bytes int) error { paid += bytes; return nil }, visit)
		if err := scanIndex(strings.NewReader(index), func(int) error { return noMemory }, visit); !errors.Is(err, noMemory) {
			t.Errorf("%s: got %v, want that there is no memory", name, err)
		}
	}
	many := "entries:\n" + strings.Repeat("  a:\n  - version: '1'\n", size/23)
	paid := 0
	if err := scanIndex(strings.NewReader(many), func(bytes int) error { paid += bytes; return nil }, func(indexEntry) error { return nil }); err != nil || paid > 1<<20 {
		t.Errorf("small charts: got %v, and %d bytes paid for", err, paid)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
