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
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// tasks knows one task, and notes what it is asked for.
type tasks struct{ asked []string }

const taskID = "01JD8Q4S0V6K0G3H8B3R4T5Y6Z"

func (s *tasks) note(format string, args ...any) {
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
}

func (s *tasks) Submit(_ context.Context, requests []task.Request, o task.Options) (string, error) {
	o.MayWrite = nil
	s.note("submit %s %+v", requests, o)
	return taskID, nil
}

func (s *tasks) Restart(_ context.Context, id string, requests []task.Request, o task.Options) error {
	o.MayWrite = nil
	s.note("restart %s %s %+v", id, requests, o)
	return nil
}

func (s *tasks) Cancel(_ context.Context, id string, again bool) error {
	s.note("retry %s %t", id, again)
	return nil
}

func (s *tasks) Get(_ context.Context, id string) (task.Task, error) {
	if id != taskID {
		return task.Task{}, vedette.Errorf(vedette.NotFound, "Task not found (id: %s)", id)
	}
	return task.Task{ID: id, Owner: "7f3a@vedette-0", State: store.TaskRetryable, Started: time.UnixMilli(1763640000000),
		History: []task.HistoryEntry{{Phase: "ORCHESTRATION", Status: "Initializing Orchestration Task"}},
		Results: []json.RawMessage{json.RawMessage(`{"manifests":[{"spec":{"replicas":2}}],"createdArtifacts":[]}`)}}, nil
}

func (s *tasks) List(ctx context.Context) ([]task.Task, error) {
	t, err := s.Get(ctx, taskID)
	return []task.Task{t}, err
}

func TestOperationPaths(t *testing.T) {
	const started = `{"id":"` + taskID + `","resourceUri":"/task/` + taskID + `"}`
	const told = `{"id":"` + taskID + `","status":{"phase":"ORCHESTRATION","status":"Initializing Orchestration Task","complete":true,"completed":true,"failed":true,"retryable":true},` +
		`"history":[{"phase":"ORCHESTRATION","status":"Initializing Orchestration Task"}],"resultObjects":[{"manifests":[{"spec":{"replicas":2.0}}],"createdArtifacts":[]}],` +
		`"outputs":[],"sagaIds":[],"retryable":true,"startTimeMs":1763640000000}`
	const ops = `[{"a":{"x":1}},{"b":{},"c":{}}]`
	const who = " Application:web User:ann MayWrite:<nil>}"
	for _, tt := range []struct {
		why, method, path, body string
		code                    int
		want, asked             string
	}{
		{"operations of a provider", "POST", "/kubernetes/ops?clientRequestId=4f1c", ops, 200, started, `submit [{a {"x":1}} {b {}} {c {}}] {RequestID:4f1c Provider:kubernetes` + who},
		{"operations of whichever", "POST", "/ops", ops, 200, started, `submit [{a {"x":1}} {b {}} {c {}}] {RequestID: Provider:` + who},
		{"one operation", "POST", "/kubernetes/ops/scaleManifest?clientRequestId=1", `{"x":1}`, 200, started, `submit [{scaleManifest {"x":1}}] {RequestID:1 Provider:kubernetes` + who},
		{"one operation of whichever", "POST", "/ops/scaleManifest", `{}`, 200, started, `submit [{scaleManifest {}}] {RequestID: Provider:` + who},
		{"an empty segment", "POST", "//ops", ops, 200, started, `submit [{a {"x":1}} {b {}} {c {}}] {RequestID: Provider:` + who},
		{"a slash too many", "POST", "/kubernetes/ops/scaleManifest/", `{}`, 200, started, `submit [{scaleManifest {}}] {RequestID: Provider:kubernetes` + who},
		{"a slash too many, by another method", "POST", "/features/stages/", "", 405, "not supported", "GET, HEAD"},
		{"two slashes too many", "GET", "/features/stages//", "", 404, "No handler found for GET /features/stages//", ""},
		{"a task", "GET", "/task/" + taskID, "", 200, told, ""},
		{"no task", "GET", "/task/x", "", 404, "Task not found (id: x)", ""},
		{"all tasks", "GET", "/task", "", 200, "[" + told + "]", ""},
		{"its owner", "GET", "/kubernetes/task/" + taskID + "/owner", "", 200, `{"name":"vedette-0"}`, ""},
		{"no task's owner", "GET", "/kubernetes/task/x/owner", "", 404, "Task not found (id: x)", ""},
		{"the owner of another provider's", "GET", "/aws/task/x/owner", "", 500, "Supported cloudproviders are: [kubernetes]", ""},
		{"to be run again", "PATCH", "/kubernetes/task/" + taskID, `{"retry":true,"more":1}`, 200, started, "retry " + taskID + " true"},
		{"to be left", "PATCH", "/kubernetes/task/" + taskID, `{"retry":false}`, 200, started, "retry " + taskID + " false"},
		{"to be left, and is none", "PATCH", "/kubernetes/task/x", `{"retry":false}`, 404, "Task not found (id: x)", ""},
		{"to be what", "PATCH", "/kubernetes/task/x", `{}`, 400, "Patching task id: x with the provided inputs is not supported", ""},
		{"to be done by another provider", "PATCH", "/gce/task/x", `{"retry":true}`, 500, "for cloudprovider: gce", ""},
		{"run again", "POST", "/kubernetes/task/x/restart", ops, 200, `{"id":"x","resourceUri":"/task/x"}`, `restart x [{a {"x":1}} {b {}} {c {}}] {RequestID: Provider:kubernetes` + who},
		{"a saga", "POST", "/task/" + taskID + ":resume", "", 404, "No saga was found for this task id: " + taskID + " - can't resume", ""},
		{"a saga with its colon escaped", "POST", "/task/" + taskID + "%3Aresume", "", 404, "No saga was found", ""},
		{"a saga of no task", "POST", "/task/x:resume", "", 404, "Task not found (id: x)", ""},
		{"a task by another method", "POST", "/task/x", "", 405, "Request method 'POST' is not supported", "GET, HEAD"},
		{"operations by another method", "GET", "/kubernetes/ops", "", 405, "not supported", "POST"},
		{"a saga by another method", "DELETE", "/task/x:resume", "", 405, "not supported", "GET, HEAD, POST"},
		{"on demand", "POST", "/cache/kubernetes/manifest", `{"account":"prod"}`, 200, `{"cachedIdentifiersByType":{}}`, ""},
		{"what is on demand", "GET", "/cache/kubernetes/manifest?id=1", "", 200, "[]", ""},
		{"the stages", "GET", "/features/stages", "", 200, `{"name":"deployManifest","enabled":true},{"name":"deleteManifest","enabled":true}`, ""},
	} {
		t.Run(tt.why, func(t *testing.T) {
			s := &tasks{}
			url := serve(t, clouddriver.Config{Store: readtest.New(t).Store, Tasks: s})
			code, body, header := send(t, tt.method, url+tt.path, strings.NewReader(tt.body))
			allow := header.Get("Allow")
			asked := strings.Join(s.asked, "\n")
			if tt.code == http.StatusMethodNotAllowed {
				asked = allow
			}
			if code != tt.code || asked != tt.asked || !strings.Contains(body, tt.want) || strings.HasPrefix(tt.want, `{"id"`) && body != tt.want+"\n" {
				t.Errorf("%d %s, asked %q", code, body, asked)
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

// TestStages holds that there are 13, which Deck and Orca know by these names.
func TestStages(t *testing.T) {
	_, body := get(t, serve(t, clouddriver.Config{Store: readtest.New(t).Store, Tasks: &tasks{}})+"/features/stages")
	var stages []struct {
		Name    string
		Enabled bool
	}
	if err := json.Unmarshal(body, &stages); err != nil || len(stages) != 13 || !stages[12].Enabled || stages[12].Name != "resizeServerGroup" {
		t.Errorf("%v, %v", stages, err)
	}
}

// spaces is a body of any length that holds nothing.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestLargeBody(t *testing.T) {
	s := &tasks{}
	url := serve(t, clouddriver.Config{Store: readtest.New(t).Store, Tasks: s}) + "/kubernetes/ops"
	const most = 32 << 20
	fits := io.MultiReader(io.LimitReader(spaces{}, most-2), strings.NewReader("[]"))
	if code, body, _ := send(t, "POST", url, fits); code != http.StatusOK {
		t.Errorf("32 MiB: %d %s", code, body)
	}
	tooLarge := io.MultiReader(io.LimitReader(spaces{}, most-1), strings.NewReader("[]"))
	if code, body, _ := send(t, "POST", url, tooLarge); code != http.StatusRequestEntityTooLarge || !strings.Contains(body, "32 MiB") {
		t.Errorf("more: %d %s", code, body)
	}
}

// keeper lets nobody write.
type keeper struct{ t *testing.T }

func (k keeper) CheckAccount(_ context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error {
	if c.User != "ann" || account != "prod" || access != authorize.Write {
		k.t.Errorf("asked for %s of %s in %s", access, c.User, account)
	}
	return vedette.Errorf(vedette.Denied, "Access is denied")
}

func (keeper) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return nil, nil
}

func (keeper) CheckApplication(context.Context, authorize.Caller, string, authorize.Access) error {
	return nil
}

// TestSubmitDenied holds that an operation needs its account's write permission,
// and that Orca is told of a lack of it as of any other fault.
func TestSubmitDenied(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", "pods")
	s := task.New(task.Config{Store: w.Store, Accounts: w.Store})
	url := serve(t, clouddriver.Config{Store: w.Store, Tasks: s, Authority: keeper{t}})
	code, body, _ := send(t, "POST", url+"/kubernetes/ops", strings.NewReader(`[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}]`))
	if code != http.StatusBadRequest || !strings.Contains(body, `"message":"Validation Failed","errors":["Access denied to account prod"]`) {
		t.Errorf("%d %s", code, body)
	}
}

// TestPagesOperateNothing keeps pages of other sites from using a browser's way to
// a server that trusts its own machine.
func TestPagesOperateNothing(t *testing.T) {
	began := &tasks{}
	url := serve(t, clouddriver.Config{Store: readtest.New(t).Store, Tasks: began})
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
			t.Errorf("%s: %s was answered with %d", header, value, response.StatusCode)
		}
	}
	if len(began.asked) != 0 {
		t.Errorf("asked %q", began.asked)
	}
}
