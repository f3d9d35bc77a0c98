package clouddriver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/task"
)

// TestInvalidTextIsRejected sends invalid text wherever a request contains a name. It must not
// reach an agent, because the agent's stream cannot carry it.
func TestInvalidTextIsRejected(t *testing.T) {
	for _, tt := range []struct{ name, method, path, body, user, want string }{
		{"a manifest", "GET", "/manifests/prod/default/secret%20%ff", "", "", "the path must not contain the byte 0xff"},
		{"a cluster", "GET", "/manifests/prod/shop/configMap/cluster/web/%e8", "", "", "0xe8"},
		{"a container", "GET", "/applications/web/kubernetes/pods/prod/shop/web-0/a%00", "", "", "U+0000"},
		{"a pod", "GET", "/instances/prod/shop/pod%20%ff/console", "", "", "0xff"},
		{"a job to delete", "DELETE", "/applications/web/jobs/prod/shop/job%20%ff", "", "", "0xff"},
		{"a request's name", "POST", "/kubernetes/ops?clientRequestId=%ff", "[]", "", "the query must not contain"},
		{"an incomplete escape in the query", "GET", "/credentials?expand=%f", "", "", "the query"},
		{"very many parameters", "GET", "/credentials?" + strings.Repeat("a&", 20_000), "", "", "the query"},
		{"a user", "GET", "/manifests/prod/shop/configMap%20x", "", "J\xfcrgen", "the header X-Spinnaker-User must not contain the byte 0xfc"},
		{"a body", "POST", "/kubernetes/ops", `[{"scaleManifest":{"account":"prod","manifestName":"deployment ` + "\xff" + `","location":"shop","replicas":3}}]`, "", "the body must not contain the byte 0xff"},
		{"an escaped control character", "POST", "/kubernetes/ops", `[{"scaleManifest":{"account":"prod","manifestName":"deployment a\u0000","location":"shop","replicas":3}}]`, "",
			"manifestName of the description is invalid: it must not contain the control character U+0000"},
		{"an element of a list", "POST", "/kubernetes/ops/deleteManifest", `{"account":"prod","location":"shop","kinds":["pod","a\n"],"options":{}}`, "", "kinds of the description is invalid"},
		{"an artifact", "PUT", "/artifacts/fetch", `{"artifactAccount":"` + "\xff" + `"}`, "", "the body must not contain the byte 0xff"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := prodWorld(t)
			handler := clouddriver.New(clouddriver.Config{Store: w.Store, Dispatch: c, Tasks: task.New(task.Config{Store: w.Store, Accounts: w.Store, Dispatch: c})})
			r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, strings.NewReader(tt.body))
			if tt.user != "" {
				r.Header.Set("X-SPINNAKER-USER", tt.user)
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, r)
			if recorder.Code != http.StatusBadRequest || !strings.Contains(recorder.Body.String(), tt.want) || !strings.Contains(recorder.Body.String(), "IllegalArgumentException") {
				t.Errorf("got %d %s, want %d and %q", recorder.Code, recorder.Body, http.StatusBadRequest, tt.want)
			}
			if requests := c.requests(); len(requests) > 0 {
				t.Errorf("got the requests %q at the agent, want none", requests)
			}
		})
	}
}

// TestSemicolonsAreText checks that a parameter with a semicolon counts. Without it, the request
// would be one for all server groups.
func TestSemicolonsAreText(t *testing.T) {
	url := serve(t, clouddriver.Config{Store: viewWorld(t).Store})
	if _, body := get(t, url+"/applications/shop/serverGroups?clusters=prod:a;b"); string(body) != "[]\n" {
		t.Errorf("a cluster that does not exist: got %s, want []", body)
	}
	if _, body := get(t, url+"/search?type=pod&q=shop;x"); !strings.Contains(string(body), `"query":"shop;x"`) {
		t.Errorf("a search: got %s, want the query shop;x", body)
	}
}

// slowBody is a request body that arrives too slowly.
type slowBody struct{}

func (slowBody) Read([]byte) (int, error) { return 0, middleware.ErrSlowBody }

func TestSlowBodyTimesOut(t *testing.T) {
	w, _ := prodWorld(t)
	recorder := httptest.NewRecorder()
	clouddriver.New(clouddriver.Config{Store: w.Store, Tasks: &fakeTasks{}}).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/kubernetes/ops", slowBody{}))
	if recorder.Code != http.StatusRequestTimeout || !strings.Contains(recorder.Body.String(), "too slowly") {
		t.Errorf("got %d %s, want %d and %q", recorder.Code, recorder.Body, http.StatusRequestTimeout, "too slowly")
	}
}
