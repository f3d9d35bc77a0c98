package clouddriver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store/tasks"
	"github.com/vedette-io/vedette/server/task"
)

// fakeTasks has one task, and records its calls.
type fakeTasks struct{ calls []string }

const taskID = "01JD8Q4S0V6K0G3H8B3R4T5Y6Z"

func (s *fakeTasks) record(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *fakeTasks) Submit(_ context.Context, requests []task.Request, o task.Options) (string, error) {
	o.MayWrite, o.MayReadApplication = nil, nil
	s.record("submit %s %+v", requests, o)
	return taskID, nil
}

func (s *fakeTasks) Restart(_ context.Context, id string, requests []task.Request, o task.Options) error {
	o.MayWrite, o.MayReadApplication = nil, nil
	s.record("restart %s %s %+v", id, requests, o)
	return nil
}

func (s *fakeTasks) Cancel(_ context.Context, id string, retry bool) error {
	s.record("retry %s %t", id, retry)
	return nil
}

func (s *fakeTasks) Get(_ context.Context, id string) (task.Task, error) {
	if id != taskID {
		return task.Task{}, vedette.Errorf(vedette.NotFound, "Task not found (id: %s)", id)
	}
	return task.Task{ID: id, Owner: "7f3a@vedette-0", State: tasks.Retryable, Started: time.UnixMilli(1763640000000),
		History: []task.HistoryEntry{{Phase: "ORCHESTRATION", Status: "Initializing Orchestration Task"}},
		Results: []json.RawMessage{json.RawMessage(`{"manifests":[{"spec":{"replicas":2}}],"createdArtifacts":[]}`)}}, nil
}

func (s *fakeTasks) List(ctx context.Context) ([]task.Task, error) {
	t, err := s.Get(ctx, taskID)
	return []task.Task{t}, err
}

func TestEachOperationPathIsSubmitted(t *testing.T) {
	const taskRefJSON = `{"id":"` + taskID + `","resourceUri":"/task/` + taskID + `"}`
	const taskJSON = `{"id":"` + taskID + `","ownerId":"7f3a@vedette-0","status":{"phase":"ORCHESTRATION","status":"Initializing Orchestration Task","complete":true,"completed":true,"failed":true,"retryable":true},` +
		`"history":[{"phase":"ORCHESTRATION","status":"Initializing Orchestration Task"}],"resultObjects":[{"manifests":[{"spec":{"replicas":2.0}}],"createdArtifacts":[]}],` +
		`"outputs":[],"sagaIds":[],"retryable":true,"startTimeMs":1763640000000}`
	const ops = `[{"a":{"x":1}},{"b":{},"c":{}}]`
	const callerSuffix = " Application:web User:ann Requester:{User:ann Claimed:ann Proven: Service: Address:127.0.0.1} Source:127.0.0.1 MayWrite:<nil> MayReadApplication:<nil> Remote:<nil>}"
	for _, tt := range []struct {
		name, method, path, body string
		code                     int
		want, calls              string
	}{
		{"operations of a provider", "POST", "/kubernetes/ops?clientRequestId=4f1c", ops, 200, taskRefJSON, `submit [{a {"x":1}} {b {}} {c {}}] {RequestID:4f1c Provider:kubernetes` + callerSuffix},
		{"operations without a provider", "POST", "/ops", ops, 200, taskRefJSON, `submit [{a {"x":1}} {b {}} {c {}}] {RequestID: Provider:` + callerSuffix},
		{"one operation", "POST", "/kubernetes/ops/scaleManifest?clientRequestId=1", `{"x":1}`, 200, taskRefJSON, `submit [{scaleManifest {"x":1}}] {RequestID:1 Provider:kubernetes` + callerSuffix},
		{"one operation without a provider", "POST", "/ops/scaleManifest", `{}`, 200, taskRefJSON, `submit [{scaleManifest {}}] {RequestID: Provider:` + callerSuffix},
		{"an empty segment", "POST", "//ops", ops, 200, taskRefJSON, `submit [{a {"x":1}} {b {}} {c {}}] {RequestID: Provider:` + callerSuffix},
		{"a trailing slash", "POST", "/kubernetes/ops/scaleManifest/", `{}`, 200, taskRefJSON, `submit [{scaleManifest {}}] {RequestID: Provider:kubernetes` + callerSuffix},
		{"a trailing slash with another method", "POST", "/features/stages/", "", 405, "not supported", "GET, HEAD"},
		{"two trailing slashes", "GET", "/features/stages//", "", 404, "No handler found for GET /features/stages//", ""},
		{"a task", "GET", "/task/" + taskID, "", 200, taskJSON, ""},
		{"no task", "GET", "/task/x", "", 404, "Task not found (id: x)", ""},
		{"all tasks", "GET", "/task", "", 200, "[" + taskJSON + "]", ""},
		{"its owner", "GET", "/kubernetes/task/" + taskID + "/owner", "", 200, `{"name":"vedette-0"}`, ""},
		{"the owner of a missing task", "GET", "/kubernetes/task/x/owner", "", 404, "Task not found (id: x)", ""},
		{"the owner of another provider's task", "GET", "/aws/task/x/owner", "", 500, "Supported cloudproviders are: [kubernetes]", ""},
		{"cancel, retryable", "PATCH", "/kubernetes/task/" + taskID, `{"retry":true,"more":1}`, 200, taskRefJSON, "retry " + taskID + " true"},
		{"cancel, not retryable", "PATCH", "/kubernetes/task/" + taskID, `{"retry":false}`, 200, taskRefJSON, "retry " + taskID + " false"},
		{"cancel a missing task", "PATCH", "/kubernetes/task/x", `{"retry":false}`, 404, "Task not found (id: x)", ""},
		{"a patch without retry", "PATCH", "/kubernetes/task/x", `{}`, 400, "Patching task id: x with the provided inputs is not supported", ""},
		{"a patch for another provider", "PATCH", "/gce/task/x", `{"retry":true}`, 500, "for cloudprovider: gce", ""},
		{"run again", "POST", "/kubernetes/task/x/restart", ops, 200, `{"id":"x","resourceUri":"/task/x"}`, `restart x [{a {"x":1}} {b {}} {c {}}] {RequestID: Provider:kubernetes` + callerSuffix},
		{"a saga", "POST", "/task/" + taskID + ":resume", "", 404, "No saga was found for this task id: " + taskID + " - can't resume", ""},
		{"a saga with its colon escaped", "POST", "/task/" + taskID + "%3Aresume", "", 404, "No saga was found", ""},
		{"a saga of a missing task", "POST", "/task/x:resume", "", 404, "Task not found (id: x)", ""},
		{"a task with another method", "POST", "/task/x", "", 405, "Request method 'POST' is not supported", "GET, HEAD"},
		{"operations with another method", "GET", "/kubernetes/ops", "", 405, "not supported", "POST"},
		{"a saga with another method", "DELETE", "/task/x:resume", "", 405, "not supported", "GET, HEAD, POST"},
		{"on demand", "POST", "/cache/kubernetes/manifest", `{"account":"prod"}`, 200, `{"cachedIdentifiersByType":{}}`, ""},
		{"pending on-demand refreshes", "GET", "/cache/kubernetes/manifest?id=1", "", 200, "[]", ""},
		{"the stages", "GET", "/features/stages", "", 200, `{"name":"deployManifest","enabled":true},{"name":"deleteManifest","enabled":true}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &fakeTasks{}
			url := serve(t, clouddriver.Config{Store: readtest.New(t).Store, Tasks: s})
			code, body, header := send(t, tt.method, url+tt.path, strings.NewReader(tt.body))
			allow := header.Get("Allow")
			calls := strings.Join(s.calls, "\n")
			if tt.code == http.StatusMethodNotAllowed {
				calls = allow
			}
			if code != tt.code || calls != tt.calls || !strings.Contains(body, tt.want) || strings.HasPrefix(tt.want, `{"id"`) && body != tt.want+"\n" {
				t.Errorf("got %d %s and the calls %q, want %d %s and %q", code, body, calls, tt.code, tt.want, tt.calls)
			}
		})
	}
}

func send(t *testing.T, method, url string, body io.Reader) (code int, answer string, header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-SPINNAKER-USER", "ann")
	r.Header.Set("X-SPINNAKER-APPLICATION", "web")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(raw), response.Header
}

// TestAllStagesAreFeatures checks the 13 stages that Deck and Orca know by these names.
func TestAllStagesAreFeatures(t *testing.T) {
	_, body := get(t, serve(t, clouddriver.Config{Store: readtest.New(t).Store, Tasks: &fakeTasks{}})+"/features/stages")
	var stages []struct {
		Name    string
		Enabled bool
	}
	if err := json.Unmarshal(body, &stages); err != nil || len(stages) != 13 || !stages[12].Enabled || stages[12].Name != "resizeServerGroup" {
		t.Errorf("got %v, error %v, want 13 stages", stages, err)
	}
}

// spaceReader reads an endless body of spaces.
type spaceReader struct{}

func (spaceReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestTooLargeBodyIsRejected(t *testing.T) {
	s := &fakeTasks{}
	url := serve(t, clouddriver.Config{Store: readtest.New(t).Store, Tasks: s}) + "/kubernetes/ops"
	const maxBytes = 32 << 20
	fits := io.MultiReader(io.LimitReader(spaceReader{}, maxBytes-2), strings.NewReader("[]"))
	if code, body, _ := send(t, "POST", url, fits); code != http.StatusOK {
		t.Errorf("32 MiB: got %d %s, want %d", code, body, http.StatusOK)
	}
	tooLarge := io.MultiReader(io.LimitReader(spaceReader{}, maxBytes-1), strings.NewReader("[]"))
	if code, body, _ := send(t, "POST", url, tooLarge); code != http.StatusRequestEntityTooLarge || !strings.Contains(body, "32 MiB") {
		t.Errorf("more than 32 MiB: got %d %s, want %d and %q", code, body, http.StatusRequestEntityTooLarge, "32 MiB")
	}
}

// denyingAuthorizer denies WRITE.
type denyingAuthorizer struct{ t *testing.T }

func (k denyingAuthorizer) CheckAccount(_ context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error {
	if c.User != "ann" || account != "prod" || access != authorize.Write {
		k.t.Errorf("got a check of %s for %s in %s, want WRITE for ann in prod", access, c.User, account)
	}
	return vedette.Errorf(vedette.Denied, "Access is denied")
}

func (denyingAuthorizer) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return nil, nil
}

func (denyingAuthorizer) ReadableApplications(context.Context, authorize.Caller) (func(string) bool, error) {
	return nil, nil
}

func (denyingAuthorizer) CheckApplication(context.Context, authorize.Caller, string, authorize.Access) error {
	return nil
}

// TestDeniedSubmitIsAValidationError checks that an operation requires WRITE of its account, and that Orca gets
// a denial in the same form as other validation errors.
func TestDeniedSubmitIsAValidationError(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", "pods")
	s := task.New(task.Config{Store: w.Store, Accounts: w.Store})
	url := serve(t, clouddriver.Config{Store: w.Store, Tasks: s, Authorizer: denyingAuthorizer{t}})
	code, body, _ := send(t, "POST", url+"/kubernetes/ops", strings.NewReader(`[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}]`))
	if code != http.StatusBadRequest || !strings.Contains(body, `"message":"Validation Failed","errors":["Access denied to account prod"]`) {
		t.Errorf("got %d %s, want %d and %q", code, body, http.StatusBadRequest, `"message":"Validation Failed","errors":["Access denied to account prod"]`)
	}
}

// TestCrossOriginRequestsAreRejected checks that web pages cannot use a visitor's browser to
// reach a server on the visitor's machine.
func TestCrossOriginRequestsAreRejected(t *testing.T) {
	fake := &fakeTasks{}
	url := serve(t, clouddriver.Config{Store: readtest.New(t).Store, Tasks: fake})
	for header, value := range map[string]string{"Origin": "https://evil.example.com", "Sec-Fetch-Site": "cross-site"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/kubernetes/ops", strings.NewReader(`[{"scaleManifest":{}}]`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(header, value)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s: got %d, want %d", header, value, response.StatusCode, http.StatusForbidden)
		}
	}
	if len(fake.calls) != 0 {
		t.Errorf("got the calls %q, want none", fake.calls)
	}
}
