package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func strictRedactor(t testing.TB, projections ...vedette.Projection) *Redactor {
	t.Helper()
	r, err := New(Config{Preset: PresetStrict}, projections, vedette.HeaderAnnotations)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestStrictPresetKeepsOnlyKnownFields checks what is kept of objects.
func TestStrictPresetKeepsOnlyKnownFields(t *testing.T) {
	r := strictRedactor(t)
	const meta = `"name":"n","resourceVersion":"1"`
	for _, tt := range []struct {
		what, kind, raw, want string
	}{
		{"data of a ConfigMap", "ConfigMap", `{"data":{"a":"CANARY"},"metadata":{` + meta + `},"binaryData":{"b":"CANARY"},"immutable":true}`,
			`{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}},"immutable":true}`},
		{"annotations", "Service", `{"metadata":{"annotations":{"a":"CANARY","moniker.spinnaker.io/cluster":"c","b":"CANARY","deployment.kubernetes.io/revision":"3"},` + meta + `}}`,
			`{"metadata":{"annotations":{"vedette.io/redacted":"strict","moniker.spinnaker.io/cluster":"c","deployment.kubernetes.io/revision":"3"},` + meta + `}}`},
		{"unknown annotations only", "Service", `{"metadata":{` + meta + `,"annotations":{"a":"CANARY", "b" : "CANARY"}}}`,
			`{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}}}`},
		{"no annotations in annotations", "Service", `{"metadata":{` + meta + `,"annotations":{}}}`, `{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}}}`},
		{"annotations that are null", "Service", `{"metadata":{` + meta + `,"annotations":null}}`, `{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}}}`},
		{"a marker of others", "Service", `{"metadata":{"annotations":{"vedette.io/redacted":"CANARY"},` + meta + `}}`,
			`{"metadata":{"annotations":{"vedette.io/redacted":"strict"},` + meta + `}}`},
		{"an unknown kind", "Gadget.example.org", `{"metadata":{` + meta + `,"managedFields":["CANARY"],"x":"CANARY"},"spec":{"a":"CANARY"},"status":{"b":["CANARY"]}}`,
			`{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}}}`},
		{"containers", "Deployment.apps", `{"metadata":{` + meta + `},"spec":{"replicas":2,"template":{"metadata":{"labels":{"l":"v"},"annotations":{"a":"CANARY","kubectl.kubernetes.io/restartedAt":"t"}},
			"spec":{"containers":[{"name":"c","image":"i","command":["CANARY"],"args":["CANARY"],"env":[{"name":"E","value":"CANARY"}],"envFrom":[{"prefix":"CANARY"}],
			"livenessProbe":{"exec":{"command":["CANARY"]}},"lifecycle":{"postStart":{"exec":{"command":["CANARY"]}}}},"CANARY"],"volumes":[{"csi":{"volumeAttributes":{"k":"CANARY"}}}]}}}}`,
			`{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}},"spec":{"replicas":2,"template":{"metadata":{"labels":{"l":"v"},"annotations":{"kubectl.kubernetes.io/restartedAt":"t"}},
			"spec":{"containers":[{"name":"c","image":"i"},null]}}}}`},
		{"another type than Kubernetes has", "Deployment.apps", `{"metadata":{` + meta + `},"spec":{"replicas":{"a":"CANARY"},"paused":["CANARY"],"template":"CANARY","selector":"s"}}`,
			`{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}},"spec":{"selector":"s"}}`},
		{"messages of containers", "Pod", `{"metadata":{` + meta + `},"status":{"message":"CANARY","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":1,"message":"CANARY"}},
			"lastState":{"waiting":{"reason":"R","message":"CANARY"}}}],"conditions":[{"type":"Ready","status":"False","message":"m"}]}}`,
			`{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}},"status":{"containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":1}},
			"lastState":{"waiting":{"reason":"R"}}}],"conditions":[{"type":"Ready","status":"False","message":"m"}]}}`},
		{"Events", "Event", `{"metadata":{` + meta + `},"reason":"Failed","message":"CANARY","note":"CANARY","involvedObject":{"kind":"Pod","name":"p","fieldPath":"CANARY"}}`,
			`{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}},"reason":"Failed","involvedObject":{"kind":"Pod","name":"p"}}`},
		{"the usage of containers", "PodMetrics.metrics.k8s.io", `{"metadata":{` + meta + `},"timestamp":"t","window":"w","containers":[{"name":"c","usage":{"cpu":"1m","memory":"2Mi"},"x":"CANARY"}]}`,
			`{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}},"timestamp":"t","window":"w","containers":[{"name":"c","usage":{"cpu":"1m","memory":"2Mi"}}]}`},
		{"escaped names", "ConfigMap", `{"\u0064ata":{"a":"CANARY"},"metadata":{` + meta + `}}`, `{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}}}`},
		{"a Secret", "Secret", `{"data":{"a":"CANARY"},"type":"Opaque","metadata":{` + meta + `,"annotations":{"meta.helm.sh/release-name":"CANARY"}}}`,
			`{"type":"Opaque","metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}}}`},
		{"a Secret that says so at the end", "Gadget.example.org", `{"metadata":{` + meta + `,"annotations":{"a":"CANARY"}},"data":{"a":"CANARY"},"kind":"Secret"}`,
			`{"metadata":{` + meta + `,"annotations":{"vedette.io/redacted":"strict"}},"kind":"Secret"}`},
	} {
		kind := vedette.ParseKind(tt.kind)
		o, _, err := r.Object(nil, vedette.Resource{Kind: kind, Version: "v1"}, []byte(tt.raw))
		if err != nil {
			t.Errorf("%s: %v", tt.what, err)
			continue
		}
		var got, want map[string]any
		if json.Unmarshal(o.Body, &got) != nil || strings.Contains(string(o.Body), "CANARY") {
			t.Errorf("%s: got %s", tt.what, o.Body)
			continue
		}
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		delete(got, "apiVersion")
		if _, has := want["kind"]; !has {
			delete(got, "kind")
		}
		gotText, _ := json.Marshal(got)
		wantText, _ := json.Marshal(want)
		if string(gotText) != string(wantText) {
			t.Errorf("%s: got %s\nwant %s", tt.what, gotText, wantText)
		}
	}
}

// TestStrictPresetKeepsSummaries checks that lists have what they show.
func TestStrictPresetKeepsSummaries(t *testing.T) {
	fields := []vedette.ProjectionField{{Name: "images", Path: "spec.containers.*.image"}, {Name: "args", Path: "spec.containers.*.args"},
		{Name: "first", Path: "metadata.annotations"}, {Name: "ready", Path: "status.containerStatuses.*.ready"}}
	r := strictRedactor(t, vedette.Projection{Kind: vedette.Kind{Name: "Pod"}, Fields: fields})
	o, _, err := r.Object(nil, vedette.Resource{Kind: vedette.Kind{Name: "Pod"}, Version: "v1"}, []byte(`{"metadata":{"name":"p","resourceVersion":"1","annotations":{"a":"CANARY","moniker.spinnaker.io/x":"y"}},
		"spec":{"containers":[{"args":["CANARY"],"image":"i"},{"image":"j"}]},"status":{"containerStatuses":[{"ready":true,"x":"CANARY"}]}}`))
	const want = `{"images":["i","j"],"args":[null,null],"first":{"vedette.io/redacted":"strict","moniker.spinnaker.io/x":"y"},"ready":[true]}`
	if err != nil || string(o.Summary) != want {
		t.Errorf("got %s, %v, want %s", o.Summary, err, want)
	}
	if len(o.Annotations) != 1 || o.Annotations["moniker.spinnaker.io/x"] != "y" {
		t.Errorf("got the annotations %v in the header", o.Annotations)
	}
}

// FuzzStrictPreset looks for a text that is in no place that the preset keeps.
func FuzzStrictPreset(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"p","resourceVersion":"1","annotations":{"a":"CANARY"}},"spec":{"containers":[{"args":["CANARY"]}]}}`), uint8(0))
	f.Add([]byte(`{"metadata":{"name":"p","resourceVersion":"1"},"data":{"a":"CANARY"},"kind":"Secret"}`), uint8(1))
	kinds := []vedette.Kind{{Name: "Pod"}, {Name: "ConfigMap"}, {Group: "apps", Name: "Deployment"}, {Group: "example.org", Name: "Gadget"}, {Name: "Secret"}}
	f.Fuzz(func(t *testing.T, raw []byte, kind uint8) {
		r := strictRedactor(t)
		o, _, err := r.Object(nil, vedette.Resource{Kind: kinds[int(kind)%len(kinds)], Version: "v1"}, raw)
		if err != nil {
			return
		}
		var tree map[string]any
		if json.Unmarshal(o.Body, &tree) != nil {
			t.Fatalf("got %q of %q", o.Body, raw)
		}
		checkStrict(t, r.allowedFor(kinds[int(kind)%len(kinds)]), tree, string(raw))
	})
}

// checkStrict fails if a decoded object has a value in a place that the preset does not keep.
func checkStrict(t *testing.T, a *allowed, value any, raw string) {
	if a.all {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			if name == MarkerAnnotation && child == PresetStrict {
				continue
			}
			next := a.member([]byte(name), firstByte(child))
			if next == nil {
				t.Fatalf("kept %q = %v of %q", name, child, raw)
			}
			checkStrict(t, next, child, raw)
		}
	case []any:
		for _, child := range v {
			if child != nil {
				checkStrict(t, a.of(), child, raw)
			}
		}
	default:
		if v != nil && !a.scalar {
			t.Fatalf("kept %v of %q", v, raw)
		}
	}
}

func firstByte(value any) byte {
	switch value.(type) {
	case map[string]any:
		return '{'
	case []any:
		return '['
	}
	return '"'
}
