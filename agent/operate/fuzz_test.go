package operate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	"github.com/vedette-io/vedette"
)

// FuzzManifest holds that no manifest makes anything panic, that what is taken
// has what a path needs, and that a Secret's values never stand in an error.
func FuzzManifest(f *testing.F) {
	for _, seed := range []string{
		"", "{", "[]", "null", "1", "a: [", "--- \n", "kind: A\n---\nkind: B", `{"metadata":null}`, `{"metadata":{"labels":[]}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","annotations":null},"data":{"a":"c2VjcmV0LXZhbHVl"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[]}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"../x"}}`, `{"apiVersion":1,"kind":[],"metadata":{"name":{}}}`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: &x b, c: *x}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := parseManifest(raw)
		if err != nil {
			if vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%q: %v is no fault of the caller", raw, err)
			}
			return
		}
		if m.apiVersion == "" || m.kind == "" || m.name == "" && m.generateName == "" || strings.Contains(m.name, "/") {
			t.Errorf("%q was taken as %+v", raw, m)
		}
		modified := annotated(m)
		if _, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte("{}"), modified, []byte("{}")); err != nil {
			t.Errorf("%q can't be merged: %v", modified, err)
		}
		_ = Mode{}.choose(vedette.Resource{}, m, vedette.ByMode)
		m.kind = "Secret"
		values := secretValues(m.object)
		err = veil(m, errors.New("bad: "+strings.Join(values, " / ")))
		for _, v := range values {
			if strings.Contains(err.Error(), v) && !strings.Contains("bad: *** / ***", v) {
				t.Errorf("%q still tells %q", err, v)
			}
		}
	})
}

// FuzzAppliedBy holds that no managed fields make anything panic, and that what
// is picked of an object is part of it.
func FuzzAppliedBy(f *testing.F) {
	f.Add([]byte(`{"spec":{"a":[{"name":"x","v":1},{"name":"y"}],"s":["p","q"]},"metadata":{"managedFields":[{"manager":"kubectl","operation":"Apply",
		"fieldsV1":{"f:spec":{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:v":{}}},"f:s":{"v:\"q\"":{}}}}}]}}`))
	f.Add([]byte(`{"spec":[],"metadata":{"managedFields":[{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:spec":{"k:{":{},"v:":{},"i:0":{}}}}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var tree object
		if json.Unmarshal(raw, &tree) != nil {
			return
		}
		whole, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		part, err := json.Marshal(appliedBy(tree, kubectlManager))
		if err != nil || len(part) > len(whole)+2 {
			t.Errorf("of %s was picked %s (%v)", whole, part, err)
		}
	})
}

// TestAppliedBy picks what a manager applied.
func TestAppliedBy(t *testing.T) {
	var tree object
	if err := json.Unmarshal([]byte(`{"spec":{"a":[{"name":"x","v":1,"w":2},{"name":"y"}],"s":["p","q"],"m":{"i":[1,2]},"other":true},
		"metadata":{"managedFields":[{"manager":"other","operation":"Apply","fieldsV1":{"f:spec":{"f:other":{}}}},
		{"manager":"kubectl","operation":"Update","fieldsV1":{"f:spec":{"f:other":{}}}},
		{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:spec":{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:v":{}}},"f:s":{"v:\"q\"":{}},"f:m":{"f:i":{}}}}}]}}`), &tree); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(appliedBy(tree, kubectlManager))
	if want := `{"spec":{"a":[{"name":"x","v":1}],"m":{"i":[1,2]},"s":["q"]}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
