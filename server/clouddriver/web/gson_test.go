package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestNumbersAreWrittenAsByGson(t *testing.T) {
	for in, want := range map[string]string{
		`{"replicas":3}`:                     `{"replicas":3.0}`,
		`{"a":0,"b":-1,"c":1.50,"d":-0}`:     `{"a":0.0,"b":-1.0,"c":1.5,"d":-0.0}`,
		`[9999999,10000000,12345678,1e21]`:   `[9999999.0,1.0E7,1.2345678E7,1.0E21]`,
		`[0.001,0.0001,0.00012,1.5e-10]`:     `[0.001,1.0E-4,1.2E-4,1.5E-10]`,
		`[9007199254740993]`:                 `[9.007199254740992E15]`,
		`{"a":null,"b":1,"c":null}`:          `{"b":1.0}`,
		`{"a":1,"b":null,"c":{"d":null}}`:    `{"a":1.0,"c":{}}`,
		`[null,1,[null]]`:                    `[null,1.0,[null]]`,
		`{"a":"3","b":"x\"1,\\","c":true}`:   `{"a":"3","b":"x\"1,\\","c":true}`,
		` { "a" : [ 1 , { } , false ] } `:    `{"a":[1.0,{},false]}`,
		`{"generation":1,"uid":"6e","n":{}}`: `{"generation":1.0,"uid":"6e","n":{}}`,
	} {
		if got := string(AsGson([]byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestManifestsAlwaysHaveAnnotations(t *testing.T) {
	for in, want := range map[string]string{
		`{"metadata":{"name":"a"},"spec":{"n":1}}`:          `{"metadata":{"name":"a","annotations":{}},"spec":{"n":1.0}}`,
		`{"metadata":{"annotations":null,"name":"a"}}`:      `{"metadata":{"name":"a","annotations":{}}}`,
		`{"metadata":{"annotations":{"b":"c"},"name":"a"}}`: `{"metadata":{"annotations":{"b":"c"},"name":"a"}}`,
		`{"metadata":{}}`: `{"metadata":{"annotations":{}}}`,
		`{"kind":"A"}`:    `{"kind":"A"}`,
		`{"spec":{"metadata":{"name":"b"}},"metadata":{"labels":{}}}`:     `{"spec":{"metadata":{"name":"b"}},"metadata":{"labels":{},"annotations":{}}}`,
		`{"spec":{"annotations":{}},"metadata":{"name":"a"}}`:             `{"spec":{"annotations":{}},"metadata":{"name":"a","annotations":{}}}`,
		`{"metadata":{"labels":{"annotations":"x"}},"spec":{"a":{}}}`:     `{"metadata":{"labels":{"annotations":"x"},"annotations":{}},"spec":{"a":{}}}`,
		`{"metadata":"text","spec":{"a":1}}`:                              `{"metadata":"text","spec":{"a":1.0}}`,
		`{"metadata":[{"name":"a"}],"spec":{"template":{"metadata":{}}}}`: `{"metadata":[{"name":"a"}],"spec":{"template":{"metadata":{}}}}`,
	} {
		if got := string(AsManifest([]byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestNullMembersAreRemoved(t *testing.T) {
	const in, want = `{"a":null,"b":[{"c":null,"d":3,"e":10000000}],"f":1.50}`, `{"b":[{"d":3,"e":10000000}],"f":1.50}`
	if got := string(WithoutNulls([]byte(in))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzAsGson checks that valid JSON keeps its meaning except for nulls, and that invalid JSON
// does not panic.
func FuzzAsGson(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `[1,null,{"b":null}]`, `{"a":"\u0000\\"}`, `{"a":1e400}`, `{`, `[1 2]`, `"`, `{"a":`, "nul", `[,]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out := AsGson(in)
		var want any
		if json.Unmarshal(in, &want) != nil {
			return // invalid JSON must only not panic
		}
		var got any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s: got %s, which is invalid: %v", in, out, err)
		}
		if !reflect.DeepEqual(got, withoutNull(want)) {
			t.Errorf("%s: got %s, want the same values", in, out)
		}
	})
}

func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == nil {
				delete(v, key)
				continue
			}
			v[key] = withoutNull(inner)
		}
	case []any:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	}
	return v
}

func FuzzDouble(f *testing.F) {
	f.Add(3.0)
	f.Add(1e7)
	f.Add(math.SmallestNonzeroFloat64)
	f.Fuzz(func(t *testing.T, want float64) {
		if math.IsNaN(want) || math.IsInf(want, 0) {
			return // JSON has no such numbers
		}
		text := string(appendDouble(nil, want))
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || got != want || !strings.Contains(text, ".") {
			t.Errorf("%v: got %s, want the same number with a decimal point", want, text)
		}
	})
}

func BenchmarkAsGson(b *testing.B) {
	var manifest bytes.Buffer
	fmt.Fprintf(&manifest, `{"items":[%s{"port":8080,"name":"x","none":null}]}`, strings.Repeat(`{"port":8080,"name":"a name of some length","none":null},`, 100))
	b.SetBytes(int64(manifest.Len()))
	for b.Loop() {
		AsGson(manifest.Bytes())
	}
}
