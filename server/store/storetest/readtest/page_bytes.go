package readtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// testPageBytes reads objects of all sizes in pages with a byte limit. No page exceeds it, and
// together they have all objects, by whichever index rows are found.
func testPageBytes(t *testing.T, s *store.Store) {
	const maxBytes = 100 << 10
	for _, account := range []vedette.AccountName{"one", "two"} {
		w := storetest.NewWriter(t, s, account)
		for i := range 200 {
			size := 100
			switch {
			case i%50 == 7:
				size = 60 << 10
			case i == 99:
				size = 2 * maxBytes
			}
			w.Put(objectOfSize(i, size, i%2 == 0))
		}
	}
	for why, q := range map[string]read.Query{
		"all": {}, "a kind of an account": {Accounts: []vedette.AccountName{"one"}, Kinds: []vedette.Kind{storetest.Pods}},
		"an application": {Application: "big"},
		"a selector":     {Selector: "size=any"}, "a namespace": {Namespace: "n"}, "small pages": {Limit: 7},
	} {
		q.Bodies, q.SkipTotal = true, true
		want := storetest.RowNames(storetest.QueryAll(t, s, q))
		q.Bytes = maxBytes
		var got []read.Row
		pages := 0
		for {
			page, err := s.Objects(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			got = append(got, page.Items...)
			if n := bodyBytes(page.Items); n > maxBytes && len(page.Items) > 1 {
				t.Errorf("%s: page %d: got %d bytes in %d rows, want at most %d", why, pages, n, len(page.Items), maxBytes)
			}
			q.After = page.Next
			if q.After == "" {
				break
			}
			if len(page.Items) == 0 {
				t.Fatalf("%s: page %d: got no rows, want at least one before the last page", why, pages)
			}
		}
		storetest.Equal(t, why, storetest.RowNames(got), want)
		if pages < 4 {
			t.Errorf("%s: got %d pages, want at least 4", why, pages)
		}
	}
	if page, err := s.Objects(t.Context(), read.Query{Bytes: maxBytes, Limit: 1000}); err != nil || len(page.Items) != 400 ||
		page.Next != "" {
		t.Errorf("without bodies: got %d rows, %v, want 400 on one page", len(page.Items), err)
	}
}

// objectOfSize returns an object whose body has that size. A random body does not compress.
func objectOfSize(i, size int, random bool) vedette.Object {
	o := storetest.Object(storetest.Pods, "n", fmt.Sprintf("p%03d", i), "1")
	text := strings.Repeat("x", size)
	if random {
		b := make([]byte, size)
		for n := range b {
			b[n] = byte(' ' + 1 + rand.IntN(90))
			if b[n] == '"' || b[n] == '\\' {
				b[n] = 'x'
			}
		}
		text = string(b)
	}
	o.Body = []byte(`{"data":"` + text + `"}`)
	o.Labels = map[string]string{"size": "any"}
	o.Annotations = map[string]string{"moniker.spinnaker.io/application": "big"}
	return o
}

func bodyBytes(rows []read.Row) (n int) {
	for _, r := range rows {
		n += len(r.Body)
	}
	return n
}
