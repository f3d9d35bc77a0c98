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

func (a *asked) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return func(account vedette.AccountName) bool { return a.ask(string(account)+" READ") == nil }, nil
}

// access is what a route asks for before it answers.
type access struct {
	path, body string // of a request that succeeds for who may do everything
	ask        string
	// filters is a text of the answer that is left out for who may not, where that is
	// no refusal.
	filters string
}

const open = "open to everyone" // decision 20 says of what

// accesses has an entry for each route.
var accesses = map[string]access{
	"GET /vedette/v1/accounts":                                    {path: "/accounts", ask: open},
	"GET /vedette/v1/accounts/{name}":                             {path: "/accounts/prod", ask: open},
	"GET /vedette/v1/agents":                                      {path: "/agents", ask: open},
	"GET /vedette/v1/feeds":                                       {path: "/feeds", ask: open},
	"GET /vedette/v1/kinds":                                       {path: "/kinds", ask: open},
	"GET /vedette/v1/objects":                                     {path: "/objects?kind=pods", ask: "prod READ", filters: "web-0"},
	"GET /vedette/v1/objects/{account}/{kind}/{namespace}/{name}": {path: "/objects/prod/pods/shop/web-0", ask: "prod READ"},
	"GET /vedette/v1/changes":                                     {path: "/changes?kind=pods&initial=true", ask: "prod READ", filters: "web-0"},
	"POST /vedette/v1/operations":                                 {path: "/operations", body: `{"account":"prod","verb":"restart","kind":"deployment","name":"web","dryRun":true}`, ask: "prod WRITE"},
	"GET /vedette/v1/operations":                                  {path: "/operations", ask: "prod READ", filters: "01J00000000000000000000001"},
	"GET /vedette/v1/operations/{id}":                             {path: "/operations/01J00000000000000000000001", ask: "prod READ"},
	"GET /vedette/v1/logs":                                        {path: "/logs?account=prod&namespace=shop&pod=web-0", ask: "prod READ"},
	"GET /vedette/v1/version":                                     {path: "/version", ask: open},
	"GET /vedette/v1/openapi.yaml":                                {path: "/openapi.yaml", ask: open},
	"GET /vedette/v1/openapi.json":                                {path: "/openapi.json", ask: open},
}

// TestEveryRouteAsks fails for a route that accesses does not have, for one that
// asks for something else than stands there, and for one that answers though it
// was denied what it asked for.
func TestEveryRouteAsks(t *testing.T) {
	routes := slices.Sorted(slices.Values(api.Routes()))
	if listed := slices.Sorted(maps.Keys(accesses)); !slices.Equal(routes, listed) {
		t.Fatalf("routes are\n%q, and accesses has\n%q: say what each asks for", routes, listed)
	}
	for pattern, entry := range accesses {
		t.Run(pattern, func(t *testing.T) {
			method, _, _ := strings.Cut(pattern, " ")
			all := &asked{things: map[string]bool{}}
			code, body := entry.call(t, method, all)
			var want []string
			if entry.ask != open {
				want = []string{entry.ask}
			}
			if got := slices.Sorted(maps.Keys(all.things)); code != http.StatusOK || !slices.Equal(got, want) || !strings.Contains(body, entry.filters) {
				t.Errorf("%d; it asks for %q, want %q: %s", code, got, want, body)
			}
			if entry.ask == open {
				return
			}
			code, body = entry.call(t, method, &asked{things: map[string]bool{}, denied: entry.ask})
			if refused := code == http.StatusForbidden; refused == (entry.filters != "") || entry.filters != "" && strings.Contains(body, entry.filters) {
				t.Errorf("without %s: %d %s", entry.ask, code, body)
			}
		})
	}
}

// call sends the request of an entry to a world of its own. A stream is read until
// it is ready.
func (e access) call(t *testing.T, method string, authority *asked) (int, string) {
	t.Helper()
	w := shopOf(t, "prod")
	row := store.OperationRow{ID: "01J00000000000000000000001", Account: "prod", Server: "s", Verb: vedette.VerbScale, Accepted: time.Now()}
	if err := w.Store.BeginOperation(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	cfg := configOf(w)
	cfg.Authority = authority
	cfg.Operations = &agents{do: func(_ context.Context, op vedette.Operation) vedette.Outcome {
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
