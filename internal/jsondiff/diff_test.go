package jsondiff

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func TestDiffTestsWhatItReplaces(t *testing.T) {
	for _, test := range []struct{ what, before, after, want string }{
		{"nothing", `{"a":1}`, `{"a":1}`, `null`},
		{"a value", `{"a":1}`, `{"a":2}`, `[{"op":"test","path":"/a","value":1},{"op":"replace","path":"/a","value":2}]`},
		{"a member is added", `{}`, `{"a":null}`, `[{"op":"add","path":"/a","value":null}]`},
		{"a member is removed", `{"a":{"b":1}}`, `{}`, `[{"op":"test","path":"/a","value":{"b":1}},{"op":"remove","path":"/a"}]`},
		{"names with slashes and tildes", `{"a/b~c":1}`, `{"a/b~c":2}`,
			`[{"op":"test","path":"/a~1b~0c","value":1},{"op":"replace","path":"/a~1b~0c","value":2}]`},
		{"an element in the middle is added", `["a","c"]`, `["a","b","c"]`, `[{"op":"add","path":"/1","value":"b"}]`},
		{"an element in the middle is removed", `["a","b","c"]`, `["a","c"]`, `[{"op":"test","path":"/1","value":"b"},{"op":"remove","path":"/1"}]`},
		{"another type", `{"a":[]}`, `{"a":{}}`, `[{"op":"test","path":"/a","value":[]},{"op":"replace","path":"/a","value":{}}]`},
	} {
		steps, more := Diff(decode(t, test.before), decode(t, test.after), 1000)
		if got := encode(t, steps); more > 0 || got != test.want {
			t.Errorf("%s: got %s, want %s", test.what, got, test.want)
		}
	}
}

// TestDiffOfRandomDocuments applies patches with another implementation.
func TestDiffOfRandomDocuments(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		before := map[string]any{"root": randomValue(random, 4)}
		after := map[string]any{"root": mutated(random, before["root"])}
		steps, more := Diff(before, after, 1<<20)
		if more > 0 {
			t.Fatalf("document %d: %d steps are left out", i, more)
		}
		if len(steps) == 0 {
			if !reflect.DeepEqual(before, after) {
				t.Fatalf("document %d: got no steps from %v to %v", i, before, after)
			}
			continue
		}
		patch, err := jsonpatch.DecodePatch([]byte(encode(t, steps)))
		if err != nil {
			t.Fatal(err)
		}
		patched, err := patch.Apply([]byte(encode(t, before)))
		if err != nil {
			t.Fatalf("document %d: %v: %s of %s", i, err, encode(t, steps), encode(t, before))
		}
		if !reflect.DeepEqual(decode(t, string(patched)), decode(t, encode(t, after))) {
			t.Fatalf("document %d: got %s, want %s", i, patched, encode(t, after))
		}
	}
}

func randomValue(random *rand.Rand, depth int) any {
	switch n := random.IntN(6); {
	case n == 0 && depth > 0:
		list := []any{}
		for range random.IntN(4) {
			list = append(list, randomValue(random, depth-1))
		}
		return list
	case n <= 2 && depth > 0:
		object := map[string]any{}
		for range random.IntN(4) {
			object[fmt.Sprintf("%c/~", 'a'+random.IntN(5))] = randomValue(random, depth-1)
		}
		return object
	default:
		return float64(random.IntN(3))
	}
}

// mutated returns a copy of a document in which some values are others.
func mutated(random *rand.Rand, value any) any {
	if random.IntN(6) == 0 {
		return randomValue(random, 2)
	}
	switch v := value.(type) {
	case map[string]any:
		object := map[string]any{}
		for name, child := range v {
			if random.IntN(5) > 0 {
				object[name] = mutated(random, child)
			}
		}
		return object
	case []any:
		list := []any{}
		for _, child := range v {
			if random.IntN(5) > 0 {
				list = append(list, mutated(random, child))
			}
			if random.IntN(5) == 0 {
				list = append(list, randomValue(random, 1))
			}
		}
		return list
	}
	return value
}

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestPathsAreLimited compares long lists below a long name: each step has the name.
func TestPathsAreLimited(t *testing.T) {
	const n, name, limit = 50_000, 100_000, 1 << 20
	document := func(value any) any {
		return map[string]any{strings.Repeat("k", name): slices.Repeat([]any{value}, n)}
	}
	before, after := document(1), document(2)
	steps, more := Diff(before, after, limit)
	if len(steps) != 10 || len(steps)+more != 2*n {
		t.Errorf("got %d steps, and %d more", len(steps), more)
	}
}

// TestStepsAreLimited compares long lists: each step takes memory, however short its path is.
func TestStepsAreLimited(t *testing.T) {
	const n, limit = 100_000, 10_000
	steps, more := Diff(slices.Repeat([]any{1}, n), slices.Repeat([]any{2}, n), limit)
	if size := len(encode(t, steps)); size < limit || size > 2*limit || len(steps)+more != 2*n {
		t.Errorf("got %d steps of %d bytes, and %d more", len(steps), size, more)
	}
}

// TestDepthOfDiffIsLimited compares arrays in arrays: each level compares all below it.
func TestDepthOfDiffIsLimited(t *testing.T) {
	document := func(last any) any {
		v := any(append(slices.Repeat([]any{0}, 20_000), last))
		for range 900 {
			v = []any{v}
		}
		return v
	}
	steps, more := Diff(document(0), document(1), 1<<20)
	if len(steps) != 2 || more != 0 || strings.Count(steps[0].(Step).Path, "/") != maxDepth {
		t.Errorf("got %d steps, and %d more", len(steps), more)
	}
}
