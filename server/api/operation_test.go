package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/history"
)

// fakeDispatcher executes operations as a test defines.
type fakeDispatcher struct {
	mu       sync.Mutex
	received []vedette.Operation
	do       func(ctx context.Context, op vedette.Operation) vedette.Outcome
}

func (a *fakeDispatcher) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	a.mu.Lock()
	a.received = append(a.received, op)
	a.mu.Unlock()
	out := vedette.Outcome{State: vedette.Done, Status: 200}
	if a.do != nil {
		out = a.do(ctx, op)
	}
	out.ID = op.ID
	if out.ID == "" {
		out.ID = "01J00000000000000000000000"
	}
	return out
}

func (a *fakeDispatcher) operations() []vedette.Operation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]vedette.Operation(nil), a.received...)
}

// outcome is the response to a POST, either an outcome or an error.
type outcome struct {
	ID, Account, Verb, State, Reason, Message string
	Status                                    int
	Keys                                      []struct{ Kind, Namespace, Name, UID string }
	Objects                                   []json.RawMessage
	Result                                    json.RawMessage
	Repeated, DryRun, Unchanged               bool
	Warnings                                  []string
	Error                                     struct{ Kind, Message string }
}

// post sends an operation, and validates request and response against openapi.yaml.
func (w *validatingClient) post(body string, headers ...string) (int, outcome) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/vedette/v1/operations", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.validateResponse(r, response, raw)
	if response.StatusCode == http.StatusOK {
		w.checkRequest(r, body)
	}
	var out outcome
	if err := json.Unmarshal(raw, &out); err != nil {
		w.t.Fatalf("invalid JSON: %v: %s", err, raw)
	}
	return response.StatusCode, out
}

// checkRequest checks that openapi.yaml allows a request that the server accepted.
func (w *validatingClient) checkRequest(r *http.Request, body string) {
	w.t.Helper()
	described := r.Clone(r.Context())
	described.URL.Scheme, described.URL.Host = "", ""
	described.Body = io.NopCloser(strings.NewReader(body))
	route, params, err := w.router.FindRoute(described)
	if err == nil {
		err = openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{Request: described, PathParams: params, Route: route})
	}
	if err != nil {
		w.t.Errorf("openapi.yaml does not allow %s: %v", body, err)
	}
}

func serveOperations(t testing.TB, a *fakeDispatcher) *validatingClient {
	cfg := configOf(shopWorld(t))
	cfg.Dispatch = a
	return serve(t, cfg)
}

// TestRequestsBecomeArguments checks the arguments that requests are parsed to.
func TestRequestsBecomeArguments(t *testing.T) {
	a := &fakeDispatcher{}
	w := serveOperations(t, a)
	web := vedette.Target{Kind: "deployment", Namespace: "shop", Name: "web"}
	const target = `"kind":"deployment","namespace":"shop","name":"web"`
	for _, tt := range []struct {
		body string
		want vedette.Args
	}{
		{`"verb":"get",` + target, vedette.GetArgs{Target: web}},
		{`"verb":"get","kind":"Job.batch","apiVersion":"batch/v1","name":"x"`, vedette.GetArgs{Target: vedette.Target{Kind: "Job.batch", APIVersion: "batch/v1", Name: "x"}}},
		{`"verb":"list","kind":"po","labelSelector":"app=web","fieldSelector":"status.phase=Running"`,
			vedette.ListArgs{Target: vedette.Target{Kind: "po"}, LabelSelector: "app=web", FieldSelector: "status.phase=Running"}},
		{`"verb":"apply","manifest":{"kind":"ConfigMap","metadata":{"name":"c"}},"namespace":"shop","strategy":"server-side","fieldValidation":"ignore","compare":true`,
			vedette.ApplyArgs{Manifest: []byte(`{"kind":"ConfigMap","metadata":{"name":"c"}}`), Namespace: "shop", Strategy: vedette.StrategyServerSide, Fields: vedette.FieldValidationIgnore, Compare: true}},
		{`"verb":"apply","manifest":"# mine\n---\nkind: ConfigMap\nmetadata:\n  name: c\n---\n"`, vedette.ApplyArgs{Manifest: []byte(`{"kind":"ConfigMap","metadata":{"name":"c"}}`)}},
		{`"verb":"apply","manifest":{"kind":"Job","metadata":{"generateName":"run-"}}`,
			vedette.ApplyArgs{Manifest: []byte(`{"kind":"Job","metadata":{"generateName":"run-"}}`), Strategy: vedette.StrategyCreateOnly}},
		{`"verb":"patch",` + target + `,"type":"json","patch":[{"op":"remove","path":"/a"}]`,
			vedette.PatchArgs{Target: web, Type: vedette.JSONPatch, Patch: []byte(`[{"op":"remove","path":"/a"}]`)}},
		{`"verb":"patch",` + target + `,"patch":"spec: {}"`, vedette.PatchArgs{Target: web, Patch: []byte("spec: {}")}},
		{`"verb":"delete",` + target + `,"propagation":"orphan","graceSeconds":0,"missingOk":true,"noWait":true`,
			vedette.DeleteArgs{Target: web, Propagation: "orphan", GraceSeconds: new(int64(0)), MissingOK: true, NoWait: true}},
		{`"verb":"delete","kind":"po","labelSelector":"a=b"`, vedette.DeleteArgs{Target: vedette.Target{Kind: "po"}, LabelSelector: "a=b"}},
		{`"verb":"delete","kind":"po","fieldSelector":"status.phase=Failed","allNamespaces":true`,
			vedette.DeleteArgs{Target: vedette.Target{Kind: "po"}, FieldSelector: "status.phase=Failed", AllNamespaces: true}},
		{`"verb":"delete","kind":"po","namespace":"shop","all":true`, vedette.DeleteArgs{Target: vedette.Target{Kind: "po", Namespace: "shop"}, All: true}},
		{`"verb":"prune","labelSelector":"app=web","kinds":["core/v1/Pod"],"namespaces":["shop","default"],"keep":["u1"],"propagation":"orphan","graceSeconds":3`,
			vedette.PruneArgs{LabelSelector: "app=web", Kinds: []string{"core/v1/Pod"}, Namespaces: []string{"shop", "default"}, Keep: []string{"u1"}, Propagation: "orphan", GraceSeconds: new(int64(3))}},
		{`"verb":"prune","all":true`, vedette.PruneArgs{All: true}},
		{`"verb":"scale",` + target + `,"replicas":0`, vedette.ScaleArgs{Target: web}},
		{`"verb":"restart",` + target, vedette.RestartArgs{Target: web}},
		{`"verb":"pause",` + target, vedette.PauseArgs{Target: web}},
		{`"verb":"resume",` + target, vedette.ResumeArgs{Target: web}},
		{`"verb":"undo",` + target + `,"revision":3`, vedette.UndoArgs{Target: web, Revision: 3}},
		{`"verb":"undo",` + target + `,"revisionsBack":2`, vedette.UndoArgs{Target: web, RevisionsBack: 2}},
		{`"verb":"history",` + target, vedette.HistoryArgs{Target: web}},
		{`"verb":"status",` + target, vedette.StatusArgs{Target: web}},
		{`"verb":"events",` + target, vedette.EventsArgs{Target: web}},
		{`"verb":"recache",` + target, vedette.RecacheArgs{Target: web}},
		{`"verb":"metrics","namespace":"shop"`, vedette.MetricsArgs{Namespace: "shop"}},
		{`"verb":"discover"`, vedette.DiscoverArgs{}},
		{`"verb":"apply","manifest":{"kind":"ConfigMap","metadata":{"name":"c"}},"strategy":"replace","fieldManager":"me","mustExist":true`,
			vedette.ApplyArgs{Manifest: []byte(`{"kind":"ConfigMap","metadata":{"name":"c"}}`), Strategy: vedette.StrategyReplace, FieldManager: "me", MustExist: true}},
		{`"verb":"patch",` + target + `,"patch":"spec: {}","fieldManager":"me"`, vedette.PatchArgs{Target: web, Patch: []byte("spec: {}"), FieldManager: "me"}},
		{`"verb":"access","kind":"po","namespace":"shop","name":"p","action":"get","subresource":"log"`,
			vedette.AccessArgs{Target: vedette.Target{Kind: "po", Namespace: "shop", Name: "p"}, Action: "get", Subresource: "log"}},
		{`"verb":"access","path":"/metrics","action":"get"`, vedette.AccessArgs{Path: "/metrics", Action: "get"}},
		{`"verb":"access","list":true,"namespace":"shop"`, vedette.AccessArgs{Target: vedette.Target{Namespace: "shop"}, List: true}},
		{`"verb":"version","manifest":{"kind":"ConfigMap","metadata":{"name":"c"}}`, vedette.VersionArgs{Manifest: []byte(`{"kind":"ConfigMap","metadata":{"name":"c"}}`)}},
	} {
		a.received = nil
		status, out := w.post(`{"account":"dev",` + tt.body + `}`)
		if status != 200 || len(a.received) != 1 || out.Verb != string(tt.want.Verb()) || out.Account != "dev" || out.State != "done" || out.ID == "" {
			t.Errorf("%s: got %d %+v", tt.body, status, out)
			continue
		}
		if got, want := encodeArgs(t, a.received[0].Args), encodeArgs(t, tt.want); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.body, got, want)
		}
	}
}

// encodeArgs encodes arguments for comparison.
func encodeArgs(t *testing.T, args vedette.Args) string {
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return string(args.Verb()) + " " + string(b)
}

// TestInvalidOperationsAreRejected checks which requests are rejected before anything is
// executed, and the errors.
func TestInvalidOperationsAreRejected(t *testing.T) {
	a := &fakeDispatcher{}
	w := serveOperations(t, a)
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{`[]`, 400, "must be a JSON object"},
		{`{"account":`, 400, "it is broken at byte 10"},
		{`{}`, 400, "has no verb"},
		{`{"account":"dev","verb":"aply"}`, 400, "did you mean apply?"},
		{`{"account":"dev","verb":"logs"}`, 400, "GET /vedette/v1/logs"},
		{`{"account":"dev","verb":"scale","kind":"deploy","name":"w","replica":1}`, 400, `takes no "replica": did you mean replicas?`},
		{`{"account":"dev","verb":"get","kind":"deploy","name":"w","manifest":{}}`, 400, `takes no "manifest": it takes account, verb`},
		{`{"account":"dev","verb":"scale","kind":"deploy","name":"w"}`, 400, "needs the field replicas"},
		{`{"account":"dev","verb":"scale","kind":"deploy","name":"w","replicas":"3"}`, 400, "the field replicas must be a whole number"},
		{`{"account":"dev","verb":"scale","kind":"deploy","name":"w","replicas":-3}`, 400, "can't be negative"},
		{`{"verb":"get","kind":"deploy","name":"w"}`, 400, "needs the field account"},
		{`{"account":"prod-2","verb":"get","kind":"deploy","name":"w"}`, 404, `there is no account "prod-2": did you mean prod-1 or prod-3?`},
		{`{"account":"dev","verb":"delete","kind":"po"}`, 400, "it would delete every po"},
		{`{"account":"dev","verb":"delete","kind":"po","allNamespaces":true}`, 400, "it would delete every po"},
		{`{"account":"dev","verb":"delete","kind":"po","fieldSelector":" "}`, 400, "it would delete every po"},
		{`{"account":"dev","verb":"delete","kind":"po","all":true,"labelSelector":"a=b"}`, 400, "all, or a selector"},
		{`{"account":"dev","verb":"delete","kind":"po","all":true,"name":"x"}`, 400, "takes a name, or"},
		{`{"account":"dev","verb":"delete","kind":"po","all":true,"allNamespaces":true,"namespace":"x"}`, 400, "a namespace or allNamespaces"},
		{`{"account":"dev","verb":"prune"}`, 400, "a labelSelector or all"},
		{`{"account":"dev","verb":"prune","all":true,"labelSelector":"a=b"}`, 400, "exactly one of them"},
		{`{"account":"dev","verb":"prune","all":true,"namespaces":[""]}`, 400, "an empty name"},
		{`{"account":"dev","verb":"prune","all":true,"kinds":"x"}`, 400, "must be a list of texts"},
		{`{"account":"dev","verb":"get","kind":"po","name":"x","dryRun":true}`, 400, `takes no "dryRun"`},
		{`{"account":"dev","verb":"delete","kind":"po","labelSelector":"==="}`, 400, "cannot be read"},
		{`{"account":"dev","verb":"delete","kind":"po","name":"x","propagation":"never"}`, 400, "must be one of foreground, background, orphan"},
		{`{"account":"dev","verb":"undo","kind":"deploy","name":"w","revision":1,"revisionsBack":1}`, 400, "only one of them"},
		{`{"account":"dev","verb":"get","kind":"deploy","name":"w","timeout":"9"}`, 400, "must be a duration, for example 30s"},
		{`{"account":"dev","verb":"get","kind":"deploy","name":"w","timeout":"99h"}`, 400, "to 1h"},
		{`{"account":"dev","verb":"restart","kind":"deploy","name":"w","id":"7"}`, 400, "is not a ULID"},
		{`{"account":"dev","verb":"get","kind":"deploy","name":"w","id":"01J00000000000000000000000"}`, 400, "takes no id"},
		{`{"account":"dev","verb":"apply","manifest":[]}`, 400, "must be one object"},
		{`{"account":"dev","verb":"apply","manifest":""}`, 400, "needs the field manifest"},
		{`{"account":"dev","verb":"apply","manifest":"# nothing"}`, 400, "the manifest is empty"},
		{`{"account":"dev","verb":"apply","manifest":"a: b\n---\nc: d"}`, 400, "contains 2 documents; send one operation for each"},
		{`{"account":"dev","verb":"apply","manifest":"kind: Secret\n  data: hunter2"}`, 400, "look at line 2"},
		{`{"account":"dev","verb":"apply","manifest":{"kind":"List","items":[]}}`, 400, "send one operation for each item"},
		{`{"account":"dev","verb":"apply","manifest":{"kind":"X","metadata":{"name":7}}}`, 400, "must be strings"},
		{`{"account":"dev","verb":"apply","manifest":{"kind":"X"},"strategy":"often"}`, 400, "must be one of client-side"},
		{`{"account":"dev","verb":"apply","manifest":{"kind":"X"},"mustExist":true}`, 400, "mustExist needs the strategy replace"},
		{`{"account":"dev","verb":"apply","manifest":{"kind":"X"},"fieldManager":"me"}`, 400, "fieldManager needs the strategy create or replace"},
		{`{"account":"dev","verb":"access"}`, 400, "needs an action"},
		{`{"account":"dev","verb":"access","action":"get"}`, 400, "needs a kind or a path"},
		{`{"account":"dev","verb":"access","action":"get","kind":"po","path":"/x"}`, 400, "exactly one of them"},
		{`{"account":"dev","verb":"access","action":"get","path":"/x","namespace":"shop"}`, 400, "a path, or what selects objects"},
		{`{"account":"dev","verb":"access","action":"get","kind":"po","namespace":"shop","allNamespaces":true}`, 400, "a namespace or allNamespaces"},
		{`{"account":"dev","verb":"access","list":true,"action":"get"}`, 400, "list and a namespace, or an action"},
		{`{"account":"dev","verb":"access","action":"get","kind":"po","dryRun":true}`, 400, `takes no "dryRun"`},
		{`{"account":"dev","verb":"apply","manifest":{"kind":"X"},"fieldValidation":"often"}`, 400, "must be one of strict, warn, ignore"},
		{`{"account":"dev","verb":"apply","manifest":"` + strings.Repeat("x", 17<<20) + `"}`, 413, "limit of 16777216 bytes"},
	} {
		status, out := w.post(tt.body)
		if status != tt.status || !strings.Contains(out.Error.Message, tt.want) || strings.Contains(out.Error.Message, "hunter2") {
			t.Errorf("%.100s: got %d %q, want %d %q", tt.body, status, out.Error.Message, tt.status, tt.want)
		}
	}
	if n := len(a.operations()); n > 0 {
		t.Errorf("got %d operations", n)
	}
	if status, out := serve(t, configOf(shopWorld(t))).post(`{"account":"dev","verb":"discover"}`); status != 503 || !strings.Contains(out.Error.Message, "does not execute operations") {
		t.Errorf("without a dispatcher: got %d %+v", status, out)
	}
}

// TestOutcomesBecomeStatuses checks the status of each outcome, and that outcomes arrive completely.
func TestOutcomesBecomeStatuses(t *testing.T) {
	a := &fakeDispatcher{}
	w := serveOperations(t, a)
	const get = `{"account":"dev","verb":"get","kind":"deploy","name":"w"}`
	for _, tt := range []struct {
		name   string
		out    vedette.Outcome
		status int
	}{
		{"done", vedette.Outcome{State: vedette.Done, Status: 201}, 200},
		{"done before", vedette.Outcome{State: vedette.Done, Status: 200, Unchanged: true}, 200},
		{"the cluster's refusal", vedette.Outcome{State: vedette.Failed, Status: 422, Reason: "Invalid", Message: "spec.replicas: -1"}, 422},
		{"done with warnings", vedette.Outcome{State: vedette.Done, Status: 200, Warnings: []string{"v1 Endpoints is deprecated", `"b"`}}, 200},
		{"refused with warnings", vedette.Outcome{State: vedette.Failed, Status: 403, Warnings: []string{"a"}}, 403},
		{"a status that is none of an error", vedette.Outcome{State: vedette.Failed, Status: 200, Message: "x"}, 500},
		{"lost", vedette.Outcome{State: vedette.Lost, Status: 504, Reason: "Lost", Message: "it is unknown"}, 504},
		{"lost at another status", vedette.Outcome{State: vedette.Lost, Status: 200}, 504},
	} {
		a.do = func(context.Context, vedette.Operation) vedette.Outcome { return tt.out }
		status, out := w.post(get)
		if status != tt.status || out.Status != tt.out.Status || out.State != string(tt.out.State) || out.Reason != tt.out.Reason || out.Message != tt.out.Message ||
			out.Unchanged != tt.out.Unchanged || !slices.Equal(out.Warnings, tt.out.Warnings) {
			t.Errorf("%s: got %d %+v", tt.name, status, out)
		}
	}
	pod := vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "shop", Name: "web-0"}
	a.do = func(context.Context, vedette.Operation) vedette.Outcome {
		return vedette.Outcome{State: vedette.Done, Status: 200, Keys: []vedette.Key{pod}, UIDs: []string{"u"},
			Objects: []json.RawMessage{[]byte(`{"a":"<b>"}`), []byte(`{"broken"`)}, Result: []byte(`{"done":true}`)}
	}
	_, out := w.post(get)
	if len(out.Keys) != 1 || out.Keys[0].Kind != "Pod" || out.Keys[0].Namespace != "shop" || out.Keys[0].Name != "web-0" || out.Keys[0].UID != "u" ||
		len(out.Objects) != 1 || string(out.Objects[0]) != `{"a":"<b>"}` || string(out.Result) != `{"done":true}` {
		t.Errorf("%+v", out)
	}
}

// TestOperationUserAndOrigin checks what the history records about a request.
func TestOperationUserAndOrigin(t *testing.T) {
	a := &fakeDispatcher{}
	w := serveOperations(t, a)
	const scale = `{"account":"dev","verb":"scale","kind":"deploy","name":"w","replicas":1,"timeout":"5m"}`
	w.post(scale, "X-SPINNAKER-USER", "ann@example.com", "X-Vedette-Origin", "vedette scale")
	w.post(scale)
	received := a.operations()
	if received[0].Requester.User != "ann@example.com" || received[0].Origin != "vedette scale" || received[1].Requester.User != "anonymous" || received[1].Origin != "api" {
		t.Errorf("%+v", received)
	}
	if remaining := time.Until(received[0].Deadline); remaining < 4*time.Minute || remaining > 5*time.Minute {
		t.Errorf("got a deadline in %v, want 5 minutes", remaining)
	}
	if status, out := w.post(scale, "X-Vedette-Origin", strings.Repeat("x", 300)); status != 400 || !strings.Contains(out.Error.Message, "X-Vedette-Origin has 300 bytes") {
		t.Errorf("%d %+v", status, out)
	}
}

// TestCrossOriginOperationsAreRejected checks that web pages cannot make a browser send an
// operation. Browsers send the content types of forms without a preflight request.
func TestCrossOriginOperationsAreRejected(t *testing.T) {
	a := &fakeDispatcher{}
	w := serveOperations(t, a)
	for _, tt := range []struct {
		headers []string
		status  int
	}{
		{nil, 200},
		{[]string{"Content-Type", "application/json; charset=utf-8"}, 200},
		{[]string{"Content-Type", "text/plain"}, 415},
		{[]string{"Content-Type", ""}, 415},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		{[]string{"Origin", "https://evil.example.com"}, 403},
	} {
		if status, out := w.post(`{"account":"dev","verb":"restart","kind":"deploy","name":"w"}`, tt.headers...); status != tt.status {
			t.Errorf("%v: got %d %+v", tt.headers, status, out)
		}
	}
	if n := len(a.operations()); n != 3 {
		t.Errorf("got %d operations", n)
	}
}

// staticAuthorizer allows reading one account and writing another one.
type staticAuthorizer struct{ read, write vedette.AccountName }

// CheckAccount implements authorizer.
func (g staticAuthorizer) CheckAccount(_ context.Context, c authorize.Caller, account vedette.AccountName, access authorize.Access) error {
	if c.User == "ann" && (account == g.read && access == authorize.Read || account == g.write) {
		return nil
	}
	return vedette.Errorf(vedette.Denied, "Access is denied")
}

// Readable implements authorizer.
func (g staticAuthorizer) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return func(account vedette.AccountName) bool { return account == g.read || account == g.write }, nil
}

func TestOperationsNeedPermission(t *testing.T) {
	a := &fakeDispatcher{do: func(_ context.Context, op vedette.Operation) vedette.Outcome {
		if op.Args.Verb() == vedette.VerbLogs {
			return vedette.Outcome{State: vedette.Done, Stream: io.NopCloser(strings.NewReader("line\n"))}
		}
		return vedette.Outcome{State: vedette.Done, Status: 200}
	}}
	cfg := configOf(shopWorld(t))
	cfg.Dispatch, cfg.Authorizer = a, staticAuthorizer{read: "prod-1", write: "dev"}
	w := serve(t, cfg)
	for _, tt := range []struct {
		user, account, verb string
		status              int
	}{
		{"ann", "dev", "restart", 200}, {"ann", "dev", "get", 200}, {"ann", "prod-1", "get", 200}, {"ann", "prod-1", "restart", 403},
		{"ann", "prod-3", "get", 403}, {"bob", "dev", "get", 403}, {"", "dev", "restart", 403},
	} {
		status, _ := w.post(`{"account":"`+tt.account+`","verb":"`+tt.verb+`","kind":"deploy","name":"w"}`, "X-SPINNAKER-USER", tt.user)
		if status != tt.status {
			t.Errorf("%+v: got %d, want %d", tt, status, tt.status)
		}
	}
	if n := len(a.operations()); n != 3 {
		t.Errorf("got %d operations", n)
	}
	// The version of a Secret's manifest shows whether a guessed value is right.
	for manifest, want := range map[string]int{`{"kind":"ConfigMap"}`: 200, `"kind: ConfigMap"`: 200, `{"kind":"Secret"}`: 403, `"kind: secrets"`: 403, `{"kind":"Secret","Kind":"ConfigMap","KIND":"ConfigMap"}`: 403} {
		status, _ := w.post(`{"account":"prod-1","verb":"version","manifest":`+manifest+`}`, "X-SPINNAKER-USER", "ann")
		if status != want {
			t.Errorf("the version of %s: got %d, want %d", manifest, status, want)
		}
	}
	for account, want := range map[string]int{"prod-1": 200, "prod-3": 403} {
		if response, _ := w.get("/logs?pod=p&account="+account, "X-SPINNAKER-USER", "ann"); response.StatusCode != want {
			t.Errorf("logs of %s: got %d, want %d", account, response.StatusCode, want)
		}
	}
}

// TestDryRunNeedsWritePermission checks that a dry run is dispatched and reported as one, requires write
// permission, and shares its id with no other operation.
func TestDryRunNeedsWritePermission(t *testing.T) {
	a := &fakeDispatcher{}
	cfg := configOf(shopWorld(t))
	cfg.Dispatch, cfg.Authorizer = a, staticAuthorizer{read: "prod-1", write: "dev"}
	w := serve(t, cfg)
	const restartFields = `"verb":"restart","kind":"deploy","name":"w","id":"` + oneID + `"`
	if status, out := w.post(`{"account":"dev","dryRun":true,`+restartFields+`}`, "X-SPINNAKER-USER", "ann"); status != 200 || !out.DryRun {
		t.Errorf("%d %+v", status, out)
	}
	if status, out := w.post(`{"account":"dev",`+restartFields+`}`, "X-SPINNAKER-USER", "ann"); status != 409 {
		t.Errorf("not a dry run, with the same id: got %d %+v", status, out)
	}
	if status, _ := w.post(`{"account":"prod-1","dryRun":true,"verb":"restart","kind":"deploy","name":"w"}`, "X-SPINNAKER-USER", "ann"); status != 403 {
		t.Errorf("without WRITE: got %d, want %d", status, 403)
	}
	if all := a.operations(); len(all) != 1 || !all[0].DryRun {
		t.Errorf("%+v", all)
	}
}

// TestLargeOperationsAreAccepted sends operations close to the limits of API servers.
func TestLargeOperationsAreAccepted(t *testing.T) {
	big := strings.Repeat(`value with "quotes" `, 70_000) // 1.4 MB
	var objects []json.RawMessage
	for range 12 {
		o, err := json.Marshal(map[string]any{"data": strings.Repeat("x", 1<<20)})
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	a := &fakeDispatcher{do: func(_ context.Context, op vedette.Operation) vedette.Outcome {
		return vedette.Outcome{State: vedette.Done, Status: 200, Objects: objects}
	}}
	w := serveOperations(t, a)
	quoted, err := json.Marshal(big)
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := w.post(`{"account":"dev","verb":"apply","manifest":{"kind":"ConfigMap","metadata":{"name":"big"},"data":{"text":` + string(quoted) + `}}}`); status != 200 {
		t.Fatalf("a manifest of %d bytes: got %d, want %d", len(quoted), status, 200)
	}
	if got := a.operations()[0].Args.(vedette.ApplyArgs).Manifest; !bytes.Contains(got, quoted) {
		t.Errorf("got a manifest of %d bytes", len(got))
	}
	if status, out := w.post(`{"account":"dev","verb":"list","kind":"configmaps"}`); status != 200 || len(out.Objects) != 12 || len(out.Objects[11]) != len(objects[11]) {
		t.Errorf("a list of 12 MB: got %d, %d objects", status, len(out.Objects))
	}
}

const (
	oneID = "01J00000000000000000000001"
	twoID = "01J00000000000000000000002"
)

func restart(id string) string {
	return `{"account":"dev","verb":"restart","kind":"deploy","name":"w","id":"` + id + `"}`
}

// restartDigest is that of restart.
func restartDigest() string {
	return api.DigestOf(vedette.Operation{ID: oneID, Account: "dev", Args: vedette.RestartArgs{Target: vedette.Target{Kind: "deploy", Name: "w"}}}, "")
}

// TestOperationIDRunsOnce sends operations twice, concurrently and one after the other.
func TestOperationIDRunsOnce(t *testing.T) {
	release, started := make(chan struct{}), make(chan struct{}, 10)
	a := &fakeDispatcher{do: func(context.Context, vedette.Operation) vedette.Outcome {
		started <- struct{}{}
		<-release
		return vedette.Outcome{State: vedette.Done, Status: 200, Keys: []vedette.Key{{Kind: vedette.Kind{Name: "Pod"}, Name: "p"}}, Objects: []json.RawMessage{[]byte(`{}`)}, Warnings: []string{"w"}}
	}}
	w := serveOperations(t, a)
	answers := make(chan outcome, 2)
	var group sync.WaitGroup
	for range 2 {
		caller := &validatingClient{t: t, url: w.url, router: w.router, doc: w.doc, answered: map[string]bool{}}
		group.Go(func() {
			_, out := caller.post(restart(oneID))
			answers <- out
		})
	}
	<-started
	if status, out := w.post(`{"account":"dev","verb":"restart","kind":"deploy","name":"other","id":"` + oneID + `"}`); status != 409 || !strings.Contains(out.Error.Message, "belongs to another operation") {
		t.Errorf("another operation with the same id: got %d %+v", status, out)
	}
	close(release)
	group.Wait()
	_, last := w.post(restart(oneID))
	for _, out := range []outcome{<-answers, <-answers, last} {
		if out.ID != oneID || out.State != "done" || len(out.Keys) != 1 || len(out.Warnings) != 1 || out.Repeated != (len(out.Objects) == 0) {
			t.Errorf("%+v", out)
		}
	}
	if !last.Repeated || len(a.operations()) != 1 {
		t.Errorf("got %d operations and the last response %+v", len(a.operations()), last)
	}
}

// TestOperationIDRunsOnceAcrossServers sends operations that another server has in the
// history.
func TestOperationIDRunsOnceAcrossServers(t *testing.T) {
	world := shopWorld(t)
	a := &fakeDispatcher{}
	cfg := configOf(world)
	cfg.Dispatch = a
	w := serve(t, cfg)
	row := history.Operation{ID: oneID, Account: "dev", Verb: vedette.VerbRestart, Server: "other", State: history.Pending, Accepted: time.Now(), Digest: restartDigest()}
	if err := world.Store.BeginOperation(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if status, out := w.post(restart(oneID)); status != 409 || !strings.Contains(out.Error.Message, "has been running since") {
		t.Errorf("while another server executes it: got %d %+v", status, out)
	}
	row.State, row.Status, row.Reason, row.Message, row.Ended = vedette.Failed, 422, "Invalid", "no", time.Now()
	if err := world.Store.EndOperations(t.Context(), []history.Operation{row}); err != nil {
		t.Fatal(err)
	}
	if status, out := w.post(restart(oneID)); status != 422 || out.State != "failed" || out.Reason != "Invalid" || out.Message != "no" || !out.Repeated {
		t.Errorf("after it ended: got %d %+v", status, out)
	}
	if status, _ := w.post(`{"account":"prod-1","verb":"restart","kind":"deploy","name":"w","id":"` + oneID + `"}`); status != 409 {
		t.Errorf("for another account: got %d, want %d", status, 409)
	}
	if n := len(a.operations()); n != 0 {
		t.Errorf("got %d operations", n)
	}
	cfg.Store = failingHistoryStore{world.Store}
	if status, _ := serve(t, cfg).post(restart(twoID)); status != 503 || len(a.operations()) != 0 {
		t.Errorf("without the history: got %d and %d operations", status, len(a.operations()))
	}
}

// TestConcurrentServersShareOutcome checks that if two servers accept the same operation at
// the same time, both return the outcome of the first.
func TestConcurrentServersShareOutcome(t *testing.T) {
	world := shopWorld(t)
	a := &fakeDispatcher{do: func(ctx context.Context, op vedette.Operation) vedette.Outcome {
		row := history.Operation{ID: oneID, Account: "dev", Verb: vedette.VerbRestart, Server: "other", Accepted: time.Now(), Digest: restartDigest()}
		if err := world.Store.BeginOperation(ctx, row); err != nil && vedette.KindOf(err) != vedette.Conflict {
			t.Error(err)
		}
		return vedette.Outcome{State: vedette.Failed, Status: 409, Reason: vedette.ReasonAlreadyAccepted, Message: "accepted before"}
	}}
	cfg := configOf(world)
	cfg.Dispatch = a
	w := serve(t, cfg)
	if status, out := w.post(restart(oneID)); status != 409 || !strings.Contains(out.Error.Message, "has been running since") {
		t.Errorf("%d %+v", status, out)
	}
	end := history.Operation{ID: oneID, Account: "dev", Verb: vedette.VerbRestart, State: vedette.Done, Status: 200, Ended: time.Now()}
	if err := world.Store.EndOperations(t.Context(), []history.Operation{end}); err != nil {
		t.Fatal(err)
	}
	if status, out := w.post(restart(oneID)); status != 200 || !out.Repeated {
		t.Errorf("after the other one ended: got %d %+v", status, out)
	}
}

// failingHistoryStore is a store whose history cannot be read.
type failingHistoryStore struct{ *store.Store }

func (failingHistoryStore) Operation(context.Context, vedette.OperationID) (history.Operation, error) {
	return history.Operation{}, vedette.Errorf(vedette.Unavailable, "the database is away")
}

// TestFailedOutcomeIsRepeated checks that a failed operation stays failed, even before it is
// in the history, and that an operation that another server accepted in the meantime is left
// to that server.
func TestFailedOutcomeIsRepeated(t *testing.T) {
	a := &fakeDispatcher{do: func(context.Context, vedette.Operation) vedette.Outcome {
		return vedette.Outcome{State: vedette.Failed, Status: 503, Message: "no agent"}
	}}
	w := serveOperations(t, a)
	if status, _ := w.post(restart(oneID)); status != 503 {
		t.Error(status)
	}
	a.do = nil
	if status, out := w.post(restart(oneID)); status != 503 || out.State != "failed" || !out.Repeated {
		t.Errorf("%d %+v", status, out)
	}
	a.do = func(context.Context, vedette.Operation) vedette.Outcome {
		return vedette.Outcome{State: vedette.Failed, Status: 409, Reason: vedette.ReasonAlreadyAccepted, Message: "it was accepted before"}
	}
	if status, out := w.post(restart(twoID)); status != 409 || out.State != "" || out.Error.Kind != "conflict" || !strings.Contains(out.Error.Message, "returns its outcome when it ends") {
		t.Errorf("%d %+v", status, out)
	}
}

// TestOperationContinuesAfterCallerDisconnects checks that an operation with an id continues
// when its caller disconnects, and that the caller gets the outcome later.
func TestOperationContinuesAfterCallerDisconnects(t *testing.T) {
	release, started := make(chan struct{}), make(chan struct{})
	a := &fakeDispatcher{do: func(ctx context.Context, _ vedette.Operation) vedette.Outcome {
		close(started)
		select {
		case <-release:
			return vedette.Outcome{State: vedette.Done, Status: 200}
		case <-ctx.Done():
			return vedette.Outcome{State: vedette.Lost, Status: 504, Message: "the caller disconnected"}
		}
	}}
	w := serveOperations(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/vedette/v1/operations", strings.NewReader(restart(oneID)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	clientErr := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			response.Body.Close()
		}
		clientErr <- err
	}()
	<-started
	cancel()
	if err := <-clientErr; err == nil {
		t.Error("the first caller got a response")
	}
	close(release)
	if status, out := w.post(restart(oneID)); status != 200 || !out.Repeated {
		t.Errorf("%d %+v", status, out)
	}
}

// FuzzOperation checks that no body causes an internal error, or executes something that was
// not understood.
func FuzzOperation(f *testing.F) {
	a := &fakeDispatcher{}
	w := serveOperations(f, a)
	for _, body := range []string{`{"account":"dev","verb":"get","kind":"a","name":"b"}`, `{"verb":null}`, `{"verb":"apply","account":"dev","manifest":"a: &a [*a]"}`,
		`{"account":"dev","verb":"apply","manifest":"---\n---\nkind: A"}`, restart(oneID), `null`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := &validatingClient{t: t, url: w.url, router: w.router, doc: w.doc, answered: map[string]bool{}}
		status, out := w.post(body)
		switch {
		case status == 200 && out.State == "done":
		case (status == 400 || status == 404 || status == 409) && out.Error.Message != "":
		default:
			t.Errorf("%q: got %d %+v", body, status, out)
		}
	})
}

// TestLargeOutcomesAreCompressed sends Accept-Encoding with operations.
func TestLargeOutcomesAreCompressed(t *testing.T) {
	a := &fakeDispatcher{}
	w := serveOperations(t, a)
	for size, want := range map[int]string{5 << 10: "", 50 << 10: "gzip"} {
		a.do = func(context.Context, vedette.Operation) vedette.Outcome {
			return vedette.Outcome{State: vedette.Done, Status: 200, Objects: []json.RawMessage{[]byte(`"` + strings.Repeat("x", size) + `"`)}}
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/vedette/v1/operations", strings.NewReader(`{"account":"dev","verb":"discover"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept-Encoding", "gzip")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := response.Header.Get("Content-Encoding"); response.StatusCode != 200 || got != want {
			t.Errorf("%d bytes: got %d with Content-Encoding %q, want %q", size, response.StatusCode, got, want)
		}
	}
}
