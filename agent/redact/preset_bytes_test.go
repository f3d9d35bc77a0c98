package redact_test

import (
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/test/corpus"
)

// TestStrictPresetBytes measures what the strict preset leaves of realistic objects, and prints it.
func TestStrictPresetBytes(t *testing.T) {
	var sizes [2]map[string]int
	counts := map[string]int{}
	for i, preset := range []string{"", redact.PresetStrict} {
		sizes[i] = map[string]int{}
		r, err := redact.New(redact.Config{Preset: preset}, nil, vedette.HeaderAnnotations)
		if err != nil {
			t.Fatal(err)
		}
		c := corpus.New(1)
		for range 2000 {
			item := c.Next()
			kind := item.Object.Kind
			o, _, err := r.Object(nil, vedette.Resource{Kind: kind, Version: "v1"}, item.Raw)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{kind.Name, "all"} {
				sizes[i][name] += len(o.Body)
				counts[name] += 1 - i
			}
		}
	}
	for name, n := range counts {
		t.Logf("| %s | %d | %d |", name, sizes[0][name]/n, sizes[1][name]/n)
		if sizes[1][name] >= sizes[0][name] {
			t.Errorf("%s: the preset leaves %d bytes of %d", name, sizes[1][name], sizes[0][name])
		}
	}
	if all := "all"; sizes[1][all] > sizes[0][all]*3/4 {
		t.Errorf("the preset leaves %d bytes of %d, more than 75 %%", sizes[1][all], sizes[0][all])
	}
}
