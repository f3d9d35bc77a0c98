package redact

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
)

func projectionFields(paths ...string) []vedette.ProjectionField {
	var out []vedette.ProjectionField
	for i, p := range paths {
		out = append(out, vedette.ProjectionField{Name: fmt.Sprint("f", i), Path: p})
	}
	return out
}

const validMetadata = `"metadata":{"name":"n","resourceVersion":"1"}`

func TestInvalidObjectsAreRejected(t *testing.T) {
	deep := func(n int) string {
		return `{` + validMetadata + `,"spec":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for _, c := range []struct{ raw, want string }{
		{"", "byte 0: expected an object"},
		{"[]", "byte 0: expected an object"},
		{`{}`, "the object lacks metadata.name and metadata.resourceVersion"},
		{`{"metadata":{"name":"n"}}`, "the object lacks metadata.resourceVersion"},
		{`{"metadata":{"name":"n","resourceVersion":1}}`, "the object lacks metadata.resourceVersion"},
		{`{` + validMetadata + `,"metadata":null}`, "the object lacks metadata.name and metadata.resourceVersion"},
		{`{` + validMetadata + `} x`, "byte 48: expected nothing behind the object"},
		{`{` + validMetadata, "byte 46: expected a comma or }"},
		{`{` + validMetadata + `,}`, "byte 47: expected a member's name"},
		{`{` + validMetadata + `,"a":tru}`, "byte 51: expected true"},
		{`{` + validMetadata + `,"a":[1,2}`, "byte 55: expected a comma or ]"},
		{`{` + validMetadata + `,"a":01}`, "byte 51: expected a number"},
		{`{` + validMetadata + `,"a":1.}`, "byte 53: expected a fraction"},
		{`{` + validMetadata + `,"a":1e}`, "byte 53: expected an exponent"},
		{`{` + validMetadata + `,"a":"\x"}`, "byte 52: expected an escape sequence"},
		{`{` + validMetadata + `,"a":"b`, "byte 53: expected the rest of a string"},
		{`{` + validMetadata + `,"a" 1}`, "byte 51: expected a colon"},
		{deep(512), "byte 565: expected no more than 512 nested containers"},
		{`{"kind":"List",` + validMetadata + `}`, "the body is a list, not one object"},
		{`{"kind":"SecretList","items":[],` + validMetadata + `}`, "the body is a list, not one object"},
		{`{"items":[],"kind":"PodList",` + validMetadata + `}`, "the body is a list, not one object"},
	} {
		_, dst, err := mustNew(t, Config{}, nil).Object([]byte("x"), pods, []byte(c.raw))
		if err == nil || err.Error() != c.want || string(dst) != "x" {
			t.Errorf("%.80s: got error %v and buffer %q, want error %s", c.raw, err, dst, c.want)
		}
	}
	if _, _, err := mustNew(t, Config{}, nil).Object(nil, pods, []byte(deep(511))); err != nil {
		t.Errorf("511 nested arrays: got error %v, want none", err)
	}
}

// TestReadersGetObjectsWithoutVersion checks that only readers get an object without a resourceVersion.
func TestReadersGetObjectsWithoutVersion(t *testing.T) {
	r := mustNew(t, Config{}, nil)
	o, _, err := r.ReadObject(nil, pods, []byte(`{"metadata":{"name":"n"}}`))
	if err != nil || o.Name != "n" || o.ResourceVersion != "" {
		t.Errorf("a reader: got %+v, %v", o, err)
	}
	if _, _, err := r.ReadObject(nil, pods, []byte(`{"metadata":{}}`)); err == nil {
		t.Error("a reader got an object without a name")
	}
	if _, _, err := r.Object(nil, pods, []byte(`{"metadata":{"name":"n"}}`)); err == nil {
		t.Error("a feed got an object without a version")
	}
}

func TestKindIsReadFromTheObjectWithoutResource(t *testing.T) {
	r := mustNew(t, Config{}, nil)
	o, _, err := r.Object(nil, vedette.Resource{}, []byte(`{`+validMetadata+`,"kind":"Job","apiVersion":"batch/v1"}`))
	if err != nil || o.Kind != (vedette.Kind{Group: "batch", Name: "Job"}) || o.APIVersion != "batch/v1" {
		t.Errorf("got unexpected object %+v, %v", o, err)
	}
	_, _, err = r.Object(nil, vedette.Resource{}, []byte(`{`+validMetadata+`}`))
	if err == nil || err.Error() != "the object lacks kind and apiVersion" {
		t.Error(err)
	}
}

func TestKindThatEndsInListIsNotAList(t *testing.T) {
	resource := vedette.Resource{Kind: vedette.Kind{Group: "net.example.com", Name: "AllowList"}, Version: "v1"}
	raw := `{"kind":"AllowList","apiVersion":"net.example.com/v1","items":["10.0.0.0/8"],` + validMetadata + `}`
	if o, _, err := mustNew(t, Config{}, nil).Object(nil, resource, []byte(raw)); err != nil || string(o.Body) != raw {
		t.Errorf("got unexpected body %s, %v", o.Body, err)
	}
}

func TestBodyIsCopiedByteForByte(t *testing.T) {
	raw := " { \"kind\" : \"Pod\",\"apiVersion\":\"v1\",\n\"metadata\":{\"managedFields\":[1] , \"name\":\"\\u006e\", \"managedFields\":[2],\"managedFields\":[3] ," +
		"\"resourceVersion\" : \"1\",\"managedFields\":[]} , \"spec\":{\"a\":1.50} } \n"
	want := "{ \"kind\" : \"Pod\",\"apiVersion\":\"v1\",\n\"metadata\":{\"name\":\"\\u006e\" ,\"resourceVersion\" : \"1\"} , \"spec\":{\"a\":1.50} }"
	o, _, err := mustNew(t, Config{}, nil).Object(nil, pods, []byte(raw))
	if err != nil || string(o.Body) != want {
		t.Errorf("got error %v and\n%s\nwant\n%s", err, o.Body, want)
	}
}

func TestHeaderIsUTF8(t *testing.T) {
	raw := "{\"metadata\":{\"name\":\"a\xffb\",\"resourceVersion\":\"1\",\"labels\":{\"l\":\"\xc3\"}}}"
	o, _, err := mustNew(t, Config{}, nil).Object(nil, pods, []byte(raw))
	if err != nil || o.Name != "a\ufffdb" || o.Labels["l"] != "\ufffd" || !strings.Contains(string(o.Body), "a\xffb") {
		t.Errorf("got unexpected object %+v, %v", o, err)
	}
}

func TestLargeValuesAreNotProjected(t *testing.T) {
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	raw := `{` + validMetadata + `,"spec":{"a":` + text(maxProjectedValue) + `,"b":` + text(maxProjectedValue+1) + `,"list":[{"a":` + text(3000) + `},{"a":` + text(3000) + `}],"c":1}}`
	o, _, err := mustNew(t, Config{}, projectionFields("spec.a", "spec.b", "spec.list.*.a", "spec.c")).Object(nil, pods, []byte(raw))
	if err != nil || string(o.Summary) != `{"f0":`+text(maxProjectedValue)+`,"f3":1}` {
		t.Errorf("got unexpected summary %.100s, %v", o.Summary, err)
	}
}

func TestProjectionsFollowTheirPaths(t *testing.T) {
	raw := `{` + validMetadata + `,"a":{"b.c":1,"*":2,"#":3,"d":[[1,2],[3],4,null],"e":null,"f":[{"g":[{"h":1},{}]},{"g":[]},{},{"g":7}],"x":{"y":1},"x":{"z":2}}}`
	for path, want := range map[string]string{
		`a.b\.c`: "1", `a.\*`: "2", `a.\#`: "3", `a.d.*`: "[[1,2],[3],4,null]", `a.d.*.*`: "[[1,2],[3],null,null]", `a.d.*.#`: "[2,1,null,null]",
		`a.d.#`: "4", `a.e`: "", `a.e.#`: "", `a.nothing`: "", `a.b\.c.d`: "", `a.f.*.g.*.h`: "[[1,null],[],null,null]", `a.*`: "", `a.#`: "8",
		`a.x.y`: "", `a.x.z`: "2", `metadata.name`: `"n"`,
	} {
		o, _, err := mustNew(t, Config{}, projectionFields(path)).Object(nil, works, []byte(raw))
		if want != "" {
			want = `{"f0":` + want + `}`
		}
		if err != nil || string(o.Summary) != want {
			t.Errorf("%s: got %s, %v, want %s", path, o.Summary, err, want)
		}
	}
}

func TestProjectionOfKindOverridesDefault(t *testing.T) {
	r, err := New(Config{}, []vedette.Projection{{Fields: []vedette.ProjectionField{{Name: "other", Path: "kind"}}}, {Kind: pods.Kind, Fields: []vedette.ProjectionField{{Name: "pod", Path: "kind"}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, resource := range map[string]vedette.Resource{`{"pod":"K"}`: pods, `{"other":"K"}`: works} {
		o, _, err := r.Object(nil, resource, []byte(`{"kind":"K",`+validMetadata+`}`))
		if err != nil || string(o.Summary) != want {
			t.Errorf("got %s, %v, want %s", o.Summary, err, want)
		}
	}
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	for _, c := range []struct {
		config      Config
		projections []vedette.Projection
		want        string
	}{
		{config: Config{Environment: []string{"A", " "}}, want: "redact.environment, entry 2"},
		{config: Config{Annotations: []string{"a[bc]"}}, want: "redact.annotations, entry 1"},
		{config: Config{ConfigMapKeys: []string{`a\*`}}, want: "redact.configMapKeys, entry 1"},
		{config: Config{SecretAnnotations: []string{""}}, want: "redact.secretAnnotations, entry 1"},
		{projections: []vedette.Projection{{Kind: pods.Kind}, {Kind: pods.Kind}}, want: `kind "Pod" has two projections`},
		{projections: []vedette.Projection{{Fields: projectionFields("")}}, want: "a part of the path is empty"},
		{projections: []vedette.Projection{{Fields: projectionFields("a..b")}}, want: "a part of the path is empty"},
		{projections: []vedette.Projection{{Fields: projectionFields("a.#.b")}}, want: "# must be the last part"},
		{projections: []vedette.Projection{{Fields: projectionFields("*.b")}}, want: "the path must begin with a name"},
		{projections: []vedette.Projection{{Fields: []vedette.ProjectionField{{Path: "a"}}}}, want: "is empty or used twice"},
	} {
		_, err := New(c.config, c.projections, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.projections != nil && vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("got error %v, want %s", err, c.want)
		}
	}
}

func TestMetadataIsFoundInDeepObjects(t *testing.T) {
	h, err := ReadMetadata([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12","creationTimestamp":null,"annotations":{"x":"y","k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}`))
	if err != nil || h != (ObjectMeta{ResourceVersion: "12"}) {
		t.Errorf("got unexpected metadata %+v, %v", h, err)
	}
	h, err = ReadMetadata([]byte(`{"metadata":{"name":"a","namespace":"b","uid":"c","resourceVersion":"1\u0032","annotations":{"k8s.io/initial-events-end":"false"}}`))
	if err != nil || h != (ObjectMeta{UID: "c", Namespace: "b", Name: "a", ResourceVersion: "12"}) {
		t.Errorf("got unexpected metadata %+v, %v", h, err)
	}
	deep := strings.Repeat(`{"a":[`, 5000) + strings.Repeat(`]}`, 5000)
	h, err = ReadMetadata([]byte(`{"spec":` + deep + `,"metadata":{"managedFields":[` + deep + `,{"a":"}"},null,-1.5e3],"name":"a","namespace":"b"}}`))
	if err != nil || h != (ObjectMeta{Namespace: "b", Name: "a"}) {
		t.Errorf("deep object: got %+v, %v", h, err)
	}
	for _, raw := range []string{`{"spec":[}`, `{"spec":]`, `{"spec":{"a"`, `{"spec":[[`, `{"spec":`, `{"spec":x}`} {
		if h, err := ReadMetadata([]byte(raw)); err == nil && h != (ObjectMeta{}) {
			t.Errorf("%s: got unexpected metadata %+v", raw, h)
		}
	}
	if _, err := ReadMetadata([]byte(`{"metadata":{"name":`)); err == nil {
		t.Error("truncated object: got no error, want one")
	}
}

// TestRedactorIsSafeForConcurrentUse is meant for the race detector.
func TestRedactorIsSafeForConcurrentUse(t *testing.T) {
	r := mustNew(t, someRules, podProjections[0].Fields)
	raw := typicalPod(t)
	first, _, err := r.Object(nil, pods, raw)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var buf []byte
			for range 200 {
				o, dst, err := r.Object(buf[:0], pods, raw)
				buf = dst
				if err != nil || string(o.Body) != string(first.Body) || string(o.Summary) != string(first.Summary) {
					t.Errorf("got unexpected result %s, %s, %v", o.Body, o.Summary, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestObjectAllocatesOnlyTheHeader counts allocations: one for the text, and two for each
// map. It does not use the pool, which drops values at random under the race detector.
func TestObjectAllocatesOnlyTheHeader(t *testing.T) {
	r := mustNew(t, Config{}, podProjections[0].Fields)
	raw := typicalPod(t)
	buf, p := make([]byte, 0, 2*len(raw)), new(redaction)
	if n := testing.AllocsPerRun(100, func() {
		p.begin(r, pods, buf, raw)
		if err := p.run(); err != nil {
			t.Fatal(err)
		}
		p.buildObject(new(vedette.Object))
		p.release()
	}); n > 5 {
		t.Errorf("got %v allocations, want at most 5", n)
	}
}

func TestWipeLeavesOnlyZeros(t *testing.T) {
	b := []byte(canary)
	if Wipe(b); string(b) != strings.Repeat("\x00", len(canary)) {
		t.Errorf("got unexpected bytes %q", b)
	}
}
