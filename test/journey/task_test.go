package journey

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/task"
)

// orcaClient submits operations as Orca does, and waits until they have ended.
type orcaClient struct {
	t    *testing.T
	rest http.Handler
	ids  []string // of the tasks
}

func (o *orcaClient) request(method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	o.rest.ServeHTTP(w, httptest.NewRequestWithContext(o.t.Context(), method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// run runs one operation and returns its result: the names in its results, or why it failed.
func (o *orcaClient) run(operation, description string) string {
	o.t.Helper()
	code, answer := o.request(http.MethodPost, "/kubernetes/ops", fmt.Sprintf(`[{%q:%s}]`, operation, description))
	var started struct{ ID, ResourceURI string }
	if err := json.Unmarshal([]byte(answer), &started); err != nil || code != http.StatusOK {
		o.t.Fatalf("%s: %d %s", operation, code, answer)
	}
	o.ids = append(o.ids, started.ID)
	var ended struct {
		Status        struct{ Completed, Failed bool }
		ResultObjects []struct {
			Message                  string
			ManifestNamesByNamespace json.RawMessage
		}
	}
	(&stack{t: o.t}).await("the end of "+operation, func() bool {
		_, answer := o.request(http.MethodGet, started.ResourceURI, "")
		if err := json.Unmarshal([]byte(answer), &ended); err != nil {
			o.t.Fatalf("decode %[2]s: %[1]v", err, answer)
		}
		return ended.Status.Completed
	})
	results := ""
	for _, r := range ended.ResultObjects {
		results += r.Message + string(r.ManifestNamesByNamespace)
	}
	if ended.Status.Failed {
		return "failed: " + results
	}
	return results
}

// TestEachStageOfOrcaSucceeds runs each of Orca's Kubernetes stages, from the REST API to a real cluster
// and back.
func TestEachStageOfOrcaSucceeds(t *testing.T) {
	w := newOperationsEnv(t)
	w.createNamespace("stages")
	tasks := task.New(task.Config{Server: "s1", Store: w.store, Accounts: w.store, Dispatch: w.Dispatcher, Log: w.log, Output: task.OutputAll})
	t.Cleanup(runInBackground(t, tasks.Run))
	o := &orcaClient{t: t, rest: clouddriver.New(clouddriver.Config{Store: w.store, Dispatch: w.Dispatcher, Tasks: tasks, Log: w.log})}
	deploy := func(manifest string) string {
		return `{"account":"one","moniker":{"app":"web"},"namespaceOverride":"stages","services":["service lb"],"manifests":[` + manifest + `]}`
	}
	config := func(value string) string {
		return deploy(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf","annotations":{"strategy.spinnaker.io/max-version-history":"1"}},"data":{"a":"` + value + `"}}`)
	}
	secret := deploy(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db"},"stringData":{"password":"stages-hunter2"}}`)
	const web = `{"account":"one","manifestName":"deployment web","location":"stages"`
	const set = `{"account":"one","manifestName":"replicaSet api-v000","location":"stages"`
	const job = `{"account":"one","application":"web","namespace":"stages","manifest":{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"m","image":"i"}]}}}}}`
	for _, tt := range []struct{ operation, description, want string }{
		{"deployManifest", deploy(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"lb"},"spec":{"selector":{"lb":"yes"},"ports":[{"port":80}]}},` + string(deployment("stages", "web", 1))),
			`{"stages":["deployment web","service lb"]}`},
		{"deployManifest", config("1"), `{"stages":["configMap conf-v000"]}`},
		{"deployManifest", config("2"), `{"stages":["configMap conf-v001"]}`},
		{"deployManifest", config("2"), `{"stages":["configMap conf-v001"]}`},
		{"cleanupArtifacts", `{"account":"one","manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf-v001","namespace":"stages","annotations":{
			"strategy.spinnaker.io/max-version-history":"1","artifact.spinnaker.io/type":"kubernetes/configMap","artifact.spinnaker.io/name":"conf"}}}]}`, `{"stages":["configMap conf-v000"]}`},
		{"deployManifest", secret, `{"stages":["secret db-v000"]}`},
		{"deployManifest", secret, `{"stages":["secret db-v000"]}`},
		{"deployManifest", deploy(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"api"},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"api"}},"template":{"metadata":{"labels":{"app":"api"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`),
			`{"stages":["replicaSet api-v000"]}`},
		{"disableManifest", set + `}`, ""},
		{"enableManifest", set + `}`, ""},
		{"resizeServerGroup", `{"account":"one","serverGroupName":"replicaSet api-v000","region":"stages","capacity":{"desired":2}}`, ""},
		{"scaleManifest", web + `,"replicas":"2"}`, ""},
		{"pauseRolloutManifest", web + `}`, ""},
		{"resumeRolloutManifest", web + `}`, ""},
		{"rollingRestartManifest", web + `}`, ""},
		{"patchManifest", web + `,"patchBody":{"spec":{"replicas":1}},"options":{"mergeStrategy":"strategic"}}`, `{"stages":["deployment web"]}`},
		{"patchManifest", web + `,"patchBody":[{"op":"replace","path":"/spec/replicas","value":2}],"options":{"mergeStrategy":"json","record":true}}`, `{"stages":["deployment web"]}`},
		{"patchManifest", web + `,"patchBody":{"spec":{"replicas":1}},"options":{"mergeStrategy":"merge"}}`, `{"stages":["deployment web"]}`},
		{"undoRolloutManifest", web + `,"numRevisionsBack":7}`, "failed: There are "},
		{"undoRolloutManifest", web + `,"revision":1}`, ""},
		{"runJob", job, `{"stages":["job migrate"]}`},
		{"runJob", job, `{"stages":["job migrate"]}`},
		{"scaleManifest", `{"account":"one","manifestName":"deployment nope","location":"stages","replicas":1}`, `failed: Failed to scale deployment/nope from stages: deployments.apps "nope" not found`},
		{"deleteManifest", web + `}`, `{"stages":["deployment web"]}`},
		{"deleteManifest", web + `}`, `{"stages":[]}`},
		{"deleteManifest", `{"account":"one","kinds":["configMap","replicaSet"],"location":"stages","labelSelectors":{"selectors":[{"kind":"EQUALS","key":"app.kubernetes.io/name","values":["web"]}]}}`,
			`{"stages":["configMap conf-v001","replicaSet api-v000"]}`},
	} {
		if got := o.run(tt.operation, tt.description); got != tt.want && !(strings.HasPrefix(tt.want, "failed") && strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s %s\ngot %s\nwant %s", tt.operation, tt.description, got, tt.want)
		}
		if strings.Contains(tt.description, `"record":true`) {
			if _, live := o.request(http.MethodGet, "/manifests/one/stages/deployment%20web", ""); !strings.Contains(live, `"kubernetes.io/change-cause":"kubectl patch deployment web --namespace=stages --record=true --type=json --patch=[{`) {
				t.Errorf("the patch is not recorded in the change cause: %s", live)
			}
		}
	}
	if code, answer := o.request(http.MethodGet, "/manifests/one/stages/deployment%20web", ""); code != http.StatusNotFound {
		t.Errorf("deleted object: got %d %s", code, answer)
	}
	if _, last := o.request(http.MethodGet, "/task/"+o.ids[len(o.ids)-1], ""); !strings.Contains(last, `configMap/conf-v001 deleted`) || !strings.Contains(last, `replicaSet/api-v000 deleted`) {
		t.Errorf("the last task has no outputs of its deletions: %s", last)
	}
	for _, id := range o.ids {
		row, err := w.store.Task(t.Context(), id)
		if err != nil || strings.Contains(string(row.Body), "hunter2") || len(row.Body) == 0 {
			t.Errorf("task %s: got body %s stored, error %v", id, row.Body, err)
		}
	}
}
