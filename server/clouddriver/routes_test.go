package clouddriver_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize/authorizetest"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/discover"
	"github.com/vedette-io/vedette/server/front50"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/task"
)

// routes returns an entry for each route; id is the task that they name. Open
// routes have a comment that gives the reason.
func routes(id string) map[string]authorizetest.Route {
	const ops = `[{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}]`
	singleBody := strings.TrimSuffix(strings.TrimPrefix(ops, `[{"scaleManifest":`), "}]")
	write := authorizetest.Route{Body: ops, Permissions: []string{"prod WRITE"}}
	withPath := func(path string, r authorizetest.Route) authorizetest.Route { r.Path = path; return r }
	account, application, both := []string{"prod READ"}, []string{"application web READ"}, []string{"application web READ", "prod READ"}
	const cluster = "/applications/web/clusters/prod/replicaSet%20web"
	all := map[string]authorizetest.Route{
		// Probes have no user, and the answer shows nothing of clusters.
		"GET health": {Path: "/health", Open: true},
		// Fiat itself reads them, and Gate hides accounts that the user may not see.
		"GET credentials":                                                   {Path: "/credentials", Open: true},
		"GET credentials/{account}":                                         {Path: "/credentials/prod", Open: true},
		"GET credentials/{account}/authorized":                              {Path: "/credentials/prod/authorized", Permissions: []string{"prod WRITE"}},
		"GET manifests/{account}/{name}":                                    {Path: "/manifests/prod/node%20n", Permissions: both},
		"GET manifests/{account}/{location}/{name}":                         {Path: "/manifests/prod/shop/pod%20web-0", Permissions: both},
		"GET manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}": {Path: "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web", Permissions: account},
		"GET manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}/dynamic/{criteria}": {Path: "/manifests/prod/shop/replicaSet/cluster/web/replicaSet%20web/dynamic/newest", Permissions: account},
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

		// Package peer checks who sends them: no user's permission is enough.
		"POST armory/agent/operations":       {Path: "/armory/agent/operations", Body: "{}", Open: true},
		"POST armory/agent/operationresults": {Path: "/armory/agent/operationresults", Body: "{}", Open: true},
		// Agents and accounts are open as in GET /vedette/v1/agents and GET credentials.
		"GET armory/agents":                                   {Path: "/armory/agents", Open: true},
		"GET armory/agents/{id}":                              {Path: "/armory/agents/a1", Open: true},
		"GET armory/accounts":                                 {Path: "/armory/accounts", Open: true},
		"GET armory/accounts/{account}":                       {Path: "/armory/accounts/prod", Open: true},
		"GET agents/kubernetes/accounts/{account}":            {Path: "/agents/kubernetes/accounts/prod", Open: true},
		"GET agents/kubernetes/accounts/{account}/namespaces": {Path: "/agents/kubernetes/accounts/prod/namespaces", Open: true},
		// Servers are no accounts, and GET /vedette/v1/agents names them too.
		"GET armory/clouddrivers":          {Path: "/armory/clouddrivers", Open: true},
		"GET armory/clouddrivers/{id}":     {Path: "/armory/clouddrivers/s1", Open: true},
		"GET armory/agent/operations":      {Path: "/armory/agent/operations", Permissions: account, FilteredText: "01J00000000000000000000001"},
		"GET armory/agent/operations/{id}": {Path: "/armory/agent/operations/01J00000000000000000000001", Permissions: account, Hides: true},

		"GET applications":                                                                                          {Path: "/applications", Permissions: application, FilteredText: `"web"`},
		"GET applications/{app}":                                                                                    {Path: "/applications/web", Permissions: []string{"application web READ"}},
		"GET applications/{app}/clusters":                                                                           {Path: "/applications/web/clusters", Permissions: both, FilteredText: "prod", Rejecting: application},
		"GET applications/{app}/clusters/{account}":                                                                 {Path: "/applications/web/clusters/prod", Permissions: both},
		"GET applications/{app}/clusters/{account}/{cluster}":                                                       {Path: cluster, Permissions: both},
		"GET applications/{app}/clusters/{account}/{cluster}/{type}":                                                {Path: cluster + "/kubernetes", Permissions: both},
		"GET applications/{app}/clusters/{account}/{cluster}/{type}/serverGroups":                                   {Path: cluster + "/kubernetes/serverGroups", Permissions: both},
		"GET applications/{app}/clusters/{account}/{cluster}/{type}/serverGroups/{name}":                            {Path: cluster + "/kubernetes/serverGroups/replicaSet%20web-v001", Permissions: both},
		"GET applications/{app}/clusters/{account}/{cluster}/{type}/{scope}/serverGroups/target/{target}":           {Path: cluster + "/kubernetes/shop/serverGroups/target/newest", Permissions: both},
		"GET applications/{app}/clusters/{account}/{cluster}/{type}/{scope}/serverGroups/target/{target}/{summary}": {Path: cluster + "/kubernetes/shop/serverGroups/target/newest/images", Permissions: both},
		"GET applications/{app}/serverGroups":                                                                       {Path: "/applications/web/serverGroups", Permissions: both, FilteredText: "web-v001", Rejecting: application},
		"GET applications/{app}/serverGroups/{account}/{region}/{name}":                                             {Path: "/applications/other/serverGroups/prod/shop/replicaSet%20web-v001", Permissions: both},
		"GET applications/{app}/serverGroupManagers":                                                                {Path: "/applications/web/serverGroupManagers", Permissions: both, FilteredText: "deployment web", Rejecting: application},
		"GET serverGroups":                           {Path: "/serverGroups?applications=web", Permissions: both, FilteredText: "web-v001"},
		"GET serverGroups/{account}/{region}/{name}": {Path: "/serverGroups/prod/shop/replicaSet%20web-v001", Permissions: both},
		"GET instances/{account}/{location}/{id}":    {Path: "/instances/prod/shop/pod%20web-0", Permissions: account},
		"GET projects/{project}/clusters":            {Path: "/projects/web/clusters", Permissions: both, FilteredText: "r.io/web:5"},

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

// acceptAll takes whatever is forwarded.
type acceptAll struct{}

func (acceptAll) Operation(http.ResponseWriter, *http.Request) error { return nil }
func (acceptAll) Result(http.ResponseWriter, *http.Request) error    { return nil }

// webProject is a project with the application web.
type webProject struct{}

func (webProject) Project(context.Context, string, http.Header) (front50.Project, error) {
	all := "*"
	return front50.Project{Config: front50.ProjectConfig{Applications: []string{"web"},
		Clusters: []front50.ProjectCluster{{Account: "prod", Stack: &all, Detail: &all}}}}, nil
}

func (webProject) SearchProjects(context.Context, url.Values, int, http.Header) ([]front50.Project, error) {
	return nil, nil
}

func TestEveryRouteIsAuthorized(t *testing.T) {
	authorizetest.CheckRoutes(t, clouddriver.Routes(), routes(""), sendRequest)
}

// sendRequest sends the request of a route to a server of its own.
func sendRequest(t *testing.T, pattern string, authorizer *authorizetest.Authorizer) (authorizetest.Response, authorizetest.Route) {
	t.Helper()
	w, c := prodWorld(t)
	w.Account("prod", "pods", "replicasets", "deployments", "nodes", "services", "networkpolicies")
	w.Put("prod", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","annotations":{"moniker.spinnaker.io/application":"web"}}}`,
		strings.Replace(web0, `"labels"`, `"annotations":{"moniker.spinnaker.io/application":"web"},"labels"`, 1))
	w.Put("prod", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`,
		`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-v005","namespace":"shop","uid":"a0000000-0000-4000-8000-000000000005"},
			"spec":{"template":{"spec":{"containers":[{"name":"web","image":"r.io/web:5"}]}}}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-v005-a","namespace":"shop","ownerReferences":[
			{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-v005","uid":"a0000000-0000-4000-8000-000000000005"}]}}`)
	w.Put("prod", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},"spec":{}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"web","namespace":"shop"}}`)
	row := history.Operation{ID: "01J00000000000000000000001", Account: "prod", Server: "s", Verb: vedette.VerbScale, Accepted: time.Now()}
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
		Projects: webProject{}, Artifacts: newArtifactAccounts(serveRepository(t)),
		Forwarding: acceptAll{},
		Agents: func(context.Context) ([]clouddriver.Agent, []vedette.ServerID) {
			return []clouddriver.Agent{{ID: "a1", Accounts: []clouddriver.AgentAccount{{Name: "prod", Reports: true}}}}, nil
		},
		Servers: func() []discover.Server { return []discover.Server{{ID: "s1"}} }})
	method, _, _ := strings.Cut(pattern, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, route.Path, strings.NewReader(route.Body))
	r.Header.Set("X-SPINNAKER-USER", "dev")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	if requests := c.requests(); strings.HasPrefix(authorizer.Denied(), "prod ") && len(requests) > 0 {
		t.Errorf("without %s: the cluster was asked %q", authorizer.Denied(), requests)
	}
	return authorizetest.Response{Code: recorder.Code, Body: recorder.Body.String()}, route
}
