package task_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/task"
)

// fakeCluster executes operations as a test defines.
type fakeCluster struct {
	mu  sync.Mutex
	ops []vedette.Operation
	do  func(ctx context.Context, op vedette.Operation) vedette.Outcome // nil: done
}

func (c *fakeCluster) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	c.mu.Lock()
	c.ops = append(c.ops, op)
	do := c.do
	c.mu.Unlock()
	if do == nil {
		return doneOutcome(op)
	}
	return do(ctx, op)
}

func (c *fakeCluster) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ops)
}

// doneOutcome is the outcome of a cluster that accepts everything.
func doneOutcome(op vedette.Operation) vedette.Outcome {
	out := vedette.Outcome{ID: op.ID, State: vedette.Done, Status: http.StatusOK}
	switch a := op.Args.(type) {
	case vedette.ApplyArgs:
		out.Objects = []json.RawMessage{a.Manifest}
	case vedette.DeleteArgs:
		out.Keys = []vedette.Key{{Kind: vedette.ParseKind(a.Kind), Namespace: a.Namespace, Name: a.Name}}
	case vedette.VersionArgs:
		out.Result = json.RawMessage(`{"number":3,"latest":"web-v002"}`)
	case vedette.DiscoverArgs:
		out.Result = json.RawMessage(`{"kinds":[{"kind":"Namespace","version":"v1","plural":"namespaces"},{"kind":"CronTab","group":"stable.example.com","version":"v1","plural":"crontabs","namespaced":true}]}`)
	}
	return out
}

// fakeAccounts are the accounts of the tests.
type fakeAccounts struct{}

func (fakeAccounts) Account(_ context.Context, name vedette.AccountName) (registry.Account, error) {
	p, ok := map[vedette.AccountName]vedette.Properties{
		"prod":    {CustomResources: []vedette.CustomResource{{KubernetesKind: "CronTab.stable.example.com", DeployPriority: "60", Versioned: true}}},
		"loud":    {Debug: true},
		"narrow":  {Namespaces: []string{"shop"}},
		"without": {OmitNamespaces: []string{"kube-system"}},
	}[name]
	if !ok {
		return registry.Account{}, registry.ErrNoAccount
	}
	return registry.Account{Account: vedette.Account{Name: name, Properties: p}}, nil
}

func (fakeAccounts) Feeds(context.Context, ...vedette.AccountName) ([]read.FeedStatus, error) {
	feed := func(group, kind string, namespaced bool) read.FeedStatus {
		return read.FeedStatus{Resource: vedette.Resource{Kind: vedette.Kind{Group: group, Name: kind}, Namespaced: namespaced}}
	}
	return []read.FeedStatus{feed("apps", "Deployment", true), feed("apps", "ReplicaSet", true), feed("", "Service", true)}, nil
}

// testServer is one of several servers with one database.
type testServer struct {
	*task.Tasks
	cluster *fakeCluster
	log     *bytes.Buffer
	rest    http.Handler
}

func newServer(cfg task.Config) *testServer {
	s := &testServer{cluster: &fakeCluster{}, log: &bytes.Buffer{}}
	if cfg.Server == "" {
		cfg.Server = "vedette-0"
	}
	if cfg.Store == nil {
		cfg.Store = newMemoryStore()
	}
	if cfg.Accounts == nil {
		cfg.Accounts = fakeAccounts{}
	}
	cfg.Dispatch = s.cluster
	cfg.Log = slog.New(slog.NewTextHandler(&lockedWriter{b: s.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.Tasks = task.New(cfg)
	s.rest = clouddriver.New(clouddriver.Config{Tasks: s.Tasks, Log: cfg.Log})
	return s
}

// lockedWriter is a writer for concurrent use.
type lockedWriter struct {
	mu sync.Mutex
	b  *bytes.Buffer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// request sends a request as Orca would.
func (s *testServer) request(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("X-SPINNAKER-USER", "ann@example.com")
	r.Header.Set("X-SPINNAKER-ACCOUNTS", "prod, narrow")
	r.Header.Set("X-SPINNAKER-APPLICATION", "web")
	w := httptest.NewRecorder()
	s.rest.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// post starts a task and returns its ID.
func (s *testServer) post(t *testing.T, path, body string) string {
	t.Helper()
	code, response := s.request(t, http.MethodPost, path, body)
	var started struct{ ID, ResourceURI string }
	if err := json.Unmarshal([]byte(response), &started); err != nil || code != http.StatusOK || started.ResourceURI != "/task/"+started.ID {
		t.Fatalf("POST %s: got %d %s, want %d", path, code, response, http.StatusOK)
	}
	return started.ID
}

// taskView is the view of a task that Orca reads.
type taskView struct {
	ID     string
	Status struct {
		Phase, Status                          string
		Complete, Completed, Failed, Retryable bool
	}
	History       []struct{ Phase, Status string }
	ResultObjects []struct {
		Type, Operation, Message, Cause string
		ManifestNamesByNamespace        map[string][]string
	}
}

func (s *testServer) getTask(t *testing.T, id string) taskView {
	t.Helper()
	code, response := s.request(t, http.MethodGet, "/task/"+id, "")
	var v taskView
	if err := json.Unmarshal([]byte(response), &v); err != nil || code != http.StatusOK {
		t.Fatalf("GET /task/%s: got %d %s, want %d", id, code, response, http.StatusOK)
	}
	return v
}

var ulidPattern = regexp.MustCompile(`01[0-9A-HJKMNP-TV-Z]{24}|00[0-9A-HJKMNP-TV-Z]{24}`)

// scaleWeb is the simplest operation.
const scaleWeb = `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}]`
