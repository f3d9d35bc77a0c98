package clouddriver_test

import (
	"context"
	"maps"
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
	all := map[string]authorizetest.Route{
		// Probes have no user, and the answer shows nothing of clusters.
		"GET health": {Path: "/health", Open: true},
		// Fiat itself reads them, and Gate hides accounts that the user may not see.
		"GET credentials":                                                   {Path: "/credentials", Open: true},
		"GET credentials/{account}":                                         {Path: "/credentials/prod", Open: true},
		"GET credentials/{account}/authorized":                              {Path: "/credentials/prod/authorized", Permissions: []string{"prod WRITE"}},
		"GET manifests/{account}/{name}":                                    {Path: "/manifests/prod/node%20n", Permissions: both},
		"GET manifests/{account}/{location}/{name}":                         {Path: "/manifests/prod/shop/pod%20web-0", Permissions: both},
		"GET manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}": {Path: "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web", Permissions: both},
		"GET manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}/dynamic/{criteria}": {Path: "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web/dynamic/newest", Permissions: both},
		"GET applications/{app}/jobs/{account}/{location}/{id}":                                {Path: "/applications/web/jobs/prod/shop/done", Permissions: both},
		"POST applications/{app}/jobs/{account}/{location}/{id}":                               {Path: "/applications/web/jobs/prod/shop/done", Permissions: both},
		"DELETE applications/{app}/jobs/{account}/{location}/{id}":                             {Path: "/applications/web/jobs/prod/shop/done", Permissions: []string{"application web EXECUTE", "prod WRITE"}},
		"GET applications/{app}/jobs/{account}/{location}/{id}/{container}":                    {Path: "/applications/web/jobs/prod/shop/done/main", Permissions: both},
		"GET applications/{app}/kubernetes/pods/{account}/{location}/{pod}/{container}":        {Path: "/applications/web/kubernetes/pods/prod/shop/web-0/web", Permissions: both},
		"GET instances/{account}/{location}/{id}/console":                                      {Path: "/instances/prod/shop/pod%20web-0/console", Permissions: account},
		// The two accounts hold no secrets, and the content is part of the request.
		"GET artifacts/credentials": {Path: "/artifacts/credentials", Open: true},
		"PUT artifacts/fetch":       {Path: "/artifacts/fetch", Body: `{"type":"embedded/base64","artifactAccount":"embedded-artifact","reference":"YQ=="}`, Open: true},

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
	maps.Copy(all, infrastructureRoutes())
	maps.Copy(all, fixedRoutes())
	return all
}

// infrastructureRoutes are the entries of views of load balancers, security groups and more.
func infrastructureRoutes() map[string]authorizetest.Route {
	account, both := []string{"prod READ"}, []string{"application web READ", "prod READ"}
	return map[string]authorizetest.Route{
		"GET applications/{app}/loadBalancers": {Path: "/applications/web/loadBalancers", Permissions: both, FilteredText: "service web",
			Rejecting: []string{"application web READ"}},
		"GET applications/{app}/rawResources": {Path: "/applications/web/rawResources", Permissions: both, FilteredText: "service web",
			Rejecting: []string{"application web READ"}},
		// It never lists any.
		"GET {provider}/loadBalancers":                            {Path: "/kubernetes/loadBalancers", Open: true},
		"GET {provider}/loadBalancers/{name}":                     {Path: "/kubernetes/loadBalancers/service%20web", Permissions: account},
		"GET {provider}/loadBalancers/{account}/{region}/{name}":  {Path: "/kubernetes/loadBalancers/prod/shop/service%20web", Permissions: account},
		"GET securityGroups":                                      {Path: "/securityGroups", Permissions: account, FilteredText: "networkPolicy web"},
		"GET securityGroups/{account}":                            {Path: "/securityGroups/prod", Permissions: account},
		"GET securityGroups/{account}/{provider}":                 {Path: "/securityGroups/prod/kubernetes", Permissions: account},
		"GET securityGroups/{account}/{provider}/{name}":          {Path: "/securityGroups/prod/kubernetes/networkPolicy%20web", Permissions: account},
		"GET securityGroups/{account}/{provider}/{region}/{name}": {Path: "/securityGroups/prod/kubernetes/shop/networkPolicy%20web", Permissions: account},
		"GET search": {Path: "/search?q=web&type=loadBalancers", Permissions: both, FilteredText: "service web"},
	}
}

// fixedRoutes are the entries of routes that answer everyone the same.
func fixedRoutes() map[string]authorizetest.Route {
	all := map[string]authorizetest.Route{
		// No account can be managed.
		"GET credentials/type/{type}":          {Path: "/credentials/type/kubernetes", Code: http.StatusBadRequest, Open: true},
		"POST credentials":                     {Path: "/credentials", Code: http.StatusBadRequest, Open: true},
		"PUT credentials":                      {Path: "/credentials", Code: http.StatusBadRequest, Open: true},
		"PUT credentials/{account}":            {Path: "/credentials/prod", Code: http.StatusBadRequest, Open: true},
		"DELETE credentials/{account}":         {Path: "/credentials/prod", Code: http.StatusBadRequest, Open: true},
		"GET credentials/{account}/history":    {Path: "/credentials/prod/history", Code: http.StatusBadRequest, Open: true},
		"GET servicebroker/{account}/services": {Path: "/servicebroker/prod/services?cloudProvider=aws", Open: true},
		// It shows no more than the list of accounts, which is open too.
		"GET cache/introspection": {Path: "/cache/introspection", Open: true},
		// There is nothing that they could remove.
		"PUT admin/db/truncate/{namespace}":   {Path: "/admin/db/truncate/green", Open: true},
		"PUT admin/db/drop/{namespace}":       {Path: "/admin/db/drop/green", Open: true},
		"PUT admin/db/drop_version/{version}": {Path: "/admin/db/drop_version/1", Open: true},
	}
	unbraced := strings.NewReplacer("{", "", "}", "")
	for pattern, status := range clouddriver.OtherProviderAnswers() {
		all["GET "+pattern] = authorizetest.Route{Path: "/" + unbraced.Replace(pattern), Code: status, Open: true}
	}
	return all
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
	handler := clouddriver.New(clouddriver.Config{Store: w.Store, Dispatch: c, Tasks: taskService, Authorizer: authorizer})
	method, _, _ := strings.Cut(pattern, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, route.Path, strings.NewReader(route.Body))
	r.Header.Set("X-SPINNAKER-USER", "dev")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	return authorizetest.Response{Code: recorder.Code, Body: recorder.Body.String()}, route
}
