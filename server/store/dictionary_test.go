package store

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestDictionaryMemoryIsBounded has one agent report many kinds. The memory for their dictionaries
// is limited, and all objects can be read.
func TestDictionaryMemoryIsBounded(t *testing.T) {
	w := newFixture(t)
	w.limits.samples, w.limits.dictionaries = 256<<10, 512<<10
	const kinds = 40
	w.must(w.declare(kindFeeds("Many", kinds)...))
	sizeOf := func(kind int) int { return 20 + 20*(kind%2) } // enough for a dictionary, or not
	bodyOf := func(kind, n int) []byte {
		return []byte(fmt.Sprintf(`{"is":"%d of %d","pad":"`, n, kind) + strings.Repeat("x", 7<<10) + `"}`)
	}
	for kind := range kinds {
		var objects []vedette.Object
		for n := range sizeOf(kind) {
			o := podAt(n, 1)
			o.Kind = vedette.Kind{Group: "example.org", Name: fmt.Sprint("Many", kind)}
			o.Body = bodyOf(kind, n)
			objects = append(objects, o)
		}
		w.commit(1, objects...)
		if d := &w.dicts; d.sampleBytes > w.limits.samples || d.cachedBytes > w.limits.dictionaries {
			t.Fatalf("got %d bytes of samples and %d of dictionaries, want at most %d and %d", d.sampleBytes, d.cachedBytes, w.limits.samples, w.limits.dictionaries)
		}
	}
	sampled, cached := 0, 0
	for _, sample := range w.dicts.samples {
		sampled += sample.Size()
	}
	for _, d := range w.dicts.byID {
		cached += d.Size()
	}
	if sampled != w.dicts.sampleBytes || cached != w.dicts.cachedBytes || cached == 0 {
		t.Errorf("got %d bytes of samples and %d of dictionaries counted, want %d and %d", w.dicts.sampleBytes, w.dicts.cachedBytes, sampled, cached)
	}
	for kind := range kinds {
		page, err := w.Objects(t.Context(), Query{Kinds: []vedette.Kind{{Group: "example.org", Name: fmt.Sprint("Many", kind)}}, Bodies: true, Limit: 100})
		if err != nil || len(page.Items) != sizeOf(kind) {
			t.Fatalf("got %d objects, %v, want %d", len(page.Items), err, sizeOf(kind))
		}
		for i := range page.Items {
			var n int
			if _, err := fmt.Sscanf(page.Items[i].Name, "pod-%d", &n); err != nil || !bytes.Contains(page.Items[i].Body, []byte(fmt.Sprintf("%d of %d", n, kind))) {
				t.Fatalf("%s: got body %.100s, want that of object %d of kind %d", page.Items[i].Key, page.Items[i].Body, n, kind)
			}
		}
	}
}
