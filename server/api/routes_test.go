package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/authorize/authorizetest"
	"github.com/vedette-io/vedette/server/store/history"
)

var prodRead, prodWrite = []string{"prod READ"}, []string{"prod WRITE"}

// routes has an entry for each route. Decision 20 says why some
// are open to everyone.
var routes = map[string]authorizetest.Route{
	"GET /vedette/v1/accounts":                                    {Path: "/accounts", Open: true},
	"GET /vedette/v1/accounts/{name}":                             {Path: "/accounts/prod", Open: true},
	"DELETE /vedette/v1/accounts/{name}":                          {Path: "/accounts/prod", Permissions: prodWrite},
	"POST /vedette/v1/accounts/{name}/accept":                     {Path: "/accounts/prod/accept", Body: `{}`, Permissions: prodWrite},
	"POST /vedette/v1/accounts/{name}/release":                    {Path: "/accounts/prod/release", Body: `{}`, Permissions: prodWrite},
	"GET /vedette/v1/agents":                                      {Path: "/agents", Open: true},
	"GET /vedette/v1/feeds":                                       {Path: "/feeds", Open: true},
	"GET /vedette/v1/kinds":                                       {Path: "/kinds", Open: true},
	"GET /vedette/v1/served-kinds":                                {Path: "/served-kinds?name=pods", Permissions: prodRead, FilteredText: `"accounts":1`},
	"GET /vedette/v1/names":                                       {Path: "/names?of=objects&kind=pods", Permissions: prodRead, FilteredText: "web-0"},
	"GET /vedette/v1/objects":                                     {Path: "/objects?kind=pods", Permissions: prodRead, FilteredText: "web-0"},
	"GET /vedette/v1/objects/{account}/{kind}/{namespace}/{name}": {Path: "/objects/prod/pods/shop/web-0", Permissions: prodRead},
	"GET /vedette/v1/changes":                                     {Path: "/changes?kind=pods&initial=true", Permissions: prodRead, FilteredText: "web-0"},
	"POST /vedette/v1/operations":                                 {Path: "/operations", Body: `{"account":"prod","verb":"restart","kind":"deployment","name":"web","dryRun":true}`, Permissions: prodWrite},
	"GET /vedette/v1/operations":                                  {Path: "/operations", Permissions: prodRead, FilteredText: "01J00000000000000000000001"},
	"GET /vedette/v1/operations/{id}":                             {Path: "/operations/01J00000000000000000000001", Permissions: prodRead, Hides: true},
	"GET /vedette/v1/logs":                                        {Path: "/logs?account=prod&namespace=shop&pod=web-0", Permissions: prodRead},
	"GET /vedette/v1/version":                                     {Path: "/version", Open: true},
	"GET /vedette/v1/openapi.yaml":                                {Path: "/openapi.yaml", Open: true},
	"GET /vedette/v1/openapi.json":                                {Path: "/openapi.json", Open: true},
}

func TestEveryRouteIsAuthorized(t *testing.T) {
	authorizetest.CheckRoutes(t, api.Routes(), routes, sendRequest)
}

// sendRequest sends the request of a route to a server of its own. It reads streams until the
// event "ready".
func sendRequest(t *testing.T, pattern string, authorizer *authorizetest.Authorizer) (authorizetest.Response, authorizetest.Route) {
	t.Helper()
	method, _, _ := strings.Cut(pattern, " ")
	route := routes[pattern]
	w := shopWorldOf(t, "prod")
	row := history.Operation{ID: "01J00000000000000000000001", Account: "prod", Server: "s", Verb: vedette.VerbScale, Accepted: time.Now()}
	if err := w.Store.BeginOperation(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	cfg := configOf(w)
	cfg.Authorizer = authorizer
	cfg.Accounts = &fakeAccountAdmin{}
	cfg.Dispatch = &fakeDispatcher{do: func(_ context.Context, op vedette.Operation) vedette.Outcome {
		out := vedette.Outcome{State: vedette.Done, Status: 200}
		if op.Args.Verb() == vedette.VerbLogs {
			out.Stream = io.NopCloser(strings.NewReader("listening\n"))
		}
		return out
	}}
	server := httptest.NewServer(api.New(cfg))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, server.URL+"/vedette/v1"+route.Path, strings.NewReader(route.Body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(body.String(), "event: ready"); {
		n, err := response.Body.Read(buf)
		body.Write(buf[:n])
		if err != nil {
			break
		}
	}
	return authorizetest.Response{Code: response.StatusCode, Body: body.String()}, route
}
