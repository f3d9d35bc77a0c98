package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func parse(t testing.TB, raw string) Manifest {
	t.Helper()
	var m Manifest
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFound(t *testing.T) {
	const spec = `{"containers":[{"image":"r.io/a:1","env":[{"valueFrom":{"configMapKeyRef":{"name":"c1"}}},{"valueFrom":{"secretKeyRef":{"name":"s1"}}},{"valueFrom":{}}],"envFrom":[{"configMapRef":{"name":"c2"}},{"secretRef":{"name":"s2"}}]},{"image":"r.io/a:1"}],
		"initContainers":[{"image":"r.io/b@sha256:00"}],"volumes":[{"configMap":{"name":"c3"}},{"secret":{"secretName":"s3"}},{"projected":{"sources":[{"configMap":{"name":"c4"}},{"secret":{"name":"s4"}}]}},{"emptyDir":{}}]}`
	const all = "docker/image r.io/a=r.io/a:1, docker/image r.io/b=r.io/b@sha256:00, kubernetes/configMap c3=c3, kubernetes/secret s3=s3, kubernetes/configMap c4=c4, kubernetes/secret s4=s4, kubernetes/configMap c2=c2, kubernetes/secret s2=s2, kubernetes/configMap c1=c1, kubernetes/secret s1=s1"
	for _, tt := range []struct{ why, kind, manifest, want string }{
		{"a template holds everything", "Deployment.apps", `{"spec":{"template":{"spec":` + spec + `}}}`, all},
		{"so does a CronJob's", "CronJob.batch", `{"spec":{"jobTemplate":{"spec":{"template":{"spec":` + spec + `}}}}}`, all},
		{"of a Pod, the containers' images as they stand", "Pod", `{"spec":` + spec + `}`, "docker/image r.io/a:1=r.io/a:1"},
		{"an autoscaler's target", "HorizontalPodAutoscaler.autoscaling", `{"spec":{"scaleTargetRef":{"kind":"ReplicaSet","name":"web-v003"}}}`, "kubernetes/replicaSet web-v003=web-v003"},
		{"an autoscaler of something else", "HorizontalPodAutoscaler.autoscaling", `{"spec":{"scaleTargetRef":{"kind":"StatefulSet","name":"web"}}}`, ""},
		{"a port is taken for a tag", "Job.batch", `{"spec":{"template":{"spec":{"containers":[{"image":"localhost:5000/x"}]}}}}`, "docker/image localhost=localhost:5000/x"},
		{"custom kinds have none", "Deployment.example.com", `{"spec":{"template":{"spec":` + spec + `}}}`, ""},
		{"other kinds have none", "ConfigMap", `{"data":{"a":"b"}}`, ""},
	} {
		t.Run(tt.why, func(t *testing.T) {
			found := Found(vedette.ParseKind(tt.kind), parse(t, tt.manifest))
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
