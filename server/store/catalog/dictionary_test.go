package catalog_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// TestDictionaryMemoryIsBounded has one agent report many kinds. The memory for their dictionaries
// is limited, and all objects can be read.
func TestDictionaryMemoryIsBounded(t *testing.T) {
	f := newFixture(t)
	const maxSamples, maxDictionaries = 256 << 10, 512 << 10
	dicts := catalog.NewDictionaries(f.DB)
	dicts.SetLimits(maxDictionaries, maxSamples)
	f.UseDictionaries(dicts)
	const kinds = 40
	feeds := []commit.DeclaredFeed{{Feed: storetest.PodFeed}}
	for i := range kinds {
		feeds = append(feeds, commit.DeclaredFeed{Feed: vedette.Feed{Kind: vedette.Kind{Group: "example.org", Name: fmt.Sprint("Many", i)}}})
	}
	_, err := f.Declare(t.Context(), "prod", f.Term, feeds, nil)
	f.Must(err)
	sizeOf := func(kind int) int { return 20 + 20*(kind%2) } // enough for a dictionary, or not
	bodyOf := func(kind, n int) []byte {
		return []byte(fmt.Sprintf(`{"is":"%d of %d","pad":"`, n, kind) + strings.Repeat("x", 7<<10) + `"}`)
	}
	for kind := range kinds {
		var objects []vedette.Object
		for n := range sizeOf(kind) {
			o := storetest.PodAt(n, 1)
			o.Kind = vedette.Kind{Group: "example.org", Name: fmt.Sprint("Many", kind)}
			o.Body = bodyOf(kind, n)
			objects = append(objects, o)
		}
		f.CommitPods(1, objects...)
		if cached, sampled, _, _ := dicts.Memory(); sampled > maxSamples || cached > maxDictionaries {
			t.Fatalf("got %d bytes of samples and %d of dictionaries, want at most %d and %d", sampled, cached, maxSamples, maxDictionaries)
		}
	}
	countedCached, countedSampled, cached, sampled := dicts.Memory()
	if sampled != countedSampled || cached != countedCached || cached == 0 {
		t.Errorf("got %d bytes of samples and %d of dictionaries counted, want %d and %d", countedSampled, countedCached, sampled, cached)
	}
	for kind := range kinds {
		page, err := f.Objects(t.Context(), read.Query{Kinds: []vedette.Kind{{Group: "example.org", Name: fmt.Sprint("Many", kind)}}, Bodies: true, Limit: 100})
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
