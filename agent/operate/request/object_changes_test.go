package request

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/internal/jsondiff"
)

// TestRecordOfDeletions checks that the record does not say that an object is gone that only begins to be deleted.
func TestRecordOfDeletions(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"uid":"u"}}`
	const terminating = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","resourceVersion":"7","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"]}}`
	p := Path{Resource: vedette.Resource{Kind: vedette.Kind{Name: "Pod"}, Version: "v1", Plural: "pods", Namespaced: true}, Namespace: "shop", Name: "p"}
	for _, tt := range []struct {
		what, response string
		gone           bool
		wantAfter      string
		wantRemove     bool
	}{
		{"gone at once", status, false, "", true},
		{"gone later", terminating, true, "", true},
		{"kept by a finalizer", terminating, false, "7", false},
	} {
		r := new(Client).NewSender(vedette.Operation{Args: vedette.DeleteArgs{Target: vedette.Target{Kind: "pod", Name: "p"}}}, Control{})
		r.noteResponse(t.Context(), p, Request{Method: http.MethodDelete}, "", []byte(tt.response), nil)
		if tt.gone {
			r.NoteGone(p.Key())
		}
		all := r.ListChanges(t.Context(), vedette.Done)
		if len(all) != 1 || all[0].After != tt.wantAfter || strings.Contains(string(all[0].Patch), "remove") != tt.wantRemove || (all[0].Note == "") != tt.wantRemove {
			t.Errorf("%s: got %+v", tt.what, all)
		}
	}
}

// TestObjectsBeyondTheLimitAreCounted checks that a deletion of more objects than the record has room for counts each of
// the others once, although several requests concern it.
func TestObjectsBeyondTheLimitAreCounted(t *testing.T) {
	r := new(Client).NewSender(vedette.Operation{Args: vedette.DeleteArgs{Target: vedette.Target{Kind: "pod"}}}, Control{})
	for i := range vedette.MaxChangeObjects + 7 {
		p := Path{Resource: vedette.Resource{Kind: vedette.Kind{Name: "Pod"}, Version: "v1", Plural: "pods", Namespaced: true}, Namespace: "shop", Name: fmt.Sprint("p", i)}
		req := Request{Method: http.MethodDelete}
		r.readBefore(t.Context(), p, req)
		r.noteResponse(t.Context(), p, req, "", []byte(`{"kind":"Status","metadata":{}}`), nil)
	}
	all := r.ListChanges(t.Context(), vedette.Done)
	if len(all) != vedette.MaxChangeObjects || !strings.Contains(all[len(all)-1].Note, "7 more objects were changed") {
		t.Errorf("got %d changes, the last %+v", len(all), all[len(all)-1])
	}
}

// TestCutPatchesEndWithNoTest checks that a patch does not end with a test, which would look like a removal.
func TestCutPatchesEndWithNoTest(t *testing.T) {
	before := object{"a": "1", "b": "2", "c": "3"}
	for what, tt := range map[string]struct {
		after      object
		want, note string
	}{
		"whole": {object{"a": "2", "b": "2", "c": "3"}, `[{"op":"test","path":"/a","value":"1"},{"op":"replace","path":"/a","value":"2"}]`, ""},
		"cut": {object{"a": "2", "b": strings.Repeat("x", vedette.MaxPatchBytes), "c": "4"},
			`[{"op":"test","path":"/a","value":"1"},{"op":"replace","path":"/a","value":"2"}]`, "4 of its 6 steps"},
		"nothing fits": {object{"a": strings.Repeat("x", vedette.MaxPatchBytes), "b": "2", "c": "3"}, "", "2 of its 2 steps"},
	} {
		var change vedette.ObjectChange
		steps, more := jsondiff.Diff(before, tt.after, vedette.MaxPatchBytes)
		setPatch(&change, steps, more, vedette.MaxChangesBytes)
		if string(change.Patch) != tt.want || !strings.Contains(change.Note, tt.note) || (tt.note == "") != (change.Note == "") {
			t.Errorf("%s: got %s, %q", what, change.Patch, change.Note)
		}
	}
}

// TestMemoryOfRecords checks that to make the record of a large object takes no memory that grows with it, besides the decoded
// objects, which compare counts.
func TestMemoryOfRecords(t *testing.T) {
	text := strings.Repeat("<\xff\n", 1<<20)
	many := object{}
	for i := range 1000 {
		many[fmt.Sprint(i)] = []any{strings.Repeat("x", 1000)}
	}
	for name, value := range map[string]any{"a text": text, "members": many, "a list": []any{many, many}} {
		tree := object{"spec": object{"template": object{"a": value, "b": "c"}}}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		most := max(maxPatchMemory, int64(len(raw)/2)) // the names of members are sorted, which takes more with the race detector
		for what, f := range map[string]func(){
			"a patch": func() {
				var change vedette.ObjectChange
				if setPatch(&change, jsondiff.Created(tree), 0, vedette.MaxChangesBytes); change.Patch != nil || !strings.Contains(change.Note, "1 of its 1") {
					t.Errorf("%s: got %d bytes, %q", name, len(change.Patch), change.Note)
				}
			},
			"a digest": func() {
				if templateDigest(tree) == "" {
					t.Errorf("%s: got no digest", name)
				}
			},
		} {
			if n := testing.Benchmark(func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			}).AllocedBytesPerOp(); n > most {
				t.Errorf("%s of %s: got %d bytes allocated, want at most %d", what, name, n, most)
			}
		}
	}
}

// TestRoomFollowsTheEncodedSize compares the size of values as JSON with that of their encoding.
func TestRoomFollowsTheEncodedSize(t *testing.T) {
	for _, value := range []any{"", "a\"\\\n\x01\xff<é\u1234", object{}, object{"a": "b", "<": []any{"", object{}, "x"}}, []any{}, []any{[]any{}, "\t\b"}} {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if used := 1000 - roomAfter(value, 1000); used > len(raw) || used < len(raw)*2/3-2 {
			t.Errorf("got %d bytes of %s, want about %d and not more", used, raw, len(raw))
		}
		if len(raw) > 2 && roomAfter(value, len(raw)/3) >= 0 {
			t.Errorf("%s has room in %d bytes", raw, len(raw)/3)
		}
	}
}

// TestOnlyEqualTemplatesShareADigest checks that templates have the same digest only if they are the same.
func TestOnlyEqualTemplatesShareADigest(t *testing.T) {
	digests := map[string]string{}
	for _, template := range []string{`{}`, `{"a":1}`, `{"a":"1"}`, `{"a":12}`, `{"a":[1,2]}`, `{"a":[[1],2]}`, `{"a":[12]}`, `{"a":["1","2"]}`, `{"a":["12"]}`,
		`{"a":null}`, `{"a":true}`, `{"a":{"b":"c"}}`, `{"a":{},"b":"c"}`, `{"ab":"c"}`, `{"a":"bc"}`, `{"a":1.5}`, `{"a":"1.5"}`, `{"a":[]}`, `{"a":{}}`} {
		digest := func() string {
			tree, err := manifest.ParseObject([]byte(`{"spec":{"template":`+template+`}}`), "object")
			if err != nil {
				t.Fatal(err)
			}
			return templateDigest(tree)
		}
		got := digest()
		if other := digests[got]; other != "" || got == "" || got != digest() {
			t.Errorf("%s: got %q, as of %q, and then %q", template, got, other, digest())
		}
		digests[got] = template
	}
	if got := templateDigest(object{"spec": object{}}); got != "" {
		t.Errorf("without a template: got %q", got)
	}
}
