package redact

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
)

var (
	configMaps  = vedette.Resource{Kind: vedette.Kind{Name: "ConfigMap"}, Version: "v1"}
	deployments = vedette.Resource{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Version: "v1"}
	works       = vedette.Resource{Kind: vedette.Kind{Group: "work.example.com", Name: "Work"}, Version: "v1alpha1"}
	resources   = []vedette.Resource{pods, secrets, configMaps, deployments, works}

	someRules = Config{Annotations: []string{"*credential*"}, ConfigMapKeys: []string{"*.key", "secret?"}, Environment: []string{"*password*", "API_?OKEN"}, SecretAnnotations: []string{"kept*", "*/team"}}

	// fuzzFields reach all places where something is cut or replaced.
	fuzzFields = []vedette.ProjectionField{
		{Name: "all", Path: "spec"}, {Name: "data", Path: "data"}, {Name: "keys", Path: "data.#"},
		{Name: "env", Path: "spec.containers.*.env.*.value"}, {Name: "envs", Path: "spec.containers.*.env.#"},
		{Name: "containers", Path: "spec.containers.*"}, {Name: "annotations", Path: "metadata.annotations"},
		{Name: "annotationCount", Path: "metadata.annotations.#"}, {Name: "owners", Path: "metadata.ownerReferences.*.name"},
		{Name: "deep", Path: "spec.manifests.*.data.password"}, {Name: "fields", Path: "metadata.managedFields"}, {Name: "list", Path: "spec.list.*.*.*"},
	}
)

func mustNew(tb testing.TB, c Config, fields []vedette.ProjectionField) *Redactor {
	tb.Helper()
	r, err := New(c, []vedette.Projection{{Fields: fields}}, vedette.HeaderAnnotations)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// depth is the deepest nesting in valid JSON.
func depth(raw []byte) int {
	deepest, current, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			current++
			deepest = max(deepest, current)
		case c == '}' || c == ']':
			current--
		}
	}
	return deepest
}

// FuzzObject checks that Object never panics, that it accepts the same JSON as encoding/json,
// and that its result is that of the reference.
func FuzzObject(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*.input.json")
	if err != nil || len(inputs) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, name := range inputs {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for i := range resources {
			f.Add(raw, uint8(i), i%2 == 0)
		}
	}
	f.Add([]byte(`{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"list":[[1,[2,null]],3,[[]]]}}`), uint8(4), false)
	withRules, withoutRules := mustNew(f, someRules, fuzzFields), mustNew(f, Config{}, fuzzFields)
	f.Fuzz(func(t *testing.T, raw []byte, which uint8, rules bool) {
		ref := reference{resource: resources[int(which)%len(resources)]}
		r := withoutRules
		if rules {
			r, ref.config = withRules, someRules
		}
		input := bytes.Clone(raw)
		before := []byte("before")
		o, dst, err := r.Object(before, ref.resource, raw)
		if !bytes.Equal(raw, input) || !bytes.HasPrefix(dst, before) {
			t.Fatal("Object changed its input or the content of dst")
		}
		if err != nil {
			checkRefusal(t, raw, dst, err)
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("%q: got no error, want one for invalid JSON", raw)
		}
		if string(dst) != "before"+string(o.Body)+string(o.Summary) {
			t.Fatalf("got buffer %q, want body %q and summary %q", dst, o.Body, o.Summary)
		}
		decode(t, o.Body)
		if unique(raw) && utf8.Valid(raw) {
			ref.check(t, raw, o, fuzzFields)
		}
	})
}

func checkRefusal(t *testing.T, raw, dst []byte, err error) {
	t.Helper()
	if string(dst) != "before" {
		t.Fatalf("got buffer %q after error %v, want it unchanged", dst, err)
	}
	if json.Valid(raw) && depth(raw) <= maxDepth && strings.HasPrefix(err.Error(), "byte ") && !strings.HasSuffix(err.Error(), "expected an object") {
		t.Fatalf("%q: got error %v, want none for valid JSON", raw, err)
	}
}

// FuzzReadMetadata checks that ReadMetadata agrees with Object.
func FuzzReadMetadata(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}`))
	f.Add([]byte(`{"metadata":{"name":"\u0061","resourceVersion":"1","uid":"u"}}`))
	r := mustNew(f, Config{}, nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := ReadMetadata(raw)
		o, _, objectErr := r.Object(nil, pods, raw)
		if objectErr != nil || !unique(raw) || !utf8.Valid(raw) {
			return
		}
		if err != nil || h.UID != o.UID || h.ResourceVersion != o.ResourceVersion || h.Namespace != o.Namespace || h.Name != o.Name {
			t.Fatalf("%q: got metadata %+v, %v, want that of Object %+v", raw, h, err, o)
		}
	})
}

func FuzzUnescape(f *testing.F) {
	f.Add(`a\u00e9\ud83d\ude00\ud83d\n\"\\\/`)
	f.Fuzz(func(t *testing.T, s string) {
		var want string
		if json.Unmarshal([]byte(`"`+s+`"`), &want) != nil || !utf8.ValidString(s) {
			return
		}
		if got := unescape(nil, []byte(s)); string(got) != want {
			t.Fatalf("unescape(%q): got %q, want %q", s, got, want)
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("*PASS*word?", "db_password1")
	f.Add("a*b*c", "abbcbc")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if validateGlobs("test", []string{pattern}) != nil || !ascii(pattern) || !ascii(name) {
			return
		}
		if got, want := compileGlobs([]string{pattern}).match([]byte(name)), anyGlob([]string{pattern}, name); got != want {
			t.Fatalf("match(%q, %q): got %v, want %v", pattern, name, got, want)
		}
	})
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
