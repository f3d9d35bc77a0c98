package clouddriver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize/authorizetest"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/task"
)

// routes returns an entry for each route; id is the task that they name. Open
// routes have a comment that gives the reason.
func routes(id string) map[string]authorizetest.Route {
	const ops = `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}]`
	singleBody := strings.TrimSuffix(strings.TrimPrefix(ops, `[{"scaleManifest":`), "}]")
	write := authorizetest.Route{Body: ops, Permissions: []string{"prod WRITE"}}
	withPath := func(path string, r authorizetest.Route) authorizetest.Route { r.Path = path; return r }
	account, both := []string{"prod READ"}, []string{"application web READ", "prod READ"}
	return map[string]authorizetest.Route{
		// Probes have no user, and the answer shows nothing of clusters.
		"GET health": {Path: "/health", Open: true},
		// Fiat itself reads them, and Gate hides accounts that the user may not see.
		"GET credentials":                           {Path: "/credentials", Open: true},
		"GET credentials/{account}":                 {Path: "/credentials/prod", Open: true},
		"GET credentials/{account}/authorized":      {Path: "/credentials/prod/authorized", Permissions: []string{"prod WRITE"}},
		"GET manifests/{account}/{name}":            {Path: "/manifests/prod/node%20n", Permissions: both},
		"GET manifests/{account}/{location}/{name}": {Path: "/manifests/prod/shop/pod%20web-0", Permissions: both},
		// As in Clouddriver: they answer names only, for which stages ask under any user.
		"GET manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}":                    {Path: "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web", Open: true},
		"GET manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}/dynamic/{criteria}": {Path: "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web/dynamic/newest", Open: true},
		"GET applications/{app}/jobs/{account}/{location}/{id}":                                {Path: "/applications/web/jobs/prod/shop/job%20done", Permissions: both},
		"POST applications/{app}/jobs/{account}/{location}/{id}":                               {Path: "/applications/web/jobs/prod/shop/job%20done", Permissions: both},
		"DELETE applications/{app}/jobs/{account}/{location}/{id}":                             {Path: "/applications/web/jobs/prod/shop/job%20done", Permissions: []string{"application web EXECUTE", "prod WRITE"}},
		"GET applications/{app}/jobs/{account}/{location}/{id}/{container}":                    {Path: "/applications/web/jobs/prod/shop/job%20done/main", Permissions: both},
		"GET applications/{app}/kubernetes/pods/{account}/{location}/{pod}/{container}":        {Path: "/applications/web/kubernetes/pods/prod/shop/web-0/web", Permissions: both},
		"GET instances/{account}/{location}/{id}/console":                                      {Path: "/instances/prod/shop/pod%20web-0/console", Permissions: account},
		// Artifact accounts have no permissions in Spinnaker, and the list has no secrets.
		"GET artifacts/credentials":                  {Path: "/artifacts/credentials", Open: true},
		"PUT artifacts/fetch":                        {Path: "/artifacts/fetch", Body: `{"type":"embedded/base64","artifactAccount":"embedded-artifact","reference":"YQ=="}`, Open: true},
		"GET artifacts/account/{account}/names":      {Path: "/artifacts/account/charts/names?type=helm/chart", Open: true},
		"GET artifacts/account/{account}/versions":   {Path: "/artifacts/account/charts/versions?type=helm/chart&artifactName=web", Open: true},
		"GET artifacts/content-address/{app}/{hash}": {Path: "/artifacts/content-address/shop/abc", Permissions: []string{"application shop READ"}},

		"GET armory/agent/operations":      {Path: "/armory/agent/operations", Permissions: account, FilteredText: "01J00000000000000000000001"},
		"GET armory/agent/operations/{id}": {Path: "/armory/agent/operations/01J00000000000000000000001", Permissions: account},

		"POST ops":                          withPath("/ops", write),
		"POST ops/{name}":                   {Path: "/ops/scaleManifest", Body: singleBody, Permissions: []string{"prod WRITE"}},
		"POST {provider}/ops":               withPath("/kubernetes/ops", write),
		"POST {provider}/ops/{name}":        {Path: "/kubernetes/ops/scaleManifest", Body: singleBody, Permissions: []string{"prod WRITE"}},
		"GET task":                          {Path: "/task", Permissions: account, FilteredText: id},
		"GET task/{id}":                     {Path: "/task/" + id, Permissions: account},
		"POST task/{id}:resume":             {Path: "/task/" + id + ":resume", Permissions: account, Code: http.StatusNotFound},
		"GET {provider}/task/{id}/owner":    {Path: "/kubernetes/task/" + id + "/owner", Permissions: account},
		"PATCH {provider}/task/{id}":        {Path: "/kubernetes/task/" + id, Body: `{"retry":true}`, Permissions: []string{"prod WRITE"}},
		"POST {provider}/task/{id}/restart": {Path: "/kubernetes/task/" + id + "/restart", Body: ops, Permissions: []string{"prod WRITE"}},
		// The list of features is the same for all users, and nothing is refreshed.
		"GET features/stages":          {Path: "/features/stages", Open: true},
		"POST cache/{provider}/{type}": {Path: "/cache/kubernetes/manifest", Body: "{}", Open: true},
		"GET cache/{provider}/{type}":  {Path: "/cache/kubernetes/manifest", Open: true},
	}
}

func TestEveryRouteIsAuthorized(t *testing.T) {
	authorizetest.CheckRoutes(t, clouddriver.Routes(), routes(""), sendRequest)
}

// sendRequest sends the request of a route to a server of its own.
func sendRequest(t *testing.T, pattern string, authorizer *authorizetest.Authorizer) (authorizetest.Response, authorizetest.Route) {
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
	id, err := taskService.Submit(t.Context(), parseRequests(t, routes("")["POST ops"].Body), task.Options{User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taskService.Cancel(context.WithoutCancel(t.Context()), id, false) }) // an error means that it has ended already
	if strings.HasSuffix(pattern, "/restart") {
		if err := taskService.Cancel(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
	}
	route := routes(id)[pattern]
	handler := clouddriver.New(clouddriver.Config{Store: w.Store, Dispatch: c, Tasks: taskService, Authorizer: authorizer,
		Artifacts: newArtifactAccounts(serveRepository(t))})
	method, _, _ := strings.Cut(pattern, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, route.Path, strings.NewReader(route.Body))
	r.Header.Set("X-SPINNAKER-USER", "dev")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	return authorizetest.Response{Code: recorder.Code, Body: recorder.Body.String()}, route
}
