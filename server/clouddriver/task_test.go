package clouddriver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/task"
)

// blockingDispatcher is a cluster that answers nothing until an operation is given up.
type blockingDispatcher struct{}

func (blockingDispatcher) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	<-ctx.Done()
	return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: 504, Message: "given up"}
}

// TestTaskAuthorization holds who may see and who may end a task: its submitter sees
// it, others who may READ its account do, and only who may WRITE it ends it.
func TestTaskAuthorization(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", "pods")
	taskService := task.New(task.Config{Store: w.Store, Accounts: w.Store, Dispatch: blockingDispatcher{}})
	serveFor := func(g ...string) http.Handler {
		return clouddriver.New(clouddriver.Config{Store: w.Store, Tasks: taskService, Authorizer: grants(g)})
	}
	call := func(g []string, user, method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("X-SPINNAKER-USER", user)
		recorder := httptest.NewRecorder()
		serveFor(g...).ServeHTTP(recorder, r)
		return recorder.Code, recorder.Body.String()
	}
	const scale = `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}]`
	id, err := taskService.Submit(t.Context(), parseRequests(t, scale), task.Options{User: "ann", Provider: "kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taskService.Cancel(context.WithoutCancel(t.Context()), id, false) }) // it has ended then, one way or the other
	for _, tt := range []struct {
		why          string
		grants       []string
		user, method string
		path, body   string
		code         int
		want         string
	}{
		{"the submitter sees it, though nothing may be asked", nil, "ann", "GET", "/task/" + id, "", 200, id},
		{"and lists it", nil, "ann", "GET", "/task", "", 200, id},
		{"who may read the account sees it", []string{"prod READ"}, "dev", "GET", "/task/" + id, "", 200, id},
		{"and lists it", []string{"prod READ"}, "dev", "GET", "/task", "", 200, id},
		{"others don't see it", []string{"lab READ"}, "dev", "GET", "/task/" + id, "", 403, "Access is denied"},
		{"nor list it", []string{"lab READ"}, "dev", "GET", "/task", "", 200, "[]\n"},
		{"nor see its owner", []string{"lab READ"}, "dev", "GET", "/kubernetes/task/" + id + "/owner", "", 403, "Access is denied"},
		{"nor whether it can be resumed", []string{"lab READ"}, "dev", "POST", "/task/" + id + ":resume", "", 403, "Access is denied"},
		{"without a name neither", nil, "", "GET", "/task/" + id, "", 403, "Access is denied"},
		{"to read is not to end", []string{"prod READ"}, "dev", "PATCH", "/kubernetes/task/" + id, `{"retry":false}`, 403, "Access is denied"},
		{"nor is to have submitted", nil, "ann", "PATCH", "/kubernetes/task/" + id, `{"retry":true}`, 403, "Access is denied"},
		{"and it goes on", []string{"prod READ"}, "dev", "GET", "/task/" + id, "", 200, `"completed":false`},
		{"who may write ends it", []string{"prod WRITE"}, "dev", "PATCH", "/kubernetes/task/" + id, `{"retry":true}`, 200, id},
		{"and it has ended", []string{"prod READ"}, "dev", "GET", "/task/" + id, "", 200, `"retryable":true`},
		{"who may not write can't run something else under its name", []string{"prod READ"}, "dev", "POST", "/kubernetes/task/" + id + "/restart", `[]`, 403, "Access is denied"},
		{"nor can its name be had by its request", []string{"prod READ"}, "dev", "POST", "/kubernetes/task/" + id + "/restart", scale, 400, "Access denied to account prod"},
	} {
		if code, body := call(tt.grants, tt.user, tt.method, tt.path, tt.body); code != tt.code || !strings.Contains(body, tt.want) || tt.want == "[]\n" && body != tt.want {
			t.Errorf("%s: %d %s", tt.why, code, body)
		}
	}
}

func parseRequests(t *testing.T, body string) []task.Request {
	t.Helper()
	requests, err := task.ParseRequests([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return requests
}
