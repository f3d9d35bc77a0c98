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

// blockingDispatcher is a cluster that does not answer until an operation is canceled.
type blockingDispatcher struct{}

func (blockingDispatcher) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	<-ctx.Done()
	return vedette.Outcome{ID: op.ID, State: vedette.Lost, Status: 504, Message: "given up"}
}

// TestOnlyPermittedUsersSeeTasks checks who may read and cancel a task: the submitter and users with
// READ of its account may read it, and only users with WRITE may cancel it.
func TestOnlyPermittedUsersSeeTasks(t *testing.T) {
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
	t.Cleanup(func() { _ = taskService.Cancel(context.WithoutCancel(t.Context()), id, false) }) // an error means that it has ended already
	for _, tt := range []struct {
		name         string
		grants       []string
		user, method string
		path, body   string
		code         int
		want         string
	}{
		{"the submitter reads it without permissions", nil, "ann", "GET", "/task/" + id, "", 200, id},
		{"and finds it in the list", nil, "ann", "GET", "/task", "", 200, id},
		{"a user with READ reads it", []string{"prod READ"}, "dev", "GET", "/task/" + id, "", 200, id},
		{"and finds it in the list", []string{"prod READ"}, "dev", "GET", "/task", "", 200, id},
		{"others cannot read it", []string{"lab READ"}, "dev", "GET", "/task/" + id, "", 403, "Access is denied"},
		{"nor find it in the list", []string{"lab READ"}, "dev", "GET", "/task", "", 200, "[]\n"},
		{"nor read its owner", []string{"lab READ"}, "dev", "GET", "/kubernetes/task/" + id + "/owner", "", 403, "Access is denied"},
		{"nor resume it", []string{"lab READ"}, "dev", "POST", "/task/" + id + ":resume", "", 403, "Access is denied"},
		{"anonymous users cannot read it", nil, "", "GET", "/task/" + id, "", 403, "Access is denied"},
		{"READ is not enough to cancel it", []string{"prod READ"}, "dev", "PATCH", "/kubernetes/task/" + id, `{"retry":false}`, 403, "Access is denied"},
		{"the submitter cannot cancel it", nil, "ann", "PATCH", "/kubernetes/task/" + id, `{"retry":true}`, 403, "Access is denied"},
		{"and it is still running", []string{"prod READ"}, "dev", "GET", "/task/" + id, "", 200, `"completed":false`},
		{"a user with WRITE cancels it", []string{"prod WRITE"}, "dev", "PATCH", "/kubernetes/task/" + id, `{"retry":true}`, 200, id},
		{"and it is canceled", []string{"prod READ"}, "dev", "GET", "/task/" + id, "", 200, `"retryable":true`},
		{"without WRITE it cannot be restarted with other operations", []string{"prod READ"}, "dev", "POST", "/kubernetes/task/" + id + "/restart", `[]`, 403, "Access is denied"},
		{"nor can its id be found with its request id", []string{"prod READ"}, "dev", "POST", "/kubernetes/task/" + id + "/restart", scale, 400, "Access denied to account prod"},
	} {
		if code, body := call(tt.grants, tt.user, tt.method, tt.path, tt.body); code != tt.code || !strings.Contains(body, tt.want) || tt.want == "[]\n" && body != tt.want {
			t.Errorf("%s: got %d %s, want %d and %q", tt.name, code, body, tt.code, tt.want)
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
