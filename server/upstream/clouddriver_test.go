package upstream

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/task"
)

// doneDispatcher is a cluster that accepts everything, and counts it.
type doneDispatcher struct{ executed atomic.Int64 }

func (d *doneDispatcher) Execute(_ context.Context, op vedette.Operation) vedette.Outcome {
	d.executed.Add(1)
	return vedette.Outcome{ID: op.ID, State: vedette.Done, Status: http.StatusOK}
}

// otherClouddriver has the account theirs, and one task that ends at its third poll.
type otherClouddriver struct {
	ended chan struct{} // closed when the task has ended

	mu        sync.Mutex
	polls     int
	submitted []string
}

func (o *otherClouddriver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "GET /credentials":
		answerJSON(http.StatusOK, `[{"name":"agents","type":"kubernetes"},{"name":"theirs","type":"aws"}]`)(w, r)
	case "GET /credentials/theirs":
		answerJSON(http.StatusOK, `{"name":"theirs","type":"aws"}`)(w, r)
	case "POST /kubernetes/ops":
		var body json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body)
		o.submitted = append(o.submitted, r.Header.Get("X-Spinnaker-User")+" "+r.URL.Query().Get("clientRequestId")+" "+string(body))
		answerJSON(http.StatusOK, `{"id":"other task","resourceUri":"/task/other%20task"}`)(w, r)
	case "GET /task/other task":
		if o.polls++; o.polls == 3 {
			defer close(o.ended)
		}
		answerJSON(http.StatusOK, map[bool]string{
			false: `{"status":{"completed":false},"history":[{"phase":"K8S","status":"begin"}],"resultObjects":[]}`,
			true:  `{"status":{"completed":true,"failed":false,"status":"end"},"history":[{"phase":"K8S","status":"begin"},{"phase":"K8S","status":"end"}],"resultObjects":[{"manifests":[],"n":1}]}`,
		}[o.polls > 2])(w, r)
	default:
		answerJSON(http.StatusNotFound, `{"status":404,"message":"theirs"}`)(w, r)
	}
}

// newRealWorld is a server with a store, tasks and Clouddriver's API, in front of another
// Clouddriver.
func newRealWorld(t *testing.T, other http.Handler) (*world, *doneDispatcher) {
	fixture := readtest.New(t)
	fixture.Account(ourAccount, "pods", "deployments")
	upstreamServer := httptest.NewServer(other)
	t.Cleanup(upstreamServer.Close)
	remote, err := NewRemote(Config{BaseURL: upstreamServer.URL}, accountlist.NewCache(fixture.Store), fixture.Store)
	if err != nil {
		t.Fatal(err)
	}
	dispatcher := &doneDispatcher{}
	tasks := task.New(task.Config{Server: "vedette-0", Store: fixture.Store, Accounts: fixture.Store, Dispatch: dispatcher})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- tasks.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	api := clouddriver.New(clouddriver.Config{Store: fixture.Store, Tasks: tasks, Remote: remote.For})
	server := httptest.NewServer(New(remote, api))
	t.Cleanup(server.Close)
	return &world{url: server.URL}, dispatcher
}

// TestCredentialsOfBoth reads the accounts of a real API and another Clouddriver.
func TestCredentialsOfBoth(t *testing.T) {
	w, _ := newRealWorld(t, &otherClouddriver{})
	response, body := w.send(t, http.MethodGet, "/credentials?expand=true", "", "Accept-Encoding", "identity")
	var accounts []struct{ Name, Type, Environment string }
	if err := json.Unmarshal([]byte(body), &accounts); err != nil || response.StatusCode != http.StatusOK || len(accounts) != 2 ||
		accounts[0].Environment != ourAccount || accounts[1].Type != "aws" {
		t.Errorf("got %d %s, want the account of the agent and the other one", response.StatusCode, body)
	}
	for path, want := range map[string]string{"/credentials/agents": `"name":"agents"`, "/credentials/theirs": `"type":"aws"`,
		"/health": `"upstream"`} {
		if _, body := w.send(t, http.MethodGet, path, ""); !strings.Contains(body, want) {
			t.Errorf("%s: got %s, want %s", path, body, want)
		}
	}
}

// TestMixedOperationsBecomeOneTask sends operations of both sides, and polls the task as Orca does.
func TestMixedOperationsBecomeOneTask(t *testing.T) {
	other := &otherClouddriver{ended: make(chan struct{})}
	w, _ := newRealWorld(t, other)
	scale := func(account string) string {
		return `{"scaleManifest":{"account":"` + account + `","manifestName":"deployment web","location":"shop","replicas":3}}`
	}
	_, body := w.send(t, http.MethodPost, "/kubernetes/ops?clientRequestId=r-1", "["+scale(ourAccount)+","+scale(theirAccount)+"]")
	var ref struct{ ID string }
	if err := json.Unmarshal([]byte(body), &ref); err != nil || ref.ID == "" {
		t.Fatalf("got %s, want a task", body)
	}
	var view struct {
		Status        struct{ Completed, Failed bool }
		History       []struct{ Phase, Status string }
		ResultObjects []map[string]any
	}
	<-other.ended
	deadline := time.Now().Add(time.Minute)
	for !view.Status.Completed && time.Now().Before(deadline) {
		_, body = w.send(t, http.MethodGet, "/task/"+ref.ID, "")
		if err := json.Unmarshal([]byte(body), &view); err != nil {
			t.Fatalf("got %s: %v", body, err)
		}
	}
	var phases []string
	for _, line := range view.History {
		phases = append(phases, line.Phase+": "+line.Status)
	}
	text := strings.Join(phases, "\n")
	if !view.Status.Completed || view.Status.Failed || strings.Index(text, "SCALE_KUBERNETES_MANIFEST") > strings.Index(text, "K8S: begin") ||
		!strings.Contains(text, "K8S: end") || len(view.ResultObjects) != 1 {
		t.Errorf("got %s, want a task that tells about both", body)
	}
	if _, body := w.send(t, http.MethodGet, "/task/other%20task", ""); !strings.Contains(body, `"end"`) {
		t.Errorf("the other Clouddriver's task: got %s", body)
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	if want := "ann@example.com r-1-1 [" + scale(theirAccount) + "]"; len(other.submitted) != 1 || other.submitted[0] != want {
		t.Errorf("the other Clouddriver got %q, want %q", other.submitted, want)
	}
}

// TestMixedOperationsWithAnUnknownAccount checks that nothing of a list runs if neither side has one of its accounts.
func TestMixedOperationsWithAnUnknownAccount(t *testing.T) {
	other := &otherClouddriver{ended: make(chan struct{})}
	w, dispatcher := newRealWorld(t, other)
	scale := func(account string) string {
		return `{"scaleManifest":{"account":"` + account + `","manifestName":"deployment web","location":"shop","replicas":3}}`
	}
	for _, list := range []string{scale(ourAccount) + "," + scale("unknown"), scale(theirAccount) + "," + scale(ourAccount) + "," + scale("unknown")} {
		response, body := w.send(t, http.MethodPost, "/kubernetes/ops", "["+list+"]")
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(body, "unknown") {
			t.Errorf("got %d %s, want 400", response.StatusCode, body)
		}
	}
	if n := dispatcher.executed.Load(); n > 0 || len(other.submitted) > 0 {
		t.Errorf("got %d operations of this server and %q, want nothing run", n, other.submitted)
	}
}

// TestUpstreamErrorsAreReported checks how errors of the upstream Clouddriver are reported.
func TestUpstreamErrorsAreReported(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		kind   vedette.ErrorKind
		want   string
	}{
		{"validation", answerJSON(http.StatusBadRequest, `{"message":"Validation Failed","errors":["a.empty"]}`), vedette.Invalid, `Validation Failed: ["a.empty"]`},
		{"access", answerJSON(http.StatusForbidden, `{"message":"Access is denied"}`), vedette.Denied, "Access is denied"},
		{"too many requests", answerJSON(http.StatusTooManyRequests, `{}`), vedette.Unavailable, "429"},
		{"its gateway", answerJSON(http.StatusBadGateway, `<html>`), vedette.Unavailable, "502"},
		{"garbage", answerJSON(http.StatusOK, `[]`), vedette.Unavailable, reasonInvalid},
		{"no task", answerJSON(http.StatusOK, `{}`), vedette.Unavailable, "named no task"},
		{"without an end", endless, vedette.Unavailable, reasonTooLarge},
		{"half an answer", rawAnswer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), vedette.Unavailable, reasonCutOff},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.theirs.answer = tt.answer
			remote := &callerRemote{w.remote, "kubernetes", http.Header{}}
			_, err := remote.Submit(t.Context(), []task.Request{{Name: "x", Description: json.RawMessage(`{}`)}}, "r")
			if vedette.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %s %v, want %s with %q", vedette.KindOf(err), err, tt.kind, tt.want)
			}
		})
	}
}
