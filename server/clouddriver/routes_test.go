package clouddriver_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// recordingAuthorizer is an authority that notes what it is asked and lets all do everything
// but one thing.
type recordingAuthorizer struct {
	denied string

	mu      sync.Mutex
	checked map[string]bool
}

func (a *recordingAuthorizer) check(permission string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checked[permission] = true
	if permission == a.denied {
		return vedette.Errorf(vedette.Denied, "Access is denied")
	}
	return nil
}

func (a *recordingAuthorizer) CheckAccount(_ context.Context, _ authorize.Caller, account vedette.AccountName, access authorize.Access) error {
	return a.check(string(account) + " " + string(access))
}

func (a *recordingAuthorizer) CheckApplication(_ context.Context, _ authorize.Caller, application string, access authorize.Access) error {
	return a.check("application " + application + " " + string(access))
}

func (a *recordingAuthorizer) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return func(account vedette.AccountName) bool { return a.check(string(account)+" READ") == nil }, nil
}

// routeAccess is what a route asks for before it answers.
type routeAccess struct {
	path, body  string // of a request that succeeds for who may do everything
	permissions []string
	// filteredText is a text of the answer that is left out for who may not, where that is
	// no refusal.
	filteredText string
}

const openToAll = "open to everyone"

// routeAccesses has an entry for each route. One that asks for nothing says so, and
// the reason stands beside it.
func routeAccesses(id string) map[string]routeAccess {
	const ops = `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}]`
	singleBody := strings.TrimSuffix(strings.TrimPrefix(ops, `[{"scaleManifest":`), "}]")
	write := routeAccess{body: ops, permissions: []string{"prod WRITE"}}
	withPath := func(path string, a routeAccess) routeAccess { a.path = path; return a }
	account, both := []string{"prod READ"}, []string{"application web READ", "prod READ"}
	return map[string]routeAccess{
		// Probes have no user, and learn nothing of clusters.
		"GET health": {path: "/health", permissions: []string{openToAll}},
		// Fiat itself reads them, and Gate leaves out what a user may not see.
		"GET credentials":                                                   {path: "/credentials", permissions: []string{openToAll}},
		"GET credentials/{account}":                                         {path: "/credentials/prod", permissions: []string{openToAll}},
		"GET credentials/{account}/authorized":                              {path: "/credentials/prod/authorized", permissions: []string{"prod WRITE"}},
		"GET manifests/{account}/{name}":                                    {path: "/manifests/prod/node%20n", permissions: both},
		"GET manifests/{account}/{location}/{name}":                         {path: "/manifests/prod/shop/pod%20web-0", permissions: both},
		"GET manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}": {path: "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web", permissions: both},
		"GET manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}/dynamic/{criteria}": {path: "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web/dynamic/newest", permissions: both},
		"GET applications/{app}/jobs/{account}/{location}/{id}":                                {path: "/applications/web/jobs/prod/shop/done", permissions: both},
		"POST applications/{app}/jobs/{account}/{location}/{id}":                               {path: "/applications/web/jobs/prod/shop/done", permissions: both},
		"DELETE applications/{app}/jobs/{account}/{location}/{id}":                             {path: "/applications/web/jobs/prod/shop/done", permissions: []string{"application web EXECUTE", "prod WRITE"}},
		"GET applications/{app}/jobs/{account}/{location}/{id}/{container}":                    {path: "/applications/web/jobs/prod/shop/done/main", permissions: both},
		"GET applications/{app}/kubernetes/pods/{account}/{location}/{pod}/{container}":        {path: "/applications/web/kubernetes/pods/prod/shop/web-0/web", permissions: both},
		"GET instances/{account}/{location}/{id}/console":                                      {path: "/instances/prod/shop/pod%20web-0/console", permissions: account},
		// The two accounts hold no secrets, and what is fetched is in the request.
		"GET artifacts/credentials": {path: "/artifacts/credentials", permissions: []string{openToAll}},
		"PUT artifacts/fetch":       {path: "/artifacts/fetch", body: `{"type":"embedded/base64","artifactAccount":"embedded-artifact","reference":"YQ=="}`, permissions: []string{openToAll}},

		"GET armory/agent/operations":      {path: "/armory/agent/operations", permissions: account, filteredText: "01J00000000000000000000001"},
		"GET armory/agent/operations/{id}": {path: "/armory/agent/operations/01J00000000000000000000001", permissions: account},

		"POST ops":                          withPath("/ops", write),
		"POST ops/{name}":                   {path: "/ops/scaleManifest", body: singleBody, permissions: []string{"prod WRITE"}},
		"POST {provider}/ops":               withPath("/kubernetes/ops", write),
		"POST {provider}/ops/{name}":        {path: "/kubernetes/ops/scaleManifest", body: singleBody, permissions: []string{"prod WRITE"}},
		"GET task":                          {path: "/task", permissions: account, filteredText: id},
		"GET task/{id}":                     {path: "/task/" + id, permissions: account},
		"POST task/{id}:resume":             {path: "/task/" + id + ":resume", permissions: account},
		"GET {provider}/task/{id}/owner":    {path: "/kubernetes/task/" + id + "/owner", permissions: account},
		"PATCH {provider}/task/{id}":        {path: "/kubernetes/task/" + id, body: `{"retry":true}`, permissions: []string{"prod WRITE"}},
		"POST {provider}/task/{id}/restart": {path: "/kubernetes/task/" + id + "/restart", body: ops, permissions: []string{"prod WRITE"}},
		// What this server can do is the same for all, and nothing is refreshed.
		"GET features/stages":          {path: "/features/stages", permissions: []string{openToAll}},
		"POST cache/{provider}/{type}": {path: "/cache/kubernetes/manifest", body: "{}", permissions: []string{openToAll}},
		"GET cache/{provider}/{type}":  {path: "/cache/kubernetes/manifest", permissions: []string{openToAll}},
	}
}

// TestEveryRouteIsAuthorized fails for a route that accesses does not have, for one that
// asks for something else than stands there, and for one that answers though it
// was denied what it asked for.
func TestEveryRouteIsAuthorized(t *testing.T) {
	table := routeAccesses("")
	for _, pattern := range clouddriver.Routes() {
		if _, ok := table[pattern]; !ok {
			t.Errorf("%s: say in accesses what it asks for", pattern)
		}
	}
	for _, pattern := range slices.Sorted(maps.Keys(table)) {
		t.Run(pattern, func(t *testing.T) {
			if !slices.Contains(clouddriver.Routes(), pattern) {
				t.Fatal("there is no such route")
			}
			authorizer := &recordingAuthorizer{checked: map[string]bool{}}
			want := table[pattern].permissions
			code, body, _ := sendRequest(t, pattern, authorizer)
			if code == http.StatusForbidden {
				t.Errorf("%d %s", code, body)
			}
			if want[0] == openToAll {
				want = nil
			}
			if got := slices.Sorted(maps.Keys(authorizer.checked)); !slices.Equal(got, want) {
				t.Errorf("it asks for %q, want %q (%d %s)", got, want, code, body)
			}
			for _, permission := range want {
				code, body, entry := sendRequest(t, pattern, &recordingAuthorizer{checked: map[string]bool{}, denied: permission})
				switch {
				case entry.filteredText != "" && code == http.StatusOK && !strings.Contains(body, entry.filteredText):
				case entry.filteredText == "" && code == http.StatusForbidden:
				case entry.filteredText == "" && code == http.StatusBadRequest && strings.Contains(body, "Access denied to account prod"):
				default:
					t.Errorf("without %s: %d %s", permission, code, body)
				}
			}
		})
	}
}

// sendRequest sends the request of a route's entry to a world of its own.
func sendRequest(t *testing.T, pattern string, authorizer *recordingAuthorizer) (int, string, routeAccess) {
	t.Helper()
	w, c := prodWorld(t)
	w.Account("prod", "pods", "replicasets", "deployments", "nodes")
	w.Put("prod", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","annotations":{"moniker.spinnaker.io/application":"web"}}}`,
		strings.Replace(web0, `"labels"`, `"annotations":{"moniker.spinnaker.io/application":"web"},"labels"`, 1))
	row := store.OperationRow{ID: "01J00000000000000000000001", Account: "prod", Server: "s", Verb: vedette.VerbScale, Accepted: time.Now()}
	if err := w.Store.BeginOperation(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	taskService := task.New(task.Config{Store: w.Store, Accounts: w.Store, Dispatch: blockingDispatcher{}})
	entry := routeAccesses("")[pattern]
	id, err := taskService.Submit(t.Context(), parseRequests(t, routeAccesses("")["POST ops"].body), task.Options{User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taskService.Cancel(context.WithoutCancel(t.Context()), id, false) }) // it has ended then, one way or the other
	if strings.HasSuffix(pattern, "/restart") {
		if err := taskService.Cancel(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
	}
	entry = routeAccesses(id)[pattern]
	handler := clouddriver.New(clouddriver.Config{Store: w.Store, Dispatch: c, Tasks: taskService, Authorizer: authorizer})
	method, _, _ := strings.Cut(pattern, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, entry.path, strings.NewReader(entry.body))
	r.Header.Set("X-SPINNAKER-USER", "dev")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	return recorder.Code, recorder.Body.String(), entry
}
