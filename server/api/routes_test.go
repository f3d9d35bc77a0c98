package api_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/store"
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

func (a *recordingAuthorizer) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return func(account vedette.AccountName) bool { return a.check(string(account)+" READ") == nil }, nil
}

// routeAccess is what a route asks for before it answers.
type routeAccess struct {
	path, body string // of a request that succeeds for who may do everything
	permission string
	// filteredText is a text of the answer that is left out for who may not, where that is
	// no refusal.
	filteredText string
}

const openToAll = "open to everyone" // decision 20 says of what

// routeAccesses has an entry for each route.
var routeAccesses = map[string]routeAccess{
	"GET /vedette/v1/accounts":                                    {path: "/accounts", permission: openToAll},
	"GET /vedette/v1/accounts/{name}":                             {path: "/accounts/prod", permission: openToAll},
	"GET /vedette/v1/agents":                                      {path: "/agents", permission: openToAll},
	"GET /vedette/v1/feeds":                                       {path: "/feeds", permission: openToAll},
	"GET /vedette/v1/kinds":                                       {path: "/kinds", permission: openToAll},
	"GET /vedette/v1/objects":                                     {path: "/objects?kind=pods", permission: "prod READ", filteredText: "web-0"},
	"GET /vedette/v1/objects/{account}/{kind}/{namespace}/{name}": {path: "/objects/prod/pods/shop/web-0", permission: "prod READ"},
	"GET /vedette/v1/changes":                                     {path: "/changes?kind=pods&initial=true", permission: "prod READ", filteredText: "web-0"},
	"POST /vedette/v1/operations":                                 {path: "/operations", body: `{"account":"prod","verb":"restart","kind":"deployment","name":"web","dryRun":true}`, permission: "prod WRITE"},
	"GET /vedette/v1/operations":                                  {path: "/operations", permission: "prod READ", filteredText: "01J00000000000000000000001"},
	"GET /vedette/v1/operations/{id}":                             {path: "/operations/01J00000000000000000000001", permission: "prod READ"},
	"GET /vedette/v1/logs":                                        {path: "/logs?account=prod&namespace=shop&pod=web-0", permission: "prod READ"},
	"GET /vedette/v1/version":                                     {path: "/version", permission: openToAll},
	"GET /vedette/v1/openapi.yaml":                                {path: "/openapi.yaml", permission: openToAll},
	"GET /vedette/v1/openapi.json":                                {path: "/openapi.json", permission: openToAll},
}

// TestEveryRouteIsAuthorized fails for a route that accesses does not have, for one that
// asks for something else than stands there, and for one that answers though it
// was denied what it asked for.
func TestEveryRouteIsAuthorized(t *testing.T) {
	routes := slices.Sorted(slices.Values(api.Routes()))
	if listed := slices.Sorted(maps.Keys(routeAccesses)); !slices.Equal(routes, listed) {
		t.Fatalf("routes are\n%q, and accesses has\n%q: say what each asks for", routes, listed)
	}
	for pattern, entry := range routeAccesses {
		t.Run(pattern, func(t *testing.T) {
			method, _, _ := strings.Cut(pattern, " ")
			authorizer := &recordingAuthorizer{checked: map[string]bool{}}
			code, body := entry.do(t, method, authorizer)
			var want []string
			if entry.permission != openToAll {
				want = []string{entry.permission}
			}
			if got := slices.Sorted(maps.Keys(authorizer.checked)); code != http.StatusOK || !slices.Equal(got, want) || !strings.Contains(body, entry.filteredText) {
				t.Errorf("%d; it asks for %q, want %q: %s", code, got, want, body)
			}
			if entry.permission == openToAll {
				return
			}
			code, body = entry.do(t, method, &recordingAuthorizer{checked: map[string]bool{}, denied: entry.permission})
			if denied := code == http.StatusForbidden; denied == (entry.filteredText != "") || entry.filteredText != "" && strings.Contains(body, entry.filteredText) {
				t.Errorf("without %s: %d %s", entry.permission, code, body)
			}
		})
	}
}

// do sends the request of an entry to a world of its own. A stream is read until
// it is ready.
func (e routeAccess) do(t *testing.T, method string, authorizer *recordingAuthorizer) (int, string) {
	t.Helper()
	w := shopWorldOf(t, "prod")
	row := store.OperationRow{ID: "01J00000000000000000000001", Account: "prod", Server: "s", Verb: vedette.VerbScale, Accepted: time.Now()}
	if err := w.Store.BeginOperation(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	cfg := configOf(w)
	cfg.Authorizer = authorizer
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
	r, err := http.NewRequestWithContext(ctx, method, server.URL+"/vedette/v1"+e.path, strings.NewReader(e.body))
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
	return response.StatusCode, body.String()
}
