package manifest

import (
	"testing"

	"github.com/vedette-io/vedette"
)

func TestParseErrorsDoNotQuoteManifests(t *testing.T) {
	for _, tt := range []struct{ name, raw, want, wantError string }{
		{"JSON", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"n":1,"f":1.5}`, `{"apiVersion":"v1","f":1.5,"kind":"Pod","metadata":{"name":"p"},"n":1}`, ""},
		{"YAML", "apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}", `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"p-"}}`, ""},
		{"empty", " \n", "", "the manifest is empty"},
		{"invalid JSON", `{"s3cret"`, "", "the manifest is not JSON: syntax error at byte 9"},
		{"misplaced text", `{"kind":s3cret}`, "", "the manifest is not JSON: syntax error at byte 9"},
		{"a list", `["s3cret"]`, "", "the manifest is not a JSON object"},
		{"invalid YAML", "a: s3cret\nb: {", "", "the manifest is neither JSON nor YAML: check line 2"},
		{"two documents", "a: 1\n---\nb: 2", "", "the manifest contains more than one document: send each as its own operation"},
		{"no metadata", `{"kind":"Pod"}`, "", "the manifest has no metadata"},
		{"a number as name", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":7}}`, "", "the manifest's name is not a string"},
		{"a list as labels", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":["s3cret"]}}`, "", "the labels of the manifest are not an object"},
		{"no kind", `{"apiVersion":"v1","metadata":{"name":"p"}}`, "", "the manifest has no kind"},
		{"no name", `{"apiVersion":"v1","kind":"Pod","metadata":{}}`, "", "the manifest of kind Pod has no metadata.name"},
		{"a path as name", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"../p"}}`, "", `"../p" is not a valid name of an object`},
	} {
		m, err := Parse([]byte(tt.raw))
		switch {
		case tt.wantError != "":
			if err == nil || err.Error() != tt.wantError || vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%s: got error %v, want %s", tt.name, err, tt.wantError)
			}
		case err != nil:
			t.Errorf("%s: got error %v", tt.name, err)
		case string(m.Encode()) != tt.want:
			t.Errorf("%s: got %s, want %s", tt.name, m.Encode(), tt.want)
		}
	}
}

func TestWithoutPreconditionsAndNulls(t *testing.T) {
	m, err := Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u","resourceVersion":"7"},"spec":{"a":null,"l":[null,{"b":null}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	before := string(m.Encode())
	got := Manifest{Object: WithoutNulls(m.WithoutPreconditions().Object)}.Encode()
	if want := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"l":[null,{}]}}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !m.HasPreconditions() || string(m.Encode()) != before {
		t.Errorf("the original changed: got %s, want %s", m.Encode(), before)
	}
}
