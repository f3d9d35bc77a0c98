package operate

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// testRun returns a run without a cluster.
func testRun() *run { return newRun(&Operator{}, vedette.Operation{}) }

// FuzzParseManifest holds that no manifest makes anything panic, that what is taken
// has what a path needs, and that a Secret's values never stand in an error.
func FuzzParseManifest(f *testing.F) {
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
		m, err := manifest.Parse(raw)
		if err != nil {
			if vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%q: %v is no fault of the caller", raw, err)
			}
			return
		}
		if m.APIVersion == "" || m.Kind == "" || m.Name == "" && m.GenerateName == "" || strings.Contains(m.Name, "/") {
			t.Errorf("%q was taken as %+v", raw, m)
		}
		merge := apply.ThreeWayMerge{Desired: apply.Annotate(m), Live: m.Encode(), LastApplied: "{}"}
		if _, _, err := merge.Patch(); err != nil {
			t.Errorf("%q can't be merged: %v", raw, err)
		}
		_ = apply.Mode{}.OptionsFor(vedette.Resource{}, m, vedette.StrategyDefault)
		m.Object["kind"], m.Object["data"] = "Secret", object{"a": string(raw)}
		masked := testRun().maskManifestValues(m, errors.New("bad: "+string(m.Encode()))).Error()
		if len(raw) > 12 && strings.Contains(masked, strings.ToValidUTF8(string(raw), "\uFFFD")) {
			t.Errorf("%q still tells %q", masked, raw)
		}
	})
}

// FuzzSameContent holds that a manifest is compared with a written one as both
// would be canonically, whatever stands there, and that of the written one
// nothing is left where it was read from.
func FuzzSameContent(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"eA==","b":null}}`, `{"kind":"Secret","apiVersion":"v1","data":{"b":null,"a":"e\u0041=="}}`},
		{`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"s"},"n":[1,2.5,1e3,true,{}]}`, `{"apiVersion":"v1","kind":"Thing","n":[1.0,25e-1,1000,true,{}],"metadata":7}`},
		{`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"s"},"n":9007199254740993}`, `{"apiVersion":"v1","kind":"Thing","n":9007199254740992}`},
		{`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"s"},"n":[]}`, `{"apiVersion":"v1","kind":"Thing","n":null}`},
		{`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"s"}}`, `[]`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, raw, written []byte) {
		m, err := manifest.Parse(raw)
		if err != nil || bytes.Contains(raw, []byte("-0")) || bytes.Contains(written, []byte("-0")) { // 0, in the eyes of one of the two
			return
		}
		want := false
		var other any
		if kjson.Unmarshal(written, &other) == nil {
			o, is := other.(object)
			want = is && bytes.Equal(canonicalContent(m), canonicalContent(manifest.Manifest{Object: o}))
		}
		if got := sameContent(m.Object, written); got != want {
			t.Errorf("%s and %s are the same: %v", raw, written, got)
		}
		if !sameContent(m.Object, m.Encode()) {
			t.Errorf("%s is not the same as itself", raw)
		}
	})
}

// FuzzParseCandidate holds that no metadata makes anything panic, that it is cleared
// where it was read, and that a digest is read as it is written.
func FuzzParseCandidate(f *testing.F) {
	const annotations = `"artifact.spinnaker.io/type":"kubernetes/secret","artifact.spinnaker.io/name":"s","artifact.spinnaker.io/location":"n"`
	f.Add([]byte(`{"metadata":{"name":"s-v003","annotations":{` + annotations + `,"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":1}"}}}`))
	f.Add([]byte(`{"metadata":{"name":"s","creationTimestamp":"2025-10-01T10:00:00Z","annotations":{` + annotations + `,"artifact.spinnaker.io/version":"v0",
		"vedette.io/content":"1.AAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}}`))
	f.Add([]byte(`{"metadata":{"name":"s-v99999999999999","annotations":{"artifact.spinnaker.io/version":"v-1","x":7}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := series{secretKind, "n", "s"}
		x, is, err := s.parseCandidate(raw)
		if len(bytes.Trim(raw, "\x00")) > 0 {
			t.Errorf("this is left: %q", raw)
		}
		if (err != nil || !is) && (x.lastApplied != nil || x.digest != nil) || x.number < -1 {
			t.Errorf("got %+v, %v, %v", x, is, err)
		}
		if d, ok := parseDigest(x.digest); ok {
			again, ok := parseDigest([]byte(d.encode()))
			if !ok || again.rounds != d.rounds || !again.matches(d.tag) || d.rounds > maxRounds {
				t.Errorf("%s is read as %+v", d.encode(), again)
			}
		}
	})
}

// FuzzLabelSelector holds that no selector of labels passes that fits every object.
func FuzzLabelSelector(f *testing.F) {
	for _, seed := range []string{"", " ", "\t\n", "a", "a=b,c in (d)", "!a", ",", "\x00", "a=b\x00,c=d", "\u00a0", "a=,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if parsed, err := labels.Parse(text); err == nil && hasLabelRequirements(text) && (parsed.Empty() || strings.Contains(text, "\x00")) {
			t.Errorf("%q fits more objects than it says", text)
		}
	})
}

// FuzzWarnings holds that no header makes anything panic, and that what is told of it
// is bounded, can be sent, stands on one line, and keeps what is secret.
func FuzzWarnings(f *testing.F) {
	for _, seed := range []string{`299 - "text"`, `299 - "a \" b \\" "Thu, 01 Jan 1970 00:00:00 GMT", 299 proxy "c"`, `110 - "stale"`, `299 - ""`, `299 - "open`,
		`299  "two spaces"`, `299 - "=?utf-8?q?caf=C3=A9?="`, "299 - \"\xff\"", "299 - \"a\nb\"", `299 - "a" 299 - "b"`, ",", `299 - "a",,299 - "b"`} {
		f.Add(seed, 1, "tex")
	}
	f.Add(`299 - "`+strings.Repeat("x", 5<<10)+`"`, 4, "xxxx")
	f.Add(`299 - "`+strings.Repeat("x", 250)+`éè"`, 90, "\xa9\xc3\xa8\n")
	f.Add(`299 - "aéèü"`, 1, "\xa9\xc3\xa8\xc3")
	f.Fuzz(func(t *testing.T, header string, times int, value string) {
		r := testRun()
		for i := range max(0, min(times, 150)) {
			r.warnings.addHeader(http.Header{"Warning": {header, strconv.Itoa(i%90) + header, `299 - "` + strconv.Itoa(i) + header + `"`}})
		}
		if len(value) < 3 || !utf8.ValidString(value) || strings.Contains(truncationNotice, value) || strings.Contains(value, "*") || strings.Contains(value, "\uFFFD") {
			value = "so that nothing is"
		}
		if err := r.maskPatchValues(resourcePath{Resource: vedette.Resource{Kind: secretKind}}, manifest.Manifest{Object: object{"data": value}}.Encode(), nil); err != nil {
			t.Error(err)
		}
		warnings, size := r.warnings.list(), 0
		for i, text := range warnings {
			size += len(text)
			if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, value) || slices.Contains(warnings[:i], text) {
				t.Errorf("it is told %q", text)
			}
		}
		if len(warnings) > maxWarnings+1 || size > maxWarningBytes+len(truncationNotice) {
			t.Errorf("%d texts of %d bytes are told", len(warnings), size)
		}
	})
}

// TestWarningLimits holds that it is said where not all are told.
func TestWarningLimits(t *testing.T) {
	collect := func(texts ...string) []string {
		r := testRun()
		for _, text := range texts {
			r.warnings.addHeader(http.Header{"Warning": {`299 - "` + text + `"`}})
		}
		r.warnings.rewrite(func(texts []string) []string {
			for i, text := range texts {
				texts[i] = strings.ReplaceAll(text, "x", "y")
			}
			return texts
		})
		return r.warnings.list()
	}
	var many []string
	for i := range maxWarnings {
		many = append(many, strconv.Itoa(i))
	}
	if warnings := collect(append(many, many...)...); !slices.Equal(warnings, many) {
		t.Errorf("of as many as there may be it tells %q", warnings)
	}
	if warnings := collect(append(many, "one more", "2", "and another")...); !slices.Equal(warnings, append(many, truncationNotice)) {
		t.Errorf("of one more it tells %q", warnings)
	}
	half := strings.Repeat("a", maxWarningBytes/2)
	for _, tt := range []struct{ texts, want []string }{
		{[]string{half, half[1:] + "b"}, []string{half, half[1:] + "b"}},
		{[]string{half, half + "b", "c"}, []string{half, truncationNotice}},
		{[]string{half + half + "b"}, []string{truncationNotice}},
		{[]string{"x", "y"}, []string{"y"}},
	} {
		if warnings := collect(tt.texts...); !slices.Equal(warnings, tt.want) {
			t.Errorf("of %.20q it tells %.20q", tt.texts, warnings)
		}
	}
}

// TestMaskOfUnreadablePatch tells nothing of what it can't look for.
func TestMaskOfUnreadablePatch(t *testing.T) {
	r := testRun()
	r.warnings.addHeader(http.Header{"Warning": {`299 - "it is hunter2"`, `299 - "it was hunter1"`}})
	patch := []byte(`[{"op":"add","path":"/data/p","value":"hunter2"},{"op":"add","path":"/n","value":1e}]`)
	if err := r.maskPatchValues(resourcePath{Resource: vedette.Resource{Kind: secretKind}}, patch, nil); err != nil {
		t.Error(err)
	}
	err := r.maskPatchValues(resourcePath{Resource: vedette.Resource{Kind: secretKind}}, patch, &statusError{Status: 422, Message: "hunter2 is too short"})
	if warnings := r.warnings.list(); err == nil || strings.Contains(err.Error(), "hunter") || len(warnings) != 1 || strings.Contains(warnings[0], "hunter") {
		t.Errorf("it tells %v, %q", err, warnings)
	}
}

// TestDigests derives the same of the same content, and nothing else.
func TestDigests(t *testing.T) {
	of := func(rounds int, salt, raw string) digest {
		m, err := manifest.Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		d := digest{rounds: rounds, salt: []byte(salt)}
		d.tag = d.sum(m)
		return d
	}
	const salt, other = "0123456789abcdef", "0123456789abcdeF"
	one := of(3, salt, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"eA==","y":"eQ=="}}`)
	for _, tt := range []struct {
		why  string
		d    digest
		want bool
	}{
		{"another name and order", of(3, salt, `{"data":{"y":"eQ==","x":"eA=="},"metadata":{"name":"b","labels":{}},"kind":"Secret","apiVersion":"v1"}`), true},
		{"another value", of(3, salt, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"eA==","y":"eA=="}}`), false},
		{"another salt", of(3, other, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"eA==","y":"eQ=="}}`), false},
		{"other rounds", of(4, salt, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"eA==","y":"eQ=="}}`), false},
	} {
		if one.matches(tt.d.tag) != tt.want {
			t.Errorf("%s: equal is %v", tt.why, !tt.want)
		}
	}
	tag := strings.Repeat("A", 43)
	for _, bad := range []string{"", "1", "1..", "0.AAAAAAAAAAAAAAAAAAAAAA." + tag, "1000001.AAAAAAAAAAAAAAAAAAAAAA." + tag, "x.AAAAAAAAAAAAAAAAAAAAAA." + tag,
		"1.AAAA." + tag, "1.AAAAAAAAAAAAAAAAAAAAAA.AAAA", "1.AAAAAAAAAAAAAAAAAAAAAA." + tag + ".", "1.!AAAAAAAAAAAAAAAAAAAAA." + tag} {
		if _, ok := parseDigest([]byte(bad)); ok {
			t.Errorf("%q is taken for a digest", bad)
		}
	}
}

// TestSaltCacheIsBounded keeps what is asked for, and forgets rather than grows.
func TestSaltCacheIsBounded(t *testing.T) {
	var s saltCache
	content := sensitiveBytes("1.AAAAAAAAAAAAAAAAAAAAAA." + strings.Repeat("A", 43))
	for i := range 3 * maxSalts {
		name := series{name: strconv.Itoa(i)}
		s.put(name, content)
		if s.get(name) == nil || len(s.bySeries) > maxSalts {
			t.Fatalf("after %d it has %d", i, len(s.bySeries))
		}
	}
	s.put(series{name: "bad"}, sensitiveBytes("x"))
	if s.get(series{name: "bad"}) != nil {
		t.Error("what is no digest has a salt")
	}
}

// BenchmarkDigest is what one comparison with a Secret costs.
func BenchmarkDigest(b *testing.B) {
	m, err := manifest.Parse([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"eA=="}}`))
	if err != nil {
		b.Fatal(err)
	}
	d := digest{rounds: secretRounds, salt: make([]byte, saltBytes)}
	for b.Loop() {
		d.sum(m)
	}
}
