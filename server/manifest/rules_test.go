package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func mustParse(t testing.TB, raw string) Manifest {
	t.Helper()
	var m Manifest
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestArtifactsAreFoundInWorkloads(t *testing.T) {
	const spec = `{"containers":[{"image":"r.io/a:1","env":[{"valueFrom":{"configMapKeyRef":{"name":"c1"}}},{"valueFrom":{"secretKeyRef":{"name":"s1"}}},{"valueFrom":{}}],"envFrom":[{"configMapRef":{"name":"c2"}},{"secretRef":{"name":"s2"}}]},{"image":"r.io/a:1"}],
		"initContainers":[{"image":"r.io/b@sha256:00"}],"volumes":[{"configMap":{"name":"c3"}},{"secret":{"secretName":"s3"}},{"projected":{"sources":[{"configMap":{"name":"c4"}},{"secret":{"name":"s4"}}]}},{"emptyDir":{}}]}`
	const all = "docker/image r.io/a=r.io/a:1, docker/image r.io/b=r.io/b@sha256:00, kubernetes/configMap c3=c3, kubernetes/secret s3=s3, kubernetes/configMap c4=c4, kubernetes/secret s4=s4, kubernetes/configMap c2=c2, kubernetes/secret s2=s2, kubernetes/configMap c1=c1, kubernetes/secret s1=s1"
	for _, tt := range []struct{ name, kind, manifest, want string }{
		{"a template has all types", "Deployment.apps", `{"spec":{"template":{"spec":` + spec + `}}}`, all},
		{"a CronJob's template has all types", "CronJob.batch", `{"spec":{"jobTemplate":{"spec":{"template":{"spec":` + spec + `}}}}}`, all},
		{"a Pod has images with tags", "Pod", `{"spec":` + spec + `}`, "docker/image r.io/a:1=r.io/a:1"},
		{"an autoscaler's target", "HorizontalPodAutoscaler.autoscaling", `{"spec":{"scaleTargetRef":{"kind":"ReplicaSet","name":"web-v003"}}}`, "kubernetes/replicaSet web-v003=web-v003"},
		{"an autoscaler of an unknown kind", "HorizontalPodAutoscaler.autoscaling", `{"spec":{"scaleTargetRef":{"kind":"StatefulSet","name":"web"}}}`, ""},
		{"a port is mistaken for a tag", "Job.batch", `{"spec":{"template":{"spec":{"containers":[{"image":"localhost:5000/x"}]}}}}`, "docker/image localhost=localhost:5000/x"},
		{"custom kinds have none", "Deployment.example.com", `{"spec":{"template":{"spec":` + spec + `}}}`, ""},
		{"other kinds have none", "ConfigMap", `{"data":{"a":"b"}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := FindArtifacts(vedette.ParseKind(tt.kind), mustParse(t, tt.manifest))
			var got []string
			for _, a := range found {
				got = append(got, a.Type+" "+a.Name+"="+a.Reference)
			}
			if text := strings.Join(got, ", "); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}

func TestKindsHaveSpinnakersNames(t *testing.T) {
	for kind, want := range map[string]string{
		"ReplicaSet.apps": "replicaSet", "replicaset.apps": "replicaSet", "rs": "replicaSet", "Ingress.extensions": "ingress",
		"HorizontalPodAutoscaler.autoscaling": "horizontalpodautoscaler", "Lease.coordination.k8s.io": "Lease.coordination.k8s.io",
		"Event.events.k8s.io": "Event.events.k8s.io", "Event": "event", "FlowSchema.flowcontrol.apiserver.k8s.io": "FlowSchema.flowcontrol.apiserver.k8s.io",
		"CSIDriver.storage.k8s.io": "csiDriver", "CSINode.storage.k8s.io": "csiNode", "VolumeAttachment.storage.k8s.io": "VolumeAttachment",
		"PriorityClass.scheduling.k8s.io": "PriorityClass", "RuntimeClass.node.k8s.io": "RuntimeClass.node.k8s.io",
		"Deployment.example.com": "Deployment.example.com", "CronTab.stable.example.com": "CronTab.stable.example.com", "": "",
	} {
		if got := KindName(vedette.ParseKind(kind)); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

func TestSpinnakerKindsAreComplete(t *testing.T) {
	kinds := SpinnakerKinds()
	if len(kinds) != 32 || kinds["pod"] != "instances" || kinds["deployment"] != "serverGroupManagers" || kinds["event"] != Unclassified || kinds["rs"] != "" {
		t.Errorf("got %d kinds: %v", len(kinds), kinds)
	}
}

func TestDecodeManifest(t *testing.T) {
	for raw, want := range map[string]string{
		`{"kind":"A"}`: `{"kind":"A"}`,
		`null`:         `null`,
		`{"n":[9007199254740993,1e3,0.10],"t":"<&>"}`: `{"n":[9007199254740993,1e3,0.10],"t":"<&>"}`,
		``:            "the manifest is not valid JSON: incomplete, or followed by other data",
		`{"a":1} {}`:  "the manifest is not valid JSON: incomplete, or followed by other data",
		`{"a":"s3cr`:  "the manifest is not valid JSON: incomplete, or followed by other data",
		`{"a":s3cret`: "the manifest is not valid JSON: syntax error at byte 6",
		`"s3cret"`:    "the manifest is of type string instead of a JSON object",
		`["s3cret"]`:  "the manifest is of type array instead of a JSON object",
	} {
		var m Manifest
		if err := m.UnmarshalJSON([]byte(raw)); err != nil {
			if err.Error() != want || vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%s: got %v, want %s", raw, err, want)
			}
			continue
		}
		if got := string(m.JSON()); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func TestNullIsNoManifest(t *testing.T) {
	if got := nonNilManifests([]Manifest{nil, {"kind": "A"}, nil}); len(got) != 1 || got[0]["kind"] != "A" {
		t.Errorf("got %v, want the object only", got)
	}
}

func TestUnknownPrioritiesAreTheDefault(t *testing.T) {
	for value, want := range map[string]int{"": 100, "5": 5, "ROLE_PRIORITY": 20, "lowest_priority": 1000, "soon": 100} {
		if got := parsePriority(value); got != want {
			t.Errorf("%q: got %d, want %d", value, got, want)
		}
	}
}

func TestSelectorsMatchAsInSpinnaker(t *testing.T) {
	prod := map[string]string{"env": "prod"}
	for _, tt := range []struct {
		name, selectors, want string
		matches               bool
	}{
		{"no selector matches everything", ``, "", true},
		{"ANY matches everything", `{"kind":"ANY"}`, "", true},
		{"ANY leaves no comma", `{"kind":"ANY"},{"kind":"EXISTS","key":"env"},{"kind":"ANY"}`, "env", true},
		{"equal", `{"kind":"EQUALS","key":"env","values":["prod","unused"]}`, "env = prod", true},
		{"not equal", `{"kind":"EQUALS","key":"env","values":["test"]}`, "env = test", false},
		{"other than", `{"kind":"NOT_EQUALS","key":"env","values":["prod"]}`, "env != prod", false},
		{"a missing label is not equal", `{"kind":"NOT_EQUALS","key":"team","values":["a"]}`, "team != a", true},
		{"one of", `{"kind":"CONTAINS","key":"env","values":["prod","test"]}`, "env in (prod, test)", true},
		{"none of", `{"kind":"NOT_CONTAINS","key":"env","values":["prod","test"]}`, "env notin (prod, test)", false},
		{"several values in one text", `{"kind":"CONTAINS","key":"env","values":["test,prod"]}`, "env in (test,prod)", true},
		{"there", `{"kind":"EXISTS","key":"env","values":null}`, "env", true},
		{"not there", `{"kind":"NOT_EXISTS","key":"env"}`, "!env", false},
		{"all selectors must match", `{"kind":"EXISTS","key":"env"},{"kind":"EXISTS","key":"team"}`, "env,team", false},
		{"keys can have the letters of the format", `{"kind":"NOT_EQUALS","key":"kvl/VKL","values":["LVK"]}`, "kvl/VKL != LVK", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Selectors
			if err := json.Unmarshal([]byte(`{"selectors":[`+tt.selectors+`]}`), &s); err != nil {
				t.Fatal(err)
			}
			matches, err := s.Matches(prod)
			if s.String() != tt.want || matches != tt.matches || err != nil {
				t.Errorf("%q with %v: got %v, %v", s, prod, matches, err)
			}
		})
	}
	for raw, want := range map[string]string{
		`{"selectors":[{"kind":"LIKE","key":"a"}]}`:                          `a label selector has the kind "LIKE", which is not one of ANY, EQUALS, NOT_EQUALS, CONTAINS, NOT_CONTAINS, EXISTS and NOT_EXISTS`,
		`{"selectors":[{"kind":"EXISTS"}]}`:                                  "Only an 'any' selector can have no key specified",
		`{"selectors":[{"kind":"NOT_CONTAINS","key":"a"}]}`:                  "At least one value must be supplied to a 'notcontains' selector",
		`{"selectors":[{"kind":"EQUALS","key":"a","values":["b=c"]}]}`:       `the label selector "a = b=c" is invalid: found '=', expected: ',' or 'end of string'`,
		`{"selectors":[{"kind":"EQUALS","key":"a","values":["b,c"]}]}`:       `the label selector "a = b,c" has a comma or bracket, which labels cannot have`,
		`{"selectors":[{"kind":"CONTAINS","key":"a","values":["b) , (c"]}]}`: `the label selector "a in (b) , (c)" has a comma or bracket, which labels cannot have`,
		`{"selectors":[{"kind":1}]}`:                                         "the label selectors are not in the expected form: selectors.kind is of type number",
	} {
		var s Selectors
		if err := json.Unmarshal([]byte(raw), &s); err == nil || err.Error() != want || vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%s: got %v, want %s", raw, err, want)
		}
	}
}
