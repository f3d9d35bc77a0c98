package clouddriver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestLiveAnswersAreAsRecorded compares responses with testdata/live, and checks the requests to the cluster.
func TestLiveAnswersAreAsRecorded(t *testing.T) {
	for _, tt := range []struct {
		file, path string
		requests   []string
	}{
		{"manifest-that-is-not-cached", "/manifests/prod/shop/configMap%20settings-v001", []string{"events ConfigMap shop/settings-v001 in prod for dev within 5s", "get configMap shop/settings-v001 in prod for dev within 10s"}},
		{"manifest-of-a-pod", "/manifests/prod/shop/pod%20web-0", []string{"events Pod shop/web-0 in prod for dev within 5s", "metrics shop/web-0 in prod for dev within 5s"}},
		{"manifest-alone", "/manifests/prod/shop/pod%20web-0?includeEvents=false", nil},
		{"cluster", "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web", nil},
		{"cluster-that-is-not-cached", "/manifests/prod/shop/configMap/cluster/web/configMap%20settings", []string{"list configMap shop in prod for dev within 10s"}},
		{"cluster-of-nothing", "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20nope", nil},
		{"job-that-runs", "/applications/web/jobs/prod/shop/job%20running", []string{"get job.batch shop/running in prod for dev within 10s"}},
		{"job-that-is-new", "/applications/web/jobs/prod/shop/job%20new", []string{"get job.batch shop/new in prod for dev within 10s"}},
		{"job-that-is-done", "/applications/web/jobs/prod/shop/job%20done", []string{"get job.batch shop/done in prod for dev within 10s"}},
		{"job-that-failed", "/applications/web/jobs/prod/shop/job%20failed", []string{"get job.batch shop/failed in prod for dev within 10s"}},
		{"properties-of-a-job", "/applications/web/jobs/prod/shop/job%20done/main", []string{"get job.batch shop/done in prod for dev within 10s", "logs shop/migrate-b/main in prod for dev within 30s"}},
		{"properties-that-are-broken", "/applications/web/jobs/prod/shop/job%20done/broken", []string{"get job.batch shop/done in prod for dev within 10s", "logs shop/migrate-b/broken in prod for dev within 30s"}},
		{"properties-of-no-container", "/applications/web/jobs/prod/shop/job%20done/nope", []string{"get job.batch shop/done in prod for dev within 10s", "logs shop/migrate-b/nope in prod for dev within 30s"}},
		{"properties-of-no-job", "/applications/web/jobs/prod/shop/job%20nope/main", []string{"get job.batch shop/nope in prod for dev within 10s"}},
		{"properties-of-a-pod", "/applications/web/kubernetes/pods/prod/shop/web-0/migrate", []string{"logs shop/web-0/migrate in prod for dev within 30s"}},
		{"console", "/instances/prod/shop/pod%20web-0/console?provider=kubernetes", []string{"logs shop/web-0/migrate in prod for dev within 30s", "logs shop/web-0/sidecar in prod for dev within 30s", "logs shop/web-0/web in prod for dev within 30s"}},
		{"console-of-no-pod", "/instances/prod/shop/pod%20nope/console?provider=kubernetes", nil},
	} {
		t.Run(tt.file, func(t *testing.T) {
			w, c := prodWorld(t)
			response, body := get(t, serve(t, clouddriver.Config{Store: w.Store, Dispatch: c})+tt.path, "X-SPINNAKER-USER", "dev")
			if response.StatusCode != http.StatusOK {
				t.Fatalf("got %d %s, want %d", response.StatusCode, body, http.StatusOK)
			}
			golden.Compare(t, "testdata/live/"+tt.file+".json", indent(t, body))
			if got := c.requests(); !slices.Equal(got, tt.requests) {
				t.Errorf("requests to the cluster: got %q, want %q", got, tt.requests)
			}
		})
	}
}

// TestCachingIgnoreAnnotation checks objects with an annotation that keeps them out of
// Clouddriver's cache. They are readable wherever Clouddriver reads the cluster, and the row
// has the annotation.
func TestCachingIgnoreAnnotation(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", "replicasets")
	w.Put("prod", `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-v001","namespace":"shop","creationTimestamp":"2026-11-20T12:00:00Z",
		"annotations":{"caching.spinnaker.io/ignore":"true","moniker.spinnaker.io/application":"web","moniker.spinnaker.io/cluster":"replicaSet web"}}}`)
	server := serve(t, clouddriver.Config{Store: w.Store})
	for _, path := range []string{"replicaSet%20web-v001", "replicaSet/cluster/web/replicaSet%20web", "replicaSet/cluster/web/replicaSet%20web/dynamic/newest"} {
		response, body := get(t, server+"/manifests/prod/shop/"+path)
		if response.StatusCode != http.StatusOK || !strings.Contains(string(body), "web-v001") {
			t.Errorf("%s: got %d %s, want %d and %q", path, response.StatusCode, body, http.StatusOK, "web-v001")
		}
	}
	row, err := w.Store.Object(t.Context(), "prod", vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "ReplicaSet"}, Namespace: "shop", Name: "web-v001"})
	if err != nil || row.Annotations["caching.spinnaker.io/ignore"] != "true" {
		t.Errorf("got row with %v, error %v, want the annotation", row.Annotations, err)
	}
}

// TestOmitPodStatus checks that the option leaves out the pods of a Job, and nothing else.
func TestOmitPodStatus(t *testing.T) {
	w, c := prodWorld(t)
	jobs := map[bool]map[string]any{}
	for _, omit := range []bool{false, true} {
		_, body := get(t, serve(t, clouddriver.Config{Store: w.Store, Dispatch: c, OmitPodStatus: omit})+"/applications/web/jobs/prod/shop/job%20failed")
		var job map[string]any
		if err := json.Unmarshal(body, &job); err != nil {
			t.Fatalf("invalid JSON: %v: %s", err, body)
		}
		jobs[omit] = job
	}
	if pods := jobs[true]["pods"].([]any); len(pods) != 0 || len(jobs[false]["pods"].([]any)) != 3 {
		t.Errorf("got the pods %v with OmitPodStatus and %v without, want 0 and 3", pods, jobs[false]["pods"])
	}
	delete(jobs[true], "pods")
	delete(jobs[false], "pods")
	if !reflect.DeepEqual(jobs[true], jobs[false]) {
		t.Errorf("with OmitPodStatus: got %v, want %v", jobs[true], jobs[false])
	}
}

func TestCriteriaChooseTheManifest(t *testing.T) {
	w, c := prodWorld(t)
	server := serve(t, clouddriver.Config{Store: w.Store, Dispatch: c})
	for _, tt := range []struct {
		path   string
		status int
		want   string
	}{
		{"replicaSet/cluster/web/replicaSet%20web/dynamic/oldest", 200, `"name":"web-v001"`},
		{"replicaSet/cluster/web/replicaSet%20web/dynamic/newest", 200, `{"kind":"replicaSet","namespace":"shop","name":"web-v003"}`},
		{"replicaSet/cluster/web/replicaSet%20web/dynamic/second_newest", 200, `"name":"web-v002"`},
		{"replicaSet/cluster/web/replicaSet%20web/dynamic/smallest", 200, `"name":"web-v002"`},
		{"replicaSet/cluster/web/replicaSet%20web/dynamic/largest", 200, `"name":"web-v001"`},
		{"replicaSet/cluster/web/replicaSet%20web-canary/dynamic/second_newest", 404, "No manifests matching (account: prod, location: shop, kind: replicaSet, app web, cluster: replicaSet web-canary, criteria: second_newest) found"},
		{"replicaSet/cluster/other/replicaSet%20web/dynamic/newest", 404, "No manifests matching"},
		{"replicaSet/cluster/web/replicaSet%20web/dynamic/biggest", 400, ""},
		{"configMap/cluster/web/configMap%20settings/dynamic/newest", 200, `"name":"settings-v001"`},
		{"service/cluster/web/service%20web/dynamic/newest", 200, ""},
		{"service/cluster/web/service%20web", 500, "services is forbidden"},
		{"widget/cluster/web/widget%20web", 200, ""},
		{"widget/cluster/web/widget%20web/dynamic/newest", 200, ""},
	} {
		response, body := get(t, server+"/manifests/prod/shop/"+tt.path)
		if response.StatusCode != tt.status || !strings.Contains(string(body), tt.want) || tt.want == "" && len(body) > 0 {
			t.Errorf("%s: got %d %s, want %d and %q", tt.path, response.StatusCode, body, tt.status, tt.want)
		}
	}
}

func TestLiveErrorsSayWhatFailed(t *testing.T) {
	w, c := prodWorld(t)
	w.Account("away", "pods")
	w.Fleet.Disconnect("away")
	w.SetFeedState("prod", vedette.Kind{Group: "apps", Name: "Deployment"}, vedette.FeedDenied, "deployments is forbidden")
	server := serve(t, clouddriver.Config{Store: w.Store, Dispatch: c, Connected: func(a vedette.AccountName) bool { _, live := w.Fleet.Freshness(a); return live }})
	for _, tt := range []struct {
		name, method, path string
		status             int
		want               string
	}{
		{"an object that the cluster does not have", "GET", "/manifests/prod/shop/configMap%20nope", 404, "Manifest (account: prod, location: shop, name: configMap nope) not found"},
		{"an object that the cluster denies", "GET", "/manifests/prod/shop/secret%20hidden", 500, `Failed to read manifest: (account: prod, location: shop, name: secret hidden): secrets "hidden" is forbidden`},
		{"no response from the agent", "GET", "/manifests/prod/shop/service%20slow", 503, "(account: prod, location: shop, name: service slow): the agent went away"},
		{"a failure without a message", "GET", "/manifests/prod/shop/ingress%20mute", 500, "the agent gave no reason"},
		{"a response without objects", "GET", "/manifests/prod/shop/widget%20odd", 500, "the agent sent 0 objects"},
		{"a kind that RBAC denies to the watch, but not to the agent's get", "GET", "/manifests/prod/shop/deployment%20web", 200, `"name":"deployment web"`},
		{"an object in the store is not requested from the cluster", "GET", "/manifests/prod/shop/pod%20nope", 404, "not found"},
		{"an unknown account", "GET", "/manifests/nope/shop/configMap%20settings-v001", 404, "not found"},
		{"an unknown kind", "GET", "/manifests/prod/shop/unknown%20thing", 500, `Failed to read manifest: (account: prod, location: shop, name: unknown thing): no kind "unknown"`},
		{"a Job without its kind", "GET", "/applications/web/jobs/prod/shop/done", 404, "Job not found (account: prod, location: shop, id: done)"},
		{"a missing Job", "GET", "/applications/web/jobs/prod/shop/job%20nope", 404, "Job not found (account: prod, location: shop, id: job nope)"},
		{"a pod in place of a Job", "GET", "/applications/web/jobs/prod/shop/pod%20web-0", 400, "is not a Job"},
		{"a Job requested by POST, as Gate does", "POST", "/applications/web/jobs/prod/shop/job%20done", 200, `"jobState":"Succeeded"`},
		{"a Job is deleted", "DELETE", "/applications/web/jobs/prod/shop/job%20done", 200, ""},
		{"a Job that is deleted already", "DELETE", "/applications/web/jobs/prod/shop/job%20nope", 200, ""},
		{"a Job whose deletion is forbidden", "DELETE", "/applications/web/jobs/prod/shop/job%20failed", 500, "jobs is forbidden"},
		{"a Job cannot be changed", "PUT", "/applications/web/jobs/prod/shop/job%20done", 405, "not supported"},
		{"console output of another provider", "GET", "/instances/prod/shop/pod%20web-0/console?provider=aws", 404, "Instance not found (id: pod web-0)"},
		{"console output of another provider, by the older parameter", "GET", "/instances/prod/shop/pod%20web-0/console?provider=kubernetes&cloudProvider=aws", 404, "Instance not found (id: pod web-0)"},
		{"console output without a provider", "GET", "/instances/prod/shop/pod%20web-0/console", 200, `{"name":"migrate","output":`},
		{"console output by the newer parameter", "GET", "/instances/prod/shop/pod%20web-0/console?cloudProvider=kubernetes", 200, `{"name":"migrate","output":`},
		{"console output of a kind without containers", "GET", "/instances/prod/shop/service%20web/console?provider=kubernetes", 400, "service"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), tt.method, server+tt.path, nil)
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
			text := strings.ReplaceAll(string(body), `\"`, `"`)
			if response.StatusCode != tt.status || !strings.Contains(text, tt.want) || tt.want == "" && text != "" {
				t.Errorf("got %d %s, want %d and %q", response.StatusCode, body, tt.status, tt.want)
			}
		})
	}
}

// TestEventsAndMetricsTimeout checks that events and metrics can neither delay a manifest
// beyond their timeout nor make it fail, and that a warning says if the events are missing.
func TestEventsAndMetricsTimeout(t *testing.T) {
	for _, tt := range []struct {
		name            string
		events, metrics vedette.Outcome
		took            time.Duration
		warning         string // a part; "" for none
	}{
		{"both hang", hangingOutcome, hangingOutcome, 5 * time.Second, "account prod: read the events of Pod shop/web-0: "},
		{"events hang", hangingOutcome, objectsOutcome(usage), 5 * time.Second, "no events are shown"},
		{"both fail", failedOutcome(403, "no"), failedOutcome(404, "no metrics server"), 0, ": no: no events are shown"},
		{"metrics of another format", objectsOutcome(), objectsOutcome(`{"containers":[{"usage":{"cpu":"much"}}]}`), 0, ""},
		{"no metrics object", objectsOutcome(), objectsOutcome(), 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := prodWorld(t)
				c.answers["events Pod shop/web-0"], c.answers["metrics shop/web-0"] = tt.events, tt.metrics
				recorder, start := httptest.NewRecorder(), time.Now()
				clouddriver.New(clouddriver.Config{Store: w.Store, Dispatch: c}).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/manifests/prod/shop/pod%20web-0", nil))
				var got struct {
					Events, Metrics []any
					Warnings        []string
				}
				if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil || recorder.Code != 200 || got.Events == nil || len(got.Events) != 0 || got.Metrics == nil {
					t.Errorf("got %d %s, want %d", recorder.Code, recorder.Body, 200)
				}
				if isWarned := strings.Contains(strings.Join(got.Warnings, "\n"), tt.warning); !isWarned || (tt.warning == "") != (len(got.Warnings) == 0) {
					t.Errorf("got the warnings %q, want one with %q", got.Warnings, tt.warning)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("duration: got %s, want %s", took, tt.took)
				}
			})
		})
	}
}

func TestMetricsAreSetPerAccount(t *testing.T) {
	w, c := prodWorld(t)
	off := false
	w.Register(vedette.Account{Name: "quiet", Properties: vedette.Properties{Metrics: &off}}, "pods")
	w.Put("quiet", web0)
	if _, body := get(t, serve(t, clouddriver.Config{Store: w.Store, Dispatch: c})+"/manifests/quiet/shop/pod%20web-0"); !strings.Contains(string(body), `"metrics":[]`) {
		t.Errorf("got %s, want no metrics", body)
	}
	if got := c.requests(); len(got) != 1 || !strings.HasPrefix(got[0], "events") {
		t.Errorf("requests to the cluster: got %q, want one for events", got)
	}
}

// TestLiveRoutesNeedPermission checks the permissions that routes to live clusters require.
func TestLiveRoutesNeedPermission(t *testing.T) {
	w, c := prodWorld(t)
	for _, tt := range []struct {
		method, path string
		grants       grants
		status       int
	}{
		{"GET", "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web", nil, 403},
		{"GET", "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web/dynamic/newest", nil, 403},
		{"GET", "/manifests/prod/shop/configMap%20settings-v001", grants{"prod READ"}, 403},
		{"GET", "/applications/web/jobs/prod/shop/job%20done", grants{"prod READ", "application web READ"}, 200},
		{"GET", "/applications/web/jobs/prod/shop/job%20done", grants{"application web READ"}, 403},
		{"GET", "/applications/web/jobs/prod/shop/job%20done/main", grants{"prod READ"}, 403},
		{"GET", "/applications/web/kubernetes/pods/prod/shop/web-0/web", grants{"prod READ"}, 403},
		{"DELETE", "/applications/web/jobs/prod/shop/job%20done", grants{"prod WRITE", "application web EXECUTE", "prod READ"}, 200},
		{"DELETE", "/applications/web/jobs/prod/shop/job%20done", grants{"prod WRITE", "application web READ"}, 403},
		{"DELETE", "/applications/web/jobs/prod/shop/job%20done", grants{"prod READ", "application web EXECUTE"}, 403},
		{"GET", "/instances/prod/shop/pod%20nope/console?provider=kubernetes", grants{"prod READ"}, 200},
		{"GET", "/instances/prod/shop/pod%20nope/console?provider=kubernetes", nil, 403},
	} {
		recorder, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, nil)
		r.Header.Set("X-SPINNAKER-USER", "dev")
		clouddriver.New(clouddriver.Config{Store: w.Store, Dispatch: c, Authorizer: tt.grants}).ServeHTTP(recorder, r)
		if recorder.Code != tt.status {
			t.Errorf("%s %s with %q: got %d %s, want %d", tt.method, tt.path, tt.grants, recorder.Code, recorder.Body, tt.status)
		}
	}
}
