package exactjson_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/exactjson"
)

type description struct {
	Account  string          `json:"account"`
	Replicas *int            `json:"replicas"`
	Raw      json.RawMessage `json:"raw"`
	Number   json.Number     `json:"number"`
	List     []string        `json:"list"`
}

func TestNamesMatchExactly(t *testing.T) {
	three := 3
	for name, c := range map[string]struct {
		document string
		want     description
	}{
		"all members":                      {`{"account":"lab","replicas":3,"raw":{"a": 1},"number":1.50,"list":["x"]}`, description{"lab", &three, json.RawMessage(`{"a": 1}`), "1.50", []string{"x"}}},
		"names differ by case":             {`{"account":"lab","Account":"other","ACCOUNT":"other"}`, description{Account: "lab"}},
		"only the name in another case":    {`{"Account":"other"}`, description{}},
		"letters that fold to ASCII":       {`{"account":"lab","liſt":["x"]}`, description{Account: "lab"}},
		"an escaped name is the same name": {`{"\u0061ccount":"lab"}`, description{Account: "lab"}},
		"spaces belong to names":           {`{"account ":"other"}`, description{}},
		"null leaves a field as it is":     {`{"account":null,"replicas":null,"list":null}`, description{}},
		"white space around":               {" {\"account\":\"lab\"}\n", description{Account: "lab"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got description
			if err := exactjson.Unmarshal([]byte(c.document), &got, exactjson.Limits{}); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAmbiguousDocumentsAreRejected(t *testing.T) {
	for name, document := range map[string]string{
		"a member twice":                     `{"account":"lab","account":"other"}`,
		"a member twice, once escaped":       `{"account":"lab","\u0061ccount":"other"}`,
		"a member twice in an unknown one":   `{"x":{"y":[{"a":1,"a":2}]}}`,
		"a member twice in raw JSON":         `{"raw":{"a":1,"a":2}}`,
		"bytes that are not UTF-8":           "{\"account\":\"l\xffb\"}",
		"a name that is not UTF-8":           "{\"acc\xffount\":\"lab\"}",
		"half of a pair of UTF-16":           `{"account":"\ud800"}`,
		"two documents":                      `{"account":"lab"}{"account":"other"}`,
		"nothing":                            ``,
		"white space":                        ` `,
		"the end is missing":                 `{"account":"lab"`,
		"a comment":                          `{"account":"lab"} // other`,
		"a comma too many":                   `{"account":"lab",}`,
		"a member twice among many":          `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1,"r":1,"a":2}`,
		"another type than that of a member": `{"account":["lab"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var got description
			err := exactjson.Unmarshal([]byte(document), &got, exactjson.Limits{})
			if err == nil || strings.Contains(err.Error(), "other") {
				t.Errorf("got error %v and %+v, want an error that does not quote the document", err, got)
			}
		})
	}
}

func TestFieldsNeedTags(t *testing.T) {
	type status struct{ Phase string }
	for _, v := range []any{new(struct{ ID string }), new([]struct{ ID string }), new(struct {
		Status map[string]*status `json:"status"`
	})} {
		if err := exactjson.Unmarshal([]byte("null"), v, exactjson.Limits{}); err == nil || !strings.Contains(err.Error(), "has no json tag") {
			t.Errorf("%T: got %v, want an error of the missing tag", v, err)
		}
	}
	var hidden struct {
		Name   string `json:"name"`
		Cached string `json:"-"`
		local  string
		Raw    json.RawMessage `json:"raw"`
	}
	if err := exactjson.Unmarshal([]byte(`{"name":"a","local":"b"}`), &hidden, exactjson.Limits{}); err != nil || hidden.Name != "a" || hidden.local != "" {
		t.Errorf("got %+v, %v, want the name only", hidden, err)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	var d description
	err := exactjson.Unmarshal([]byte(`{"account":"lab","account":"x"}`), &d, exactjson.Limits{})
	var syntax *exactjson.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset != 16 || syntax.Error() != "a name occurs twice in one object at byte 16" {
		t.Errorf("got %v, want a syntax error at byte 16", err)
	}
	var mismatch *json.UnmarshalTypeError
	err = exactjson.Unmarshal([]byte(`{"list":["a",3]}`), &d, exactjson.Limits{})
	if !errors.As(err, &mismatch) || mismatch.Field != "list.1" || mismatch.Value != "number" || mismatch.Type.Kind() != reflect.String {
		t.Errorf("got %#v, want a number at list.1", err)
	}
}

// wide is larger than its JSON, as configuration and answers are.
type wide struct {
	Name  string    `json:"name"`
	Other [50]int64 `json:"other"`
	Next  *wide     `json:"next"`
}

// TestSizeIsAnUpperBound compares sizes with what decoding allocates, for documents that become much
// more than they are.
func TestSizeIsAnUpperBound(t *testing.T) {
	list := func(element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", 50_000), ",") + "]"
	}
	nested := strings.Repeat(`{"next":`, 900) + "null" + strings.Repeat("}", 900)
	var members strings.Builder
	for i := range 50_000 {
		members.WriteString(`,"` + strings.Repeat("k", i%7) + letters(i) + `":0`)
	}
	object := "{" + members.String()[1:] + "}"
	for name, c := range map[string]struct {
		document string
		v        any
	}{
		"objects with one member":     {list(`{"":0}`), new(any)},
		"empty objects":               {list(`{}`), new(any)},
		"empty arrays":                {list(`[]`), new(any)},
		"arrays of arrays":            {list(`[[0],[0]]`), new(any)},
		"short strings":               {list(`"ab"`), new(any)},
		"numbers":                     {list(`12345`), new(any)},
		"nulls":                       {list(`null`), new(any)},
		"objects with nine members":   {list(`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0}`), new(any)},
		"one object":                  {object, new(any)},
		"empty objects, structs":      {list(`{}`), new([]wide)},
		"nulls, structs":              {list(`null`), new([]wide)},
		"pointers to structs":         {list(`{}`), new([]*wide)},
		"structs in structs":          {"[" + nested + "]", new([]wide)},
		"raw":                         {list(`{"":0}`), new([]json.RawMessage)},
		"one object of structs":       {strings.ReplaceAll(object, ":0", ":{}"), new(map[string]wide)},
		"one object of raw":           {object, new(map[string]json.RawMessage)},
		"one object of small structs": {strings.ReplaceAll(object, ":0", ":{}"), new(map[string]description)},
	} {
		t.Run(name, func(t *testing.T) {
			size, err := exactjson.Measure([]byte(c.document), c.v, exactjson.Limits{Bytes: exactjson.Unlimited})
			if err != nil {
				t.Fatal(err)
			}
			taken := heapOf(t, func() {
				if err := exactjson.Unmarshal([]byte(c.document), c.v, exactjson.Limits{Bytes: exactjson.Unlimited}); err != nil {
					t.Error(err)
				}
			})
			runtime.KeepAlive(c.v)
			t.Logf("%d bytes of JSON, size %d, taken %d", len(c.document), size.Bytes, taken)
			if taken > size.Bytes {
				t.Errorf("the document takes %d bytes, more than its size of %d", taken, size.Bytes)
			}
		})
	}
}

// letters returns a name that only one number has.
func letters(i int) string {
	return string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576))
}

// heapOf returns by how many bytes f lets the heap grow.
func heapOf(t *testing.T, f func()) int64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

func TestDocumentsBeyondLimitsTakeNothing(t *testing.T) {
	document := []byte("[" + strings.TrimSuffix(strings.Repeat(`{"":0},`, 4<<20), ",") + "]")
	var got any
	var limit *exactjson.LimitError
	taken := heapOf(t, func() {
		if err := exactjson.Unmarshal(document, &got, exactjson.Limits{}); !errors.As(err, &limit) {
			t.Errorf("got %v, want an error of the limit", err)
		}
	})
	if got != nil || taken > 1<<20 {
		t.Errorf("a document that is too large took %d bytes and became %T, want nothing", taken, got)
	}
	if want := "take the 65536 KiB of memory"; !strings.Contains(limit.Error(), want) || limit.Offset > 4<<20 {
		t.Errorf("got %v at byte %d, want it to contain %s", limit, limit.Offset, want)
	}
	if err := exactjson.Unmarshal([]byte(strings.Repeat("[", 1001)+strings.Repeat("]", 1001)), &got, exactjson.Limits{}); !errors.As(err, &limit) {
		t.Errorf("got %v, want an error of the depth", err)
	}
	var members strings.Builder
	for i := range 300_000 {
		members.WriteString(`,"` + letters(i) + `":0`)
	}
	if err := exactjson.Check([]byte("{" + members.String()[1:] + "}")); !errors.As(err, &limit) || !strings.Contains(err.Error(), "262144 names") {
		t.Errorf("got %v, want an error of the number of names", err)
	}
	if err := exactjson.Check([]byte(strings.Repeat(`[{"a":1,"b":[{"c":1}]}`, 1) + strings.Repeat(`,{"a":1,"b":{}}`, 200_000) + "]")); err != nil {
		t.Error(err)
	}
	if err := exactjson.Unmarshal([]byte(`[[[1]]]`), &got, exactjson.Limits{Depth: 2}); !errors.As(err, &limit) {
		t.Errorf("got %v, want an error of the depth", err)
	}
	if err := exactjson.Unmarshal([]byte(`[[1]]`), &got, exactjson.Limits{Depth: 2}); err != nil {
		t.Error(err)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{`{"account":"lab","Account":"x"}`, `[1,2.5e9,"a",null,true,{}]`, `{"list":["a"]}`, `{"a":1,"a":2}`, "\"\xff\"", `[[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, standard any
		if err := exactjson.Unmarshal(data, &got, exactjson.Limits{}); err != nil {
			return
		}
		if err := json.Unmarshal(data, &standard); err != nil || !reflect.DeepEqual(got, standard) {
			t.Errorf("got %#v, encoding/json returns %#v and %v", got, standard, err)
		}
	})
}
