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

// asked is an authority that notes what it is asked and lets all do everything
// but one thing.
type asked struct {
	denied string

	mu     sync.Mutex
	things map[string]bool
}

func (a *asked) ask(thing string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.things[thing] = true
	if thing == a.denied {
		return vedette.Errorf(vedette.Denied, "Access is denied")
	}
	return nil
}

func (a *asked) CheckAccount(_ context.Context, _ authorize.Caller, account vedette.AccountName, access authorize.Access) error {
	return a.ask(string(account) + " " + string(access))
}

func (a *asked) CheckApplication(_ context.Context, _ authorize.Caller, application string, access authorize.Access) error {
	return a.ask("application " + application + " " + string(access))
}

func (a *asked) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return func(account vedette.AccountName) bool { return a.ask(string(account)+" READ") == nil }, nil
}

// access is what a route asks for before it answers.
type access struct {
	path, body string // of a request that succeeds for who may do everything
	asks       []string
	// filters is a text of the answer that is left out for who may not, where that is
	// no refusal.
	filters string
}

const open = "open to everyone"

// accesses has an entry for each route. One that asks for nothing says so, and
// the reason stands beside it.
func accesses(task string) map[string]access {
	const ops = `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}]`
	one := strings.TrimSuffix(strings.TrimPrefix(ops, `[{"scaleManifest":`), "}]")
	write := access{body: ops, asks: []string{"prod WRITE"}}
	at := func(path string, a access) access { a.path = path; return a }
	account, both := []string{"prod READ"}, []string{"application web READ", "prod READ"}
	return map[string]access{
		// Probes have no user, and learn nothing of clusters.
		"GET health": {path: "/health", asks: []string{open}},
		// Fiat itself reads them, and Gate leaves out what a user may not see.
		"GET credentials":                                                   {path: "/credentials", asks: []string{open}},
		"GET credentials/{account}":                                         {path: "/credentials/prod", asks: []string{open}},
		"GET credentials/{account}/authorized":                              {path: "/credentials/prod/authorized", asks: []string{"prod WRITE"}},
		"GET manifests/{account}/{name}":                                    {path: "/manifests/prod/node%20n", asks: both},
		"GET manifests/{account}/{location}/{name}":                         {path: "/manifests/prod/shop/pod%20web-0", asks: both},
		"GET manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}": {path: "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web", asks: both},
		"GET manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}/dynamic/{criteria}": {path: "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web/dynamic/newest", asks: both},
		"GET applications/{app}/jobs/{account}/{location}/{id}":                                {path: "/applications/web/jobs/prod/shop/done", asks: both},
		"POST applications/{app}/jobs/{account}/{location}/{id}":                               {path: "/applications/web/jobs/prod/shop/done", asks: both},
		"DELETE applications/{app}/jobs/{account}/{location}/{id}":                             {path: "/applications/web/jobs/prod/shop/done", asks: []string{"application web EXECUTE", "prod WRITE"}},
		"GET applications/{app}/jobs/{account}/{location}/{id}/{container}":                    {path: "/applications/web/jobs/prod/shop/done/main", asks: both},
		"GET applications/{app}/kubernetes/pods/{account}/{location}/{pod}/{container}":        {path: "/applications/web/kubernetes/pods/prod/shop/web-0/web", asks: both},
		"GET instances/{account}/{location}/{id}/console":                                      {path: "/instances/prod/shop/pod%20web-0/console", asks: account},
		// The two accounts hold no secrets, and what is fetched is in the request.
		"GET artifacts/credentials": {path: "/artifacts/credentials", asks: []string{open}},
		"PUT artifacts/fetch":       {path: "/artifacts/fetch", body: `{"type":"embedded/base64","artifactAccount":"embedded-artifact","reference":"YQ=="}`, asks: []string{open}},

		"GET armory/agent/operations":      {path: "/armory/agent/operations", asks: account, filters: "01J00000000000000000000001"},
		"GET armory/agent/operations/{id}": {path: "/armory/agent/operations/01J00000000000000000000001", asks: account},

		"POST ops":                          at("/ops", write),
		"POST ops/{name}":                   {path: "/ops/scaleManifest", body: one, asks: []string{"prod WRITE"}},
		"POST {provider}/ops":               at("/kubernetes/ops", write),
		"POST {provider}/ops/{name}":        {path: "/kubernetes/ops/scaleManifest", body: one, asks: []string{"prod WRITE"}},
		"GET task":                          {path: "/task", asks: account, filters: task},
		"GET task/{id}":                     {path: "/task/" + task, asks: account},
		"POST task/{id}:resume":             {path: "/task/" + task + ":resume", asks: account},
		"GET {provider}/task/{id}/owner":    {path: "/kubernetes/task/" + task + "/owner", asks: account},
		"PATCH {provider}/task/{id}":        {path: "/kubernetes/task/" + task, body: `{"retry":true}`, asks: []string{"prod WRITE"}},
		"POST {provider}/task/{id}/restart": {path: "/kubernetes/task/" + task + "/restart", body: ops, asks: []string{"prod WRITE"}},
		// What this server can do is the same for all, and nothing is refreshed.
		"GET features/stages":          {path: "/features/stages", asks: []string{open}},
		"POST cache/{provider}/{type}": {path: "/cache/kubernetes/manifest", body: "{}", asks: []string{open}},
		"GET cache/{provider}/{type}":  {path: "/cache/kubernetes/manifest", asks: []string{open}},
	}
}

// TestEveryRouteAsks fails for a route that accesses does not have, for one that
// asks for something else than stands there, and for one that answers though it
// was denied what it asked for.
func TestEveryRouteAsks(t *testing.T) {
	table := accesses("")
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
			all := &asked{things: map[string]bool{}}
			want := table[pattern].asks
			code, body, _ := call(t, pattern, all)
			if code == http.StatusForbidden {
				t.Errorf("%d %s", code, body)
			}
			if want[0] == open {
				want = nil
			}
			if got := slices.Sorted(maps.Keys(all.things)); !slices.Equal(got, want) {
				t.Errorf("it asks for %q, want %q (%d %s)", got, want, code, body)
			}
			for _, thing := range want {
				code, body, entry := call(t, pattern, &asked{things: map[string]bool{}, denied: thing})
				switch {
				case entry.filters != "" && code == http.StatusOK && !strings.Contains(body, entry.filters):
				case entry.filters == "" && code == http.StatusForbidden:
				case entry.filters == "" && code == http.StatusBadRequest && strings.Contains(body, "Access denied to account prod"):
				default:
					t.Errorf("without %s: %d %s", thing, code, body)
				}
			}
		})
	}
}

// call sends the request of a route's entry to a world of its own.
func call(t *testing.T, pattern string, authority *asked) (int, string, access) {
	t.Helper()
	w, c := prod(t)
	w.Account("prod", "pods", "replicasets", "deployments", "nodes")
	w.Put("prod", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","annotations":{"moniker.spinnaker.io/application":"web"}}}`,
		strings.Replace(web0, `"labels"`, `"annotations":{"moniker.spinnaker.io/application":"web"},"labels"`, 1))
	row := store.OperationRow{ID: "01J00000000000000000000001", Account: "prod", Server: "s", Verb: vedette.VerbScale, Accepted: time.Now()}
	if err := w.Store.BeginOperation(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	all := task.New(task.Config{Store: w.Store, Accounts: w.Store, Dispatch: stuck{}})
	entry := accesses("")[pattern]
	id, err := all.Submit(t.Context(), parsed(t, accesses("")["POST ops"].body), task.Options{User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = all.Cancel(context.WithoutCancel(t.Context()), id, false) }) // it has ended then, one way or the other
	if strings.HasSuffix(pattern, "/restart") {
		if err := all.Cancel(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
	}
	entry = accesses(id)[pattern]
	handler := clouddriver.New(clouddriver.Config{Store: w.Store, Dispatch: c, Tasks: all, Authority: authority})
	method, _, _ := strings.Cut(pattern, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, entry.path, strings.NewReader(entry.body))
	r.Header.Set("X-SPINNAKER-USER", "dev")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	return answer.Code, answer.Body.String(), entry
}
