package attributes

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
)

var (
	podKind        = vedette.Kind{Name: "Pod"}
	deploymentKind = vedette.Kind{Group: "apps", Name: "Deployment"}
	setKind        = vedette.Kind{Group: "apps", Name: "ReplicaSet"}
)

func TestAttributesFollowTheKind(t *testing.T) {
	labels := map[string]string{"app": "web"}
	for _, c := range []struct {
		name, annotations, summary string
		kind                       vedette.Kind
		want                       Attributes
	}{
		{name: "a Pod's containers are ready or not", kind: podKind,
			summary: `{"phase":"Running","ready":[true,null],"_statuses":["main","proxy","new"]}`,
			want:    Attributes{Phase: "Running", Containers: []Container{{"main", true}, {"proxy", false}, {"new", false}}}},
		{name: "a workload's images are distinct", kind: setKind,
			summary: `{"replicas":3,"images":["a:1",null,"b:2"],"_initImages":["a:1","c:3"],"_templateLabels":{"app":"web"}}`,
			want:    Attributes{Labels: labels, Replicas: 3, Images: []string{"a:1", "b:2", "c:3"}, TemplateLabels: labels}},
		{name: "the replicas of a DaemonSet are not in its spec", kind: vedette.Kind{Group: "apps", Name: "DaemonSet"},
			summary: `{"replicas":3}`, want: Attributes{Labels: labels}},
		{name: "a StatefulSet refers to a Service", kind: vedette.Kind{Group: "apps", Name: "StatefulSet"},
			summary: `{"_service":"db"}`, want: Attributes{Labels: labels, Services: []string{"db"}}},
		{name: "a Service selects", kind: vedette.Kind{Name: "Service"},
			summary: `{"selector":{"app":"web"}}`, want: Attributes{Labels: labels, Selector: labels}},
		{name: "an Ingress refers to the Services of all rules", kind: vedette.Kind{Group: "networking.k8s.io", Name: "Ingress"},
			summary: `{"_backend":"a","_backends":[["b","a"],null,[null,"c"]],"_oldBackend":"d","_oldBackends":[["e"]]}`,
			want:    Attributes{Labels: labels, Services: []string{"a", "b", "c", "d", "e"}}},
		{name: "values of the wrong type are left out", kind: podKind, summary: `{"phase":7,"ready":[true],"_statuses":["main"]}`,
			want: Attributes{Containers: []Container{{"main", true}}}},
		{name: "a summary that is not JSON is left out", kind: podKind, summary: `{"phase":`, want: Attributes{}},
		{name: "a kind of another group is not Kubernetes' own", kind: vedette.Kind{Group: "example.com", Name: "Deployment"},
			summary: `{"replicas":3}`, want: Attributes{Labels: labels}},
	} {
		o := vedette.Object{Key: vedette.Key{Kind: c.kind, Name: "web"}, Labels: labels, Summary: []byte(c.summary)}
		if got := FromObject(&o); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestAnnotationsSetAttributes(t *testing.T) {
	for _, c := range []struct {
		annotation, value string
		want              Attributes
	}{
		{ignoreAnnotation, "true", Attributes{Ignored: true}},
		{ignoreAnnotation, `"true"`, Attributes{Ignored: true}},
		{ignoreAnnotation, "false", Attributes{}},
		{applicationAnnotation, "shop", Attributes{Managed: true}},
		{applicationAnnotation, "", Attributes{}},
		{applicationAnnotation, `""`, Attributes{}},
		{loadBalancersAnnotation, `["service web"]`, Attributes{LoadBalancers: []string{"service web"}}},
		{loadBalancersAnnotation, `service web`, Attributes{}},
	} {
		o := vedette.Object{Key: vedette.Key{Kind: podKind}, Annotations: map[string]string{c.annotation: c.value}}
		if got := FromObject(&o); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s=%s: got %+v, want %+v", c.annotation, c.value, got, c.want)
		}
	}
}

func TestAppendAndDecode(t *testing.T) {
	sequence := 3
	for name, c := range map[string]struct {
		attributes Attributes
		moniker    vedette.Moniker
	}{
		"nothing": {},
		"everything": {
			Attributes{APIVersion: "example.com/v1", Created: -1, Labels: map[string]string{"app": "web", "": "", "x": "y"},
				Owner: vedette.Owner{Kind: deploymentKind, Name: "web"}, Ignored: true, Managed: true,
				LoadBalancers: []string{"service web"}, Replicas: -2, Images: []string{"", "web:1"},
				TemplateLabels: map[string]string{"app": "web", "x": "z", "new": "1"}, Selector: map[string]string{"a": "b"},
				Services: []string{"db"}, Phase: "Running", Containers: make([]Container, 17)},
			vedette.Moniker{Cluster: "deployment web", Stack: "eu", Detail: "blue", Sequence: &sequence},
		},
		"empty texts of a moniker": {moniker: vedette.Moniker{
			Blank: vedette.AppPart | vedette.ClusterPart | vedette.StackPart | vedette.DetailPart}},
		"an empty stack":            {moniker: vedette.Moniker{Cluster: "web", Detail: "blue", Blank: vedette.StackPart}},
		"a cluster without a kind":  {moniker: vedette.Moniker{Cluster: "web"}},
		"a cluster with two spaces": {moniker: vedette.Moniker{Cluster: "a b c"}},
		"template labels only":      {attributes: Attributes{TemplateLabels: map[string]string{"a": "b"}}},
	} {
		if len(c.attributes.Containers) > 0 {
			c.attributes.Containers[8] = Container{"main", true}
		}
		b := append(Append([]byte{}, "web-v003-abc", &c.attributes, &c.moniker, len("owner")), "uid-owner"...)
		var got Attributes
		var moniker vedette.Moniker
		rest, owner, err := Decode(b, "web-v003-abc", &got, &moniker)
		if err != nil || rest+owner != "uid-owner" || c.attributes.Owner.Name != "" && owner != "owner" {
			t.Fatalf("%s: got %q, %q, %v, want uid- and owner", name, rest, owner, err)
		}
		if !reflect.DeepEqual(got, c.attributes) || !reflect.DeepEqual(moniker, c.moniker) {
			t.Errorf("%s: got %+v, %+v\nwant %+v, %+v", name, got, moniker, c.attributes, c.moniker)
		}
		if IsManaged(b[:PrefixBytes]) != c.attributes.Managed {
			t.Errorf("%s: got managed %v from the prefix, want %v", name, !c.attributes.Managed, c.attributes.Managed)
		}
	}
}

// examplePod is a Pod as a Deployment of Spinnaker creates it.
func examplePod() vedette.Object {
	return vedette.Object{
		Key:    vedette.Key{Kind: podKind, Namespace: "shop", Name: "checkout-frontend-6d4b75cb6d-x8k2p"},
		Labels: map[string]string{"app": "checkout-frontend"}, APIVersion: "v1", Created: 1700000000,
		Owner:       vedette.Owner{Kind: setKind, Name: "checkout-frontend-6d4b75cb6d", UID: "00000000-0000-4000-8000-000000000000"},
		Annotations: map[string]string{applicationAnnotation: "checkout", "moniker.spinnaker.io/cluster": "deployment checkout-frontend"},
		Summary: []byte(`{"conditionTypes":["Initialized","Ready","ContainersReady","PodScheduled"],"conditionStatuses":["True","True","True","True"],` +
			`"phase":"Running","node":"node-17.example.com","ip":"10.1.2.3","containers":["checkout","istio-proxy"],` +
			`"images":["registry.example.com/shop/checkout:1.2.3","istio/proxyv2:1.20"],"_statuses":["checkout","istio-proxy"],"ready":[true,true],` +
			`"restarts":[0,1],"running":["2026-01-01T00:00:00Z","2026-01-01T00:00:00Z"]}`),
	}
}

func encodeExample(o *vedette.Object) []byte {
	a, m := FromObject(o), vedette.MonikerOf(o.Key, o.Annotations)
	return Append(nil, o.Name, &a, &m, 0)
}

func TestSizeOfPod(t *testing.T) {
	o := examplePod()
	if n := len(encodeExample(&o)); n > 40 {
		t.Errorf("got %d bytes for the attributes of a Pod, want at most 40", n)
	}
}

func TestDamagedAttributesAreRecognized(t *testing.T) {
	o := examplePod()
	b := encodeExample(&o)
	var a Attributes
	var m vedette.Moniker
	for n := range len(b) {
		if _, _, err := Decode(b[:n], o.Name, &a, &m); err == nil {
			t.Errorf("the first %d bytes: got no error, want one", n)
		}
	}
	short := Append(nil, o.Name, &Attributes{Owner: o.Owner}, &m, 16)
	if _, _, err := Decode(append(short, make([]byte, 15)...), o.Name, &a, &m); !errors.Is(err, ErrDamaged) {
		t.Errorf("15 bytes of 16 of an owner's uid: got error %v, want %v", err, ErrDamaged)
	}
	for _, unknown := range [][]byte{nil, {}, {0}, {formatVersion + 1, 0}} {
		if _, _, err := Decode(unknown, "", &a, &m); !errors.Is(err, ErrUnknownVersion) {
			t.Errorf("%v: got error %v, want %v", unknown, err, ErrUnknownVersion)
		}
	}
}

func FuzzDecode(f *testing.F) {
	o := examplePod()
	f.Add(encodeExample(&o), o.Name)
	f.Add([]byte{formatVersion, 0xff, 0xff, 0xff, 0x7f}, "web")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		var a, again Attributes
		var m, sameMoniker vedette.Moniker
		_, owner, err := Decode(b, name, &a, &m)
		if err != nil {
			return
		}
		if _, _, err := Decode(append(Append(nil, name, &a, &m, len(owner)), owner...), name, &again, &sameMoniker); err != nil {
			t.Fatalf("%+v, %+v: %v", a, m, err)
		}
		if m.Cluster != sameMoniker.Cluster || !slices.Equal(a.Containers, again.Containers) || len(a.Labels) != len(again.Labels) {
			t.Errorf("got %+v, %+v\nwant %+v, %+v", again, sameMoniker, a, m)
		}
	})
}

func FuzzOf(f *testing.F) {
	o := examplePod()
	f.Add(o.Summary, "Pod", `["a"]`)
	f.Add([]byte(`{"_backends":[["a"]]}`), "Ingress", `{}`)
	f.Add([]byte(`{"images":["a"]}`), "Job", ``)
	f.Fuzz(func(t *testing.T, summary []byte, kind, annotation string) {
		o := vedette.Object{Key: vedette.Key{Kind: vedette.Kind{Name: kind}, Name: "web"}, Summary: summary,
			Annotations: map[string]string{loadBalancersAnnotation: annotation, ignoreAnnotation: annotation}}
		a, m := FromObject(&o), vedette.MonikerOf(o.Key, o.Annotations)
		var got Attributes
		var moniker vedette.Moniker
		if _, _, err := Decode(Append(nil, o.Name, &a, &m, 0), o.Name, &got, &moniker); err != nil {
			t.Fatal(err)
		}
		if strings.Join(got.Images, ",") != strings.Join(a.Images, ",") || got.Phase != a.Phase {
			t.Errorf("got %+v, want %+v", got, a)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	o := examplePod()
	b.ReportAllocs()
	for b.Loop() {
		encodeExample(&o)
	}
}

func BenchmarkDecode(b *testing.B) {
	o := examplePod()
	encoded := encodeExample(&o)
	b.ReportAllocs()
	for b.Loop() {
		var a Attributes
		var m vedette.Moniker
		if _, _, err := Decode(encoded, o.Name, &a, &m); err != nil {
			b.Fatal(err)
		}
	}
}

func TestMembersEndAtBrokenJSON(t *testing.T) {
	for input, want := range map[string]string{
		``: ``, `{}`: ``, `null`: ``, `[]`: ``, `{"a":1}`: `a=1;`, ` { "a" : 1 , "b" : [ {"c":"]"} ] } `: `a=1;b=[ {"c":"]"} ];`,
		`{"a":"x\"}","b":{}}`: `a="x\"}";b={};`, `{"a":1`: ``, `{"a":"x`: ``, `{"a":[1}`: `a=[1};`, `{"a"}`: ``, `{"a":}`: ``, `{"a":1,}`: `a=1;`,
		`{a:1}`: ``, `{"a":1]`: `a=1;`, `{"a":-1.5e3,"b":true}`: `a=-1.5e3;b=true;`,
	} {
		got := ""
		for name, value := range members([]byte(input)) {
			got += string(name) + "=" + string(value) + ";"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", input, got, want)
		}
	}
}

// FuzzMembers compares members with encoding/json.
func FuzzMembers(f *testing.F) {
	o := examplePod()
	f.Add(o.Summary)
	f.Add([]byte(` { "a" : "\"" , "b":[{},[1,"]"]],"c":null} `))
	f.Fuzz(func(t *testing.T, b []byte) {
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || bytes.Contains(b, []byte(`\`)) || !utf8.Valid(b) {
			for range members(b) { // ends, and does not panic
			}
			return
		}
		got := map[string]json.RawMessage{}
		for name, value := range members(b) {
			got[string(name)] = value
		}
		if len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestPrivateFieldsAreTrimmed(t *testing.T) {
	for input, want := range map[string]string{
		``: ``, `{"a":1,"b":[2]}`: `{"a":1,"b":[2]}`, `{"_a":{"_b":1},"b":{"_c":"_d"},"_e":2}`: `{"b":{"_c":"_d"}}`, `{"_a":1}`: ``,
		`{ "a": 1, "_b": 2 }`: `{"a":1}`, `{"_a":1`: `{"_a":1`, `["_a"]`: `["_a"]`, `"_a"`: `"_a"`,
	} {
		if got := string(TrimSummary([]byte(input))); got != want {
			t.Errorf("%s: got %s, want %s", input, got, want)
		}
	}
}

func TestTextsAndPairs(t *testing.T) {
	if got := texts([]byte(`["a", null,"\u0062\"",3,["x"],"c"]`)); !slices.Equal(got, []string{"a", "", `b"`, "", "", "c"}) {
		t.Errorf("got %q", got)
	}
	if got := pairs([]byte(`{"a":"b","\u0063":"d\n","e":null}`)); !reflect.DeepEqual(got, map[string]string{"a": "b", "c": "d\n", "e": ""}) {
		t.Errorf("got %q", got)
	}
	if got := texts([]byte("[\"a\xff\"]")); !slices.Equal(got, []string{"a\uFFFD"}) {
		t.Errorf("got %q, want valid UTF-8", got)
	}
}
