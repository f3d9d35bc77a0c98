package journey

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
)

// TestReadsFallBackToCluster reads objects that are not stored yet, as Orca does right after a
// deployment.
func TestReadsFallBackToCluster(t *testing.T) {
	w := newOperationsEnv(t)
	w.createNamespace("reads")
	w.mustDo(vedette.ApplyArgs{Manifest: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings-v000","namespace":"reads",
		"annotations":{"moniker.spinnaker.io/application":"web","moniker.spinnaker.io/cluster":"configMap settings"}},"data":{"a":"b"}}`)})
	w.mustDo(vedette.ApplyArgs{Manifest: deployment("reads", "web", 1)})
	w.mustDo(vedette.ApplyArgs{Manifest: []byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate","namespace":"reads"},
		"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"i"}]}}}}`)})
	server := httptest.NewServer(clouddriver.New(clouddriver.Config{Store: w.store, Dispatch: w.Dispatcher, Log: w.log}))
	t.Cleanup(server.Close)
	request := func(method, path string) string {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %s", response.StatusCode, body)
	}
	h := &stack{t: t}
	for _, tt := range []struct{ method, path, want string }{
		{"GET", "/manifests/one/reads/configMap%20settings-v000", `200 {"account":"one","name":"configMap settings-v000","location":"reads"`},
		{"GET", "/manifests/one/reads/cm%20nope", "404 "},
		{"GET", "/manifests/one/_/clusterRole%20admin?includeEvents=false", `200 {"account":"one","name":"clusterRole admin","location":""`},
		{"GET", "/manifests/one/reads/configMap/cluster/web/configMap%20settings/dynamic/newest", `200 {"kind":"configMap","namespace":"reads","name":"settings-v000"}`},
		{"GET", "/manifests/one/reads/deployment%20web", `"reason":"ScalingReplicaSet"`}, // an Event
		{"GET", "/applications/web/jobs/one/reads/job%20migrate", `"jobState":"Succeeded"`},
		{"DELETE", "/applications/web/jobs/one/reads/job%20migrate", "200 "},
		{"GET", "/applications/web/jobs/one/reads/job%20migrate", "404 "},
	} {
		// Controllers need a moment.
		h.await(tt.method+" "+tt.path+" to return "+tt.want, func() bool { return strings.Contains(request(tt.method, tt.path), tt.want) })
	}
}
