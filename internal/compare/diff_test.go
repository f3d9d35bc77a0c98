package compare_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/compare"
)

func answer(status int, body string) compare.Answer {
	return compare.Answer{Path: "/x", Status: status, Body: json.RawMessage(body)}
}

func TestOnlyMeaningfulDifferencesAreFound(t *testing.T) {
	for _, tt := range []struct {
		name string
		a, b string
		want string // "field: a | b" of each difference
	}{
		{"the order of members does not count", `{"a":1,"b":2}`, `{"b":2,"a":1}`, ""},
		{"the order of lists does not count", `[1,[2,3],{"a":[4,5]}]`, `[{"a":[5,4]},[3,2],1]`, ""},
		{"numbers differ by their form", `{"n":1.0}`, `{"n":1}`, ".n: 1.0 | 1"},
		{"decimals are compared by value", `{"n":1.50}`, `{"n":1.5}`, ""},
		{"integers beyond 2^53 are exact", `9007199254740993`, `9007199254740992`, ".: 9007199254740993 | 9007199254740992"},
		{"null is not absent", `{"a":null}`, `{}`, ".a: null | "},
		{"an empty list is not absent", `{}`, `{"a":[]}`, ".a:  | []"},
		{"items are paired by what identifies them", `[{"name":"a","n":1},{"name":"b","n":2}]`, `[{"name":"b","n":3},{"name":"a","n":1}]`, ".[].n: 2 | 3"},
		{"an item of one side only", `[{"name":"a"},{"name":"b"}]`, `[{"name":"b"}]`, `.[]: {"name":"a"} | `},
		{"an item that occurs twice", `["a","a"]`, `["a"]`, `.[]: "a" | `},
		{"items without identity are paired", `[{"n":1}]`, `[{"n":2}]`, ".[].n: 1 | 2"},
		{"keys that are data are one field", `{"m":{"a-b":1,"c.d":2}}`, `{"m":{"a-b":2,"c.d":3}}`, ".m.<key>: 1 | 2\n.m.<key>: 2 | 3"},
		{"annotations of Spinnaker are one field", `{"moniker.spinnaker.io/application":"a"}`, `{}`, `.<spinnaker>: "a" | `},
		{"different types", `{"a":[]}`, `{"a":{}}`, ".a: [] | {}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := compare.Compare(answer(200, tt.a), answer(200, tt.b), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range found {
				got = append(got, fmt.Sprintf("%s: %s | %s", d.Field, d.A, d.B))
			}
			if got := strings.Join(got, "\n"); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDifferentStatusesAreOneDifference(t *testing.T) {
	found, err := compare.Compare(answer(200, `[]`), answer(404, `{}`), nil)
	if err != nil || len(found) != 1 || found[0].Field != "status 200/404" {
		t.Errorf("got %v, %v, want one difference of the status", found, err)
	}
	found, err = compare.Compare(answer(404, `{"timestamp":1,"message":"a"}`), answer(404, `{"timestamp":2,"message":"a"}`), nil)
	if err != nil || len(found) != 0 {
		t.Errorf("errors that differ in their time: got %v, %v, want no difference", found, err)
	}
	found, err = compare.Compare(answer(200, `{"timestamp":1}`), answer(200, `{"timestamp":2}`), nil)
	if err != nil || len(found) != 1 {
		t.Errorf("answers with a time: got %v, %v, want one difference", found, err)
	}
}

// TestManyDifferencesAreBounded compares lists that have nothing in common.
func TestManyDifferencesAreBounded(t *testing.T) {
	list := func(prefix string) string {
		var items []string
		for i := range 5000 {
			items = append(items, fmt.Sprintf(`{"name":"%s-%d"}`, prefix, i))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	found, err := compare.Compare(answer(200, list("a")), answer(200, list("b")), nil)
	if err != nil || len(found) != 1000 || found[999].Field != "more than 1000 differences" {
		t.Errorf("got %d differences, %v, want 1000, of which the last says that there are more", len(found), err)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add(`{"a":[1,2.0,{"name":"x"}]}`, `[{"name":"x","a":null}]`)
	f.Add(`1e999`, `-0`)
	f.Add(`{"data":{"a":"b"}}`, `"\ud800"`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if !json.Valid([]byte(a)) || !json.Valid([]byte(b)) {
			return
		}
		for _, body := range []string{a, b} {
			found, err := compare.Compare(answer(200, body), answer(200, body), nil)
			if err != nil || len(found) != 0 {
				t.Errorf("a body differs from itself: %v, %v", found, err)
			}
		}
		there, err := compare.Compare(answer(200, a), answer(200, b), []string{"dev"})
		if err != nil {
			t.Fatal(err)
		}
		back, err := compare.Compare(answer(200, b), answer(200, a), []string{"dev"})
		if err != nil || len(there) != len(back) {
			t.Errorf("got %d differences, and %d the other way round (%v)", len(there), len(back), err)
		}
	})
}
