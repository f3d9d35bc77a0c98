package operate

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// testRun returns a run without a cluster.
func testRun() *run { return newRun(&Operator{}, vedette.Operation{}, request.Control{}) }

// FuzzParseManifest checks that no manifest causes a panic, that accepted ones can be requested by their
// names, and that a Secret's values are not in errors.
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
				t.Errorf("%q: got error %v, want one of kind Invalid", raw, err)
			}
			return
		}
		if m.APIVersion == "" || m.Kind == "" || m.Name == "" && m.GenerateName == "" || strings.Contains(m.Name, "/") {
			t.Errorf("%q: got %+v", raw, m)
		}
		merge := apply.ThreeWayMerge{Desired: apply.Annotate(m), Live: m.Encode(), LastApplied: "{}"}
		if _, _, err := merge.Patch(); err != nil {
			t.Errorf("merge of %q: %v", raw, err)
		}
		_ = apply.Mode{}.OptionsFor(vedette.Resource{}, m, vedette.StrategyDefault)
		m.Object["kind"], m.Object["data"] = "Secret", object{"a": string(raw)}
		masked := testRun().MaskManifestValues(m, errors.New("bad: "+string(m.Encode()))).Error()
		if len(raw) > 12 && strings.Contains(masked, strings.ToValidUTF8(string(raw), "\uFFFD")) {
			t.Errorf("%q contains %q", masked, raw)
		}
	})
}

// FuzzLabelSelector checks that no selector that matches every object is accepted.
func FuzzLabelSelector(f *testing.F) {
	for _, seed := range []string{"", " ", "\t\n", "a", "a=b,c in (d)", "!a", ",", "\x00", "a=b\x00,c=d", "\u00a0", "a=,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if parsed, err := labels.Parse(text); err == nil && hasLabelRequirements(text) && (parsed.Empty() || strings.Contains(text, "\x00")) {
			t.Errorf("%q matches all objects", text)
		}
	})
}
