package clouddriver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestStatus(t *testing.T) {
	const stableText, noStatus = "stable available", "No status reported yet"
	tests := []struct{ name, kind, manifest, want string }{
		{"no Deployment status", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1}}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"the change is not observed yet", "Deployment.apps", `{"apiVersion":"apps/v1","metadata":{"generation":2},"status":{"observedGeneration":1}}`, "unstable(" + waitGeneration + ") available"},
		{"paused, and otherwise complete", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":0},"status":{"conditions":[{"type":"Progressing","reason":"DeploymentPaused","message":"is paused"}]}}`, "stable available paused(is paused)"},
		{"not available", "Deployment.apps", `{"apiVersion":"apps/v1","status":{"conditions":[{"type":"Available","status":"False","message":"too few"}]}}`, "unstable(too few) unavailable(too few)"},
		{"past the deadline", "Deployment.apps", `{"apiVersion":"apps/v1","status":{"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}}`, "stable available failed(Deployment exceeded its progress deadline)"},
		{"past the deadline, and unavailable", "Deployment.apps", `{"apiVersion":"apps/v1","status":{"conditions":[{"type":"Progressing","reason":"ProgressDeadlineExceeded"},{"type":"Available","status":"False","message":"too few"}]}}`, "unstable(too few) unavailable(too few) failed(Deployment exceeded its progress deadline)"},
		{"past the deadline, with pending replicas", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2},"status":{"updatedReplicas":2,"conditions":[{"type":"progressing","status":"False","reason":"progressdeadlineexceeded"}]}}`, "unstable(" + waitAvailable + ") available failed(Deployment exceeded its progress deadline)"},
		{"unavailable, with pending replicas", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2},"status":{"conditions":[{"type":"Available","status":"False","message":"too few"}]}}`, "unstable(Waiting for all replicas to be updated) unavailable(too few)"},
		{"the generation is checked first", "Deployment.apps", `{"apiVersion":"apps/v1","metadata":{"generation":1},"spec":{"replicas":2},"status":{"conditions":[{"type":"Progressing","reason":"ProgressDeadlineExceeded"}]}}`, "unstable(" + waitGeneration + ") available"},
		{"paused, with pending replicas", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1},"status":{"conditions":[{"type":"Progressing","status":"Unknown","reason":"DeploymentPaused","message":"is paused"}]}}`, "unstable(Waiting for all replicas to be updated) available paused(is paused)"},
		{"not updated", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3},"status":{"replicas":3,"updatedReplicas":2}}`, "unstable(Waiting for all replicas to be updated) available"},
		{"old replicas remain", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3},"status":{"replicas":4,"updatedReplicas":3}}`, "unstable(Waiting for old replicas to finish termination) available"},
		{"not all available", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3},"status":{"replicas":3,"updatedReplicas":3,"availableReplicas":2}}`, "unstable(" + waitAvailable + ") available"},
		{"not all ready", "Deployment.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3},"status":{"replicas":3,"updatedReplicas":3,"availableReplicas":3,"readyReplicas":2}}`, "unstable(" + waitReady + ") available"},
		{"a complete Deployment", "Deployment.apps", `{"apiVersion":"apps/v1","metadata":{"generation":7},"spec":{"replicas":3},"status":{"observedGeneration":7,"replicas":3,"updatedReplicas":3,"availableReplicas":3,"readyReplicas":3}}`, stableText},

		{"no ReplicaSet status", "ReplicaSet.apps", `{}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"labels are missing", "ReplicaSet.apps", `{"spec":{"replicas":1},"status":{}}`, "unstable(Waiting for all replicas to be fully-labeled) unavailable(Waiting for all replicas to be fully-labeled)"},
		{"replicas are not ready", "ReplicaSet.apps", `{"spec":{"replicas":1},"status":{"fullyLabeledReplicas":1}}`, "unstable(" + waitReady + ") unavailable(" + waitReady + ")"},
		{"replicas are not available", "ReplicaSet.apps", `{"spec":{"replicas":1},"status":{"fullyLabeledReplicas":1,"readyReplicas":1}}`, "unstable(" + waitAvailable + ") unavailable(" + waitAvailable + ")"},
		{"a ReplicaSet's change is not observed yet", "ReplicaSet.apps", `{"metadata":{"generation":1},"status":{}}`, "unstable(Waiting for replicaset spec update to be observed) available"},
		{"missing replicas count as 0", "ReplicaSet.apps", `{"status":{"replicas":1}}`, stableText},
		{"a complete ReplicaSet", "ReplicaSet.apps", `{"metadata":{"generation":2},"spec":{"replicas":1},"status":{"observedGeneration":2,"fullyLabeledReplicas":1,"readyReplicas":1,"availableReplicas":1}}`, stableText},
		{"a ReplicaSet of an old version", "ReplicaSet.extensions", `{"status":{}}`, stableText},

		{"no DaemonSet status", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"OnDelete"}}}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a complete DaemonSet", "DaemonSet.apps", `{"apiVersion":"apps/v1","metadata":{"generation":1},"spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"observedGeneration":1,"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3,"numberReady":3}}`, stableText},
		{"a DaemonSet's change is not observed yet", "DaemonSet.apps", `{"apiVersion":"apps/v1","metadata":{"generation":1},"status":{}}`, "unstable(" + waitGeneration + ") available"},
		{"a DaemonSet with OnDelete", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"OnDelete"}},"status":{"desiredNumberScheduled":3}}`, stableText},
		{"not scheduled", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":2}}`, "unstable(Waiting for all replicas to be scheduled) available"},
		{"not updated everywhere", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":2}}`, "unstable(Waiting for all updated replicas to be scheduled) available"},
		{"not available everywhere", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":2}}`, "unstable(" + waitAvailable + ") available"},
		{"not ready everywhere", "DaemonSet.apps", `{"apiVersion":"apps/v1","spec":{"updateStrategy":{"type":"RollingUpdate"}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3,"numberReady":2}}`, "unstable(" + waitReady + ") available"},

		{"a StatefulSet with OnDelete and without a status", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3,"updateStrategy":{"type":"OnDelete"}}}`, stableText},
		{"no StatefulSet status", "StatefulSet.apps", `{"apiVersion":"apps/v1"}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a StatefulSet's change is not observed yet", "StatefulSet.apps", `{"apiVersion":"apps/v1","metadata":{"generation":3},"status":{"observedGeneration":2}}`, "unstable(" + waitGeneration + ") available"},
		{"a rolling update without a partition", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{}}},"status":{"replicas":2,"readyReplicas":2,"updatedReplicas":1}}`, "unstable(Waiting for partitioned roll out to finish) available"},
		{"another strategy has no partition", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1,"updateStrategy":{"type":"RollingUpdate"}},"status":{"replicas":1,"readyReplicas":1,"updatedReplicas":1}}`, "unstable(Waiting for all updated replicas to be scheduled) available"},
		{"too few", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2},"status":{"replicas":1}}`, "unstable(Waiting for at least the desired replica count to be met) available"},
		{"too few ready replicas", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":1}}`, "unstable(Waiting for all updated replicas to be ready) available"},
		{"a partitioned roll out that is not complete", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}},"status":{"replicas":3,"readyReplicas":3,"updatedReplicas":1}}`, "unstable(Waiting for partitioned roll out to finish) available"},
		{"a partitioned roll out with a surplus replica", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":2,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}},"status":{"replicas":3,"readyReplicas":3,"updatedReplicas":2}}`, "unstable(Waiting for partitioned roll out to finish) available"},
		{"a complete partitioned roll out", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":3,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}},"status":{"replicas":3,"readyReplicas":3,"updatedReplicas":2}}`, "stable(Partitioned roll out complete) available"},
		{"nothing was updated yet", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{}}},"status":{"replicas":1,"readyReplicas":1}}`, "unstable(Waiting for all updated replicas to be scheduled) available"},
		{"revisions differ", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1},"status":{"replicas":1,"readyReplicas":1,"currentReplicas":1,"currentRevision":"a","updateRevision":"b"}}`, "unstable(Waiting for the updated revision to match the current revision) available"},
		{"a complete StatefulSet", "StatefulSet.apps", `{"apiVersion":"apps/v1","spec":{"replicas":1},"status":{"replicas":1,"readyReplicas":1,"currentReplicas":1,"currentRevision":"a","updateRevision":"a"}}`, stableText},

		{"no Job status", "Job.batch", `{"spec":{}}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a Job with one of several completions", "Job.batch", `{"spec":{"completions":2},"status":{"succeeded":1}}`, "unstable(Waiting for jobs to finish) available"},
		{"a Job that did not fail", "Job.batch", `{"status":{"conditions":[{"type":"Failed","status":"False"}]}}`, "unstable(Waiting for jobs to finish) available"},
		{"a complete Job with default completions", "Job.batch", `{"status":{"succeeded":1,"conditions":[{"type":"Failed","status":"True"}]}}`, stableText},
		{"a running Job", "Job.batch", `{"status":{"active":1}}`, "unstable(Waiting for jobs to finish) available"},
		{"a failed Job", "Job.batch", `{"status":{"conditions":[{"type":"Failed","status":"True","message":"too often"}]}}`, "stable available failed(too often)"},
		{"a complete Job", "Job.batch", `{"spec":{"completions":2},"status":{"succeeded":2}}`, stableText},
		{"a CronJob without a status", "CronJob.batch", `{}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a CronJob", "CronJob.batch", `{"status":{}}`, stableText},
		{"no Pod status", "Pod", `{}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a Pod without a phase", "Pod", `{"status":{}}`, "unstable(Pod phase is unknown) unavailable(Pod phase is unknown)"},
		{"a Pod in an unknown phase", "Pod", `{"status":{"phase":"Resting"}}`, "unstable(Pod phase is unknown) unavailable(Pod phase is unknown)"},
		{"a succeeded Pod", "Pod", `{"status":{"phase":"Succeeded"}}`, stableText},
		{"a pending Pod", "Pod", `{"status":{"phase":"Pending"}}`, "unstable(Pod is pending) unavailable(Pod is pending)"},
		{"a failed Pod is only unstable", "Pod", `{"status":{"phase":"Failed"}}`, "unstable(Pod has failed) unavailable(Pod has failed)"},
		{"a Pod in the phase Unknown", "Pod", `{"status":{"phase":"Unknown"}}`, "unstable(Pod phase is unknown) unavailable(Pod phase is unknown)"},
		{"a running Pod", "Pod", `{"status":{"phase":"Running"}}`, stableText},
		{"no autoscaler status", "HorizontalPodAutoscaler.autoscaling", `{}`, "unstable(" + noStatus + ") unavailable(No availability reported)"},
		{"a new autoscaler", "HorizontalPodAutoscaler.autoscaling", `{"status":{"desiredReplicas":3}}`, "unstable(Waiting for HPA to complete a scale up, current: 0 desired: 3) available"},
		{"an autoscaler at rest", "HorizontalPodAutoscaler.autoscaling", `{"status":{"currentReplicas":3,"desiredReplicas":3}}`, stableText},
		{"scaling up", "HorizontalPodAutoscaler.autoscaling", `{"status":{"currentReplicas":1,"desiredReplicas":3}}`, "unstable(Waiting for HPA to complete a scale up, current: 1 desired: 3) available"},
		{"scaling down", "HorizontalPodAutoscaler.autoscaling", `{"status":{"currentReplicas":3,"desiredReplicas":1}}`, "unstable(Waiting for HPA to complete a scale down, current: 3 desired: 1) available"},
		{"a Service, without a rule", "Service", `{}`, stableText},
		{"a custom Deployment has none either", "Deployment.example.com", `{}`, stableText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := evaluateStatus(vedette.ParseKind(tt.kind), []byte(tt.manifest))
			if got := s.text(); err != nil || got != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// TestUnsupportedVersion checks the errors for workloads of old API versions.
func TestUnsupportedVersion(t *testing.T) {
	for kind, want := range map[string]string{
		"Deployment.extensions": "No deployment is supported at api version extensions/v1beta1",
		"DaemonSet.extensions":  "No daemonSet is supported at api version extensions/v1beta1",
		"StatefulSet.apps":      "No statefulSet is supported at api version extensions/v1beta1",
	} {
		_, err := evaluateStatus(vedette.ParseKind(kind), []byte(`{"apiVersion":"extensions/v1beta1","status":{}}`))
		if vedette.KindOf(err) != vedette.Invalid || err.Error() != want {
			t.Errorf("%s: got %v, want %s", kind, err, want)
		}
	}
}

func (s manifestStatus) text() string {
	word := func(yes, no string, c condition) string {
		text := no
		if c.State {
			text = yes
		}
		if c.Message != "" {
			text += "(" + c.Message + ")"
		}
		return text
	}
	all := []string{word("stable", "unstable", s.Stable), word("available", "unavailable", s.Available), word("failed", "", s.Failed), word("paused", "", s.Paused)}
	return strings.Join(strings.Fields(strings.Join(all, " ")), " ")
}

func TestAsGson(t *testing.T) {
	for in, want := range map[string]string{
		`{"replicas":3}`:                     `{"replicas":3.0}`,
		`{"a":0,"b":-1,"c":1.50,"d":-0}`:     `{"a":0.0,"b":-1.0,"c":1.5,"d":-0.0}`,
		`[9999999,10000000,12345678,1e21]`:   `[9999999.0,1.0E7,1.2345678E7,1.0E21]`,
		`[0.001,0.0001,0.00012,1.5e-10]`:     `[0.001,1.0E-4,1.2E-4,1.5E-10]`,
		`[9007199254740993]`:                 `[9.007199254740992E15]`,
		`{"a":null,"b":1,"c":null}`:          `{"b":1.0}`,
		`{"a":1,"b":null,"c":{"d":null}}`:    `{"a":1.0,"c":{}}`,
		`[null,1,[null]]`:                    `[null,1.0,[null]]`,
		`{"a":"3","b":"x\"1,\\","c":true}`:   `{"a":"3","b":"x\"1,\\","c":true}`,
		` { "a" : [ 1 , { } , false ] } `:    `{"a":[1.0,{},false]}`,
		`{"generation":1,"uid":"6e","n":{}}`: `{"generation":1.0,"uid":"6e","n":{}}`,
	} {
		if got := string(asGson([]byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestAsManifest(t *testing.T) {
	for in, want := range map[string]string{
		`{"metadata":{"name":"a"},"spec":{"n":1}}`:          `{"metadata":{"name":"a","annotations":{}},"spec":{"n":1.0}}`,
		`{"metadata":{"annotations":null,"name":"a"}}`:      `{"metadata":{"name":"a","annotations":{}}}`,
		`{"metadata":{"annotations":{"b":"c"},"name":"a"}}`: `{"metadata":{"annotations":{"b":"c"},"name":"a"}}`,
		`{"metadata":{}}`: `{"metadata":{"annotations":{}}}`,
		`{"kind":"A"}`:    `{"kind":"A"}`,
		`{"spec":{"metadata":{"name":"b"}},"metadata":{"labels":{}}}`:     `{"spec":{"metadata":{"name":"b"}},"metadata":{"labels":{},"annotations":{}}}`,
		`{"spec":{"annotations":{}},"metadata":{"name":"a"}}`:             `{"spec":{"annotations":{}},"metadata":{"name":"a","annotations":{}}}`,
		`{"metadata":{"labels":{"annotations":"x"}},"spec":{"a":{}}}`:     `{"metadata":{"labels":{"annotations":"x"},"annotations":{}},"spec":{"a":{}}}`,
		`{"metadata":"text","spec":{"a":1}}`:                              `{"metadata":"text","spec":{"a":1.0}}`,
		`{"metadata":[{"name":"a"}],"spec":{"template":{"metadata":{}}}}`: `{"metadata":[{"name":"a"}],"spec":{"template":{"metadata":{}}}}`,
	} {
		if got := string(asManifest([]byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestWithoutNulls(t *testing.T) {
	const in, want = `{"a":null,"b":[{"c":null,"d":3,"e":10000000}],"f":1.50}`, `{"b":[{"d":3,"e":10000000}],"f":1.50}`
	if got := string(withoutNulls([]byte(in))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzAsGson checks that valid JSON keeps its meaning except for nulls, and that invalid JSON
// does not panic.
func FuzzAsGson(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `[1,null,{"b":null}]`, `{"a":"\u0000\\"}`, `{"a":1e400}`, `{`, `[1 2]`, `"`, `{"a":`, "nul", `[,]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out := asGson(in)
		var want any
		if json.Unmarshal(in, &want) != nil {
			return // invalid JSON must only not panic
		}
		var got any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s: got %s, which is invalid: %v", in, out, err)
		}
		if !reflect.DeepEqual(got, withoutNull(want)) {
			t.Errorf("%s: got %s, want the same values", in, out)
		}
	})
}

func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == nil {
				delete(v, key)
				continue
			}
			v[key] = withoutNull(inner)
		}
	case []any:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	}
	return v
}

func FuzzDouble(f *testing.F) {
	f.Add(3.0)
	f.Add(1e7)
	f.Add(math.SmallestNonzeroFloat64)
	f.Fuzz(func(t *testing.T, want float64) {
		if math.IsNaN(want) || math.IsInf(want, 0) {
			return // JSON has no such numbers
		}
		text := string(appendDouble(nil, want))
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || got != want || !strings.Contains(text, ".") {
			t.Errorf("%v: got %s, want the same number with a decimal point", want, text)
		}
	})
}

func FuzzMatchPath(f *testing.F) {
	f.Add("/manifests/prod//node%20node-1")
	f.Add("/manifests/%zz/a")
	f.Fuzz(func(t *testing.T, path string) {
		p, ok := matchPath("manifests/{account}/{location}/{name}", path)
		if ok && (len(p) != 3 || strings.Count(path, "/") < 3) {
			t.Errorf("%q: got %v", path, p)
		}
		if kind, object, err := splitName(p["name"]); err == nil && (kind == "" || object == "") {
			t.Errorf("%q: got %q and %q, want two names", p["name"], kind, object)
		}
	})
}

func BenchmarkAsGson(b *testing.B) {
	var manifest bytes.Buffer
	fmt.Fprintf(&manifest, `{"items":[%s{"port":8080,"name":"x","none":null}]}`, strings.Repeat(`{"port":8080,"name":"a name of some length","none":null},`, 100))
	b.SetBytes(int64(manifest.Len()))
	for b.Loop() {
		asGson(manifest.Bytes())
	}
}
