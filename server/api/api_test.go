package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"sigs.k8s.io/yaml"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
)

// TestOpenAPIJSONMatchesYAML checks that openapi.json has the same content as openapi.yaml.
func TestOpenAPIJSONMatchesYAML(t *testing.T) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "openapi.json", string(want)+"\n")
}

// loadOpenAPI loads the document in the same way as clients do.
func loadOpenAPI(t testing.TB) (*openapi3.T, routers.Router) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return doc, router
}

// validatingClient validates every response against openapi.yaml.
type validatingClient struct {
	t        testing.TB
	url      string
	router   routers.Router
	doc      *openapi3.T
	answered map[string]bool // operations that have been requested
}

func serve(t testing.TB, cfg api.Config) *validatingClient {
	t.Helper()
	server := httptest.NewServer(api.New(cfg))
	t.Cleanup(server.Close)
	doc, router := loadOpenAPI(t)
	return &validatingClient{t: t, url: server.URL, router: router, doc: doc, answered: map[string]bool{}}
}

// get requests a path below /vedette/v1 and validates the response.
func (w *validatingClient) get(path string, headers ...string) (*http.Response, []byte) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+"/vedette/v1"+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.Header.Get("Accept-Encoding") == "" {
		w.validateResponse(r, response, body)
	}
	return response, body
}

func (w *validatingClient) validateResponse(r *http.Request, response *http.Response, body []byte) {
	w.t.Helper()
	described := r.Clone(r.Context())
	described.URL.Scheme, described.URL.Host = "", ""
	route, params, err := w.router.FindRoute(described)
	if err != nil {
		if response.StatusCode < 400 {
			w.t.Errorf("%s: got %d, which does not match openapi.yaml: %v", r.URL, response.StatusCode, err)
		}
		return
	}
	w.answered[route.Path] = true
	err = openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: described, PathParams: params, Route: route},
		Status:                 response.StatusCode, Header: response.Header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		w.t.Errorf("%s: %v", r.URL, err)
	}
}

// getJSON is like get, but the response must succeed and is decoded.
func getJSON[T any](w *validatingClient, path string) T {
	w.t.Helper()
	var v T
	response, body := w.get(path)
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: got %d %s, want 200", path, response.StatusCode, body)
	}
	if err := json.Unmarshal(body, &v); err != nil {
		w.t.Fatalf("%s: invalid JSON: %v: %s", path, err, body)
	}
	return v
}

type feedFreshness struct {
	Account, Kind, State, Message string
	Watermark                     *time.Time
	LagMs                         *int64
	Stale                         bool
}

type objectList struct {
	Items []struct {
		Account, Kind, APIVersion, Namespace, Name, UID, ResourceVersion string
		Created                                                          time.Time
		Labels                                                           map[string]string
		Owner                                                            *struct{ Kind, Name string }
		Moniker                                                          vedette.Moniker
		Summary                                                          map[string]any
		Manifest                                                         map[string]any
	}
	Total     int
	Cursor    string
	Stale     bool
	Watermark *time.Time
	Feeds     int
	Freshness []feedFreshness
	Unlisted  int
}

func (o objectList) names() string {
	var names []string
	for _, i := range o.Items {
		names = append(names, i.Account+"/"+i.Kind+"/"+i.Namespace+"/"+i.Name)
	}
	return strings.Join(names, " ")
}

func shopWorld(t testing.TB) *readtest.Fixture {
	w := shopWorldOf(t, "dev", "prod-1", "prod-3")
	w.Put("prod-1", readtest.CrashingPod("shop", "broken-0"), readtest.Pod("billing", "invoice-0", "invoice"))
	return w
}

// shopWorldOf returns a world whose accounts have a node, a Deployment and a pod each.
func shopWorldOf(t testing.TB, accounts ...vedette.AccountName) *readtest.Fixture {
	w := readtest.New(t)
	for _, account := range accounts {
		w.Account(account, "pods", "deployments", "nodes")
		w.Put(account, readtest.Node("node-1"), readtest.Deployment("shop", "web", 3), readtest.Pod("shop", "web-0", "web"))
	}
	return w
}

// configOf returns a configuration in which accounts do not become stale, however slow the test is:
// the agents of a fixture send no heartbeats.
func configOf(w *readtest.Fixture) api.Config {
	return api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet, StaleAfter: time.Hour, Version: "v1.2.3"}
}

func TestObjectsAreFiltered(t *testing.T) {
	w := serve(t, configOf(shopWorld(t)))
	for _, tt := range []struct{ name, query, want string }{
		{"a kind of one account", "account=dev&kind=pods", "dev/Pod/shop/web-0"},
		{"accounts by pattern", "account=prod-*&kind=deploy", "prod-1/Deployment.apps/shop/web prod-3/Deployment.apps/shop/web"},
		{"accounts and kinds as lists, in any case", "account=dev,prod-3&kind=NODE,Deployment.apps", "dev/Deployment.apps/shop/web dev/Node//node-1 prod-3/Deployment.apps/shop/web prod-3/Node//node-1"},
		{"accounts twice", "account=dev&account=prod-?&kind=no", "dev/Node//node-1 prod-1/Node//node-1 prod-3/Node//node-1"},
		{"a namespace", "namespace=billing", "prod-1/Pod/billing/invoice-0"},
		{"a name", "name=broken-0", "prod-1/Pod/shop/broken-0"},
		{"an application", "application=invoice", "prod-1/Pod/billing/invoice-0"},
		{"labels", "kind=po&selector=app+in+(broken,invoice)", "prod-1/Pod/billing/invoice-0 prod-1/Pod/shop/broken-0"},
		{"a kind that is cached, and one that is not", "kind=cronjobs,nodes&account=dev", "dev/Node//node-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &validatingClient{t: t, url: w.url, router: w.router, answered: map[string]bool{}}
			got := getJSON[objectList](w, "/objects?"+tt.query)
			if got.names() != tt.want || got.Total != len(got.Items) {
				t.Errorf("got  %s (%d)\nwant %s", got.names(), got.Total, tt.want)
			}
		})
	}
}

func TestObjectHasMetadataAndManifest(t *testing.T) {
	w := serve(t, configOf(shopWorld(t)))
	got := getJSON[objectList](w, "/objects?account=dev&kind=pods").Items[0]
	if got.APIVersion != "v1" || got.Owner == nil || got.Owner.Kind != "ReplicaSet.apps" || got.Labels["app"] != "web" ||
		got.Moniker.App != "web" || got.Moniker.Cluster != "replicaSet web" || got.Summary["phase"] != "Running" || got.Manifest != nil ||
		time.Since(got.Created) < 122*time.Hour || got.ResourceVersion == "" || got.UID == "" {
		t.Errorf("got %+v", got)
	}
	got = getJSON[objectList](w, "/objects?account=dev&kind=pods&include=body").Items[0]
	if got.Manifest["kind"] != "Pod" {
		t.Errorf("with include=body: got manifest %v", got.Manifest)
	}
	one := getJSON[struct {
		Name      string
		Manifest  map[string]any
		Feeds     int
		Freshness []feedFreshness
	}](w, "/objects/dev/node/_/node-1")
	if one.Name != "node-1" || one.Manifest["kind"] != "Node" || one.Feeds != 1 || len(one.Freshness) != 0 {
		t.Errorf("one object: got %+v", one)
	}
}

// TestInvalidBodyIsOmitted checks that an object with invalid JSON affects only itself.
func TestInvalidBodyIsOmitted(t *testing.T) {
	world := shopWorld(t)
	world.PutBody("dev", readtest.Pod("shop", "web-1", "web"), `{"kind":`)
	w := serve(t, configOf(world))
	got := getJSON[objectList](w, "/objects?account=dev&kind=pods&include=body")
	if len(got.Items) != 2 || got.Items[0].Manifest == nil || got.Items[1].Manifest != nil {
		t.Errorf("got %+v", got.Items)
	}
}

func TestPagesHaveEachObjectOnce(t *testing.T) {
	w := serve(t, configOf(shopWorld(t)))
	var names []string
	path := "/objects?limit=2"
	for cursor := ""; ; {
		page := getJSON[objectList](w, path+cursor)
		if len(page.Items) > 2 || page.Total != 11 {
			t.Fatalf("got a page of %d, total %d", len(page.Items), page.Total)
		}
		names = append(names, strings.Fields(page.names())...)
		if page.Cursor == "" {
			break
		}
		cursor = "&cursor=" + page.Cursor
	}
	if len(names) != 11 || !slices.IsSorted(names) || len(slices.Compact(names)) != 11 {
		t.Errorf("got pages with %v", names)
	}
}

type table struct {
	Kind    string
	Columns []struct {
		Name string
		Wide bool
	}
	Rows []struct {
		Account, Namespace, Name string
		Cells                    []string
	}
	Total int
}

func TestTableHasColumnsAndCells(t *testing.T) {
	w := serve(t, configOf(shopWorld(t)))
	got := getJSON[table](w, "/objects?account=prod-1&kind=pods&as=table")
	if got.Kind != "Pod" || got.Total != 3 || len(got.Rows) != 3 || got.Columns[1].Name != "STATUS" || !got.Columns[4].Wide {
		t.Fatalf("got %+v", got)
	}
	if cells := strings.Join(got.Rows[1].Cells[:4], "|"); got.Rows[1].Name != "broken-0" || cells != "0/1|CrashLoopBackOff|12 (12m ago)|3h30m" {
		t.Errorf("row %s: got %s", got.Rows[1].Name, cells)
	}
}

// TestSameErrorOfSeveral checks that a request with several errors gets the same answer each time.
func TestSameErrorOfSeveral(t *testing.T) {
	w := serve(t, configOf(shopWorld(t)))
	for path, want := range map[string]string{
		"/objects?zebra=1&ape=1&horse=1":                 `unknown parameter \"ape\"`,
		"/accounts/dev?y=1&x=1&z=1":                      `unknown parameter \"x\"`,
		"/objects?namespace=a&namespace=b&name=a&name=b": "the parameter name is",
		"/operations?user=a&user=b&agent=a&agent=b":      "the parameter agent is",
		"/operations?until=x&since=x&endedSince=x":       "endedSince",
	} {
		for range 100 {
			if response, body := w.get(path); response.StatusCode != 400 || !strings.Contains(string(body), want) {
				t.Errorf("%s: got %d %s, want %s", path, response.StatusCode, body, want)
				break
			}
		}
	}
}

func TestInvalidRequestsAreRejected(t *testing.T) {
	w := serve(t, configOf(shopWorld(t)))
	for _, tt := range []struct {
		name, path    string
		status        int
		kind, message string
	}{
		{"a misspelt parameter", "/objects?namespac=shop", 400, "invalid", `unknown parameter "namespac": did you mean namespace?`},
		{"an unknown parameter", "/objects?zebra=1", 400, "invalid", `use one of account, kind`},
		{"a parameter of a path without parameters", "/accounts/dev?x=1", 400, "invalid", "has no parameters"},
		{"a parameter twice", "/objects?namespace=a&namespace=b", 400, "invalid", "given 2 times"},
		{"a limit that is not a number", "/objects?limit=many", 400, "invalid", "from 1 to 5000"},
		{"a limit of 0", "/objects?limit=0", 400, "invalid", "from 1 to 5000"},
		{"too high a limit", "/objects?limit=5001", 400, "invalid", "from 1 to 5000"},
		{"an empty limit", "/objects?limit=", 400, "invalid", "from 1 to 5000"},
		{"an empty kind", "/objects?kind=", 400, "invalid", "omit it"},
		{"an empty account", "/objects?account=,", 400, "invalid", "omit it"},
		{"an invalid cursor", "/objects?cursor=zzz", 400, "invalid", "cursor"},
		{"an invalid selector", "/objects?selector=a%3Db%3Dc", 400, "invalid", "label selector"},
		{"an unknown value of include", "/objects?include=events", 400, "invalid", "must be body"},
		{"another form", "/objects?as=yaml", 400, "invalid", "must be table"},
		{"a table of two kinds", "/objects?as=table&kind=pods,nodes", 400, "invalid", "selects 2"},
		{"a table of all kinds", "/objects?as=table", 400, "invalid", "selects 0"},
		{"a misspelt kind", "/objects?kind=pds", 400, "unknown_kind", "did you mean pods"},
		{"a kind that no account caches", "/objects?kind=cronjobs&name=x", 409, "not_cached", "no agent of 3 accounts reports CronJob.batch: ask the clusters"},
		{"a kind that no account caches, in one", "/objects?kind=cronjobs&account=dev", 409, "not_cached", "no agent of 1 account reports CronJob.batch"},
		{"a stream of a kind that no account caches", "/changes?kind=cronjobs", 409, "not_cached", "no agent of 3 accounts"},
		{"a pattern that matches nothing", "/objects?account=zzz*,y*", 404, "not_found", "no account matches zzz*, y*: there are dev, prod-1 and prod-3"},
		{"accounts that match nothing", "/accounts?account=zzz*", 404, "not_found", "no account matches zzz*"},
		{"agents of accounts that match nothing", "/agents?account=zzz*", 404, "not_found", "no account matches zzz*"},
		{"feeds of accounts that match nothing", "/feeds?account=zzz*", 404, "not_found", "no account matches zzz*"},
		{"kinds of accounts that match nothing", "/kinds?account=zzz*", 404, "not_found", "no account matches zzz*"},
		{"served kinds of accounts that match nothing", "/served-kinds?account=zzz*", 404, "not_found", "no account matches zzz*"},
		{"operations of accounts that match nothing", "/operations?account=zzz*", 404, "not_found", "no account matches zzz*"},
		{"a stream of accounts that match nothing", "/changes?account=zzz*", 404, "not_found", "no account matches zzz*"},
		{"a misspelt account", "/objects?account=prod-2", 404, "not_found", "did you mean prod-1 or prod-3?"},
		{"an unknown account", "/accounts/zebra", 404, "not_found", `there is no account "zebra": there are dev, prod-1 and prod-3`},
		{"a missing object", "/objects/dev/pods/shop/nope", 404, "not_found", "account dev has no Pod shop/nope"},
		{"an object of an unknown account", "/objects/zebra/pods/shop/nope", 404, "not_found", "there is no account"},
		{"a namespace for a cluster-scoped kind", "/objects/dev/nodes/shop/node-1", 400, "invalid", "is cluster-scoped"},
		{"no namespace for a namespaced kind", "/objects/dev/pods/_/web-0", 400, "invalid", "is namespaced"},
		{"an invalid query", "/objects?%zz", 400, "invalid", "cannot be read"},
		{"no path", "/nope", 404, "not_found", "no path /vedette/v1/nope"},
		{"a stream of a misspelt kind", "/changes?kind=pds", 400, "unknown_kind", "did you mean pods"},
		{"a stream with an invalid selector", "/changes?selector=(", 400, "invalid", "label selector"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &validatingClient{t: t, url: w.url, router: w.router, answered: map[string]bool{}}
			response, body := w.get(tt.path)
			var got struct {
				Error struct{ Kind, Message string }
			}
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatalf("invalid JSON: %v: %s", err, body)
			}
			if response.StatusCode != tt.status || got.Error.Kind != tt.kind || !strings.Contains(got.Error.Message, tt.message) {
				t.Errorf("got %d %+v, want %d %s with %q", response.StatusCode, got.Error, tt.status, tt.kind, tt.message)
			}
		})
	}
}

func TestMethodNotAllowedAndHead(t *testing.T) {
	w := serve(t, configOf(shopWorld(t)))
	response, err := http.Post(w.url+"/vedette/v1/objects", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 405 || response.Header.Get("Allow") != "GET, HEAD" || !bytes.Contains(body, []byte(`"method_not_allowed"`)) {
		t.Errorf("POST: got %d, Allow %q, %s, %v", response.StatusCode, response.Header.Get("Allow"), body, err)
	}
	for path, header := range map[string]string{"/objects": "ETag", "/changes": "Content-Type"} { // the last one must not block
		head, err := http.Head(w.url + "/vedette/v1" + path)
		if err != nil {
			t.Fatal(err)
		}
		head.Body.Close()
		if head.StatusCode != 200 || head.Header.Get(header) == "" {
			t.Errorf("HEAD %s: got %d %v", path, head.StatusCode, head.Header)
		}
	}
}

func TestAnswersNameStaleFeeds(t *testing.T) {
	world := shopWorld(t)
	world.SetFeedState("prod-1", vedette.Kind{Group: "apps", Name: "Deployment"}, vedette.FeedDenied, "deployments.apps is forbidden")
	world.SetFeedState("dev", vedette.Kind{Name: "Node"}, vedette.FeedFailing, "connection refused")
	world.Fleet.Disconnect("prod-3")
	w := serve(t, configOf(world))

	pods := getJSON[objectList](w, "/objects?kind=pods")
	if !pods.Stale || pods.Watermark == nil || pods.Feeds != 3 || len(pods.Freshness) != 1 || pods.Unlisted != 0 {
		t.Fatalf("got stale %v, watermark %v and %d feeds: %+v", pods.Stale, pods.Watermark, pods.Feeds, pods.Freshness)
	}
	f := pods.Freshness[0]
	if f.Account != "prod-3" || f.Kind != "Pod" || f.State != "live" || !f.Stale || f.LagMs == nil || f.Watermark == nil || *f.LagMs > 10_000 ||
		f.Message != "no agent is connected for this account" || f.Watermark.Before(*pods.Watermark) {
		t.Errorf("freshness: got %+v, want the pods of prod-3 with a watermark that is not before %v", f, pods.Watermark)
	}
	if got := getJSON[objectList](w, "/objects?account=dev,prod-1&kind=pods"); got.Stale || got.Feeds != 2 || len(got.Freshness) != 0 || got.Watermark == nil {
		t.Errorf("got %+v, want two fresh accounts", got)
	}
	if got := getJSON[objectList](w, "/objects?account=dev&kind=nodes"); !got.Stale || got.Freshness[0].State != "failing" || got.Freshness[0].Message != "connection refused" {
		t.Errorf("a failing feed: got %+v", got.Freshness)
	}
	if got := getJSON[objectList](w, "/objects?account=prod-1&kind=cronjobs,pods"); got.Stale || len(got.Freshness) != 1 || got.Freshness[0].State != "absent" {
		t.Errorf("a kind that is not cached: got %+v", got.Freshness)
	}
	for name, stale := range map[string]bool{"dev": true, "prod-1": false, "prod-3": true} {
		account := getJSON[struct {
			Stale bool
			LagMs *int64
			Feeds map[string]int
		}](w, "/accounts/"+name)
		state := map[bool]string{true: "stale", false: "live"}[name == "prod-3"]
		if account.Stale != stale || account.LagMs == nil || account.Feeds[state] == 0 {
			t.Errorf("account %s: got %+v, want stale %v", name, account, stale)
		}
	}
}

// TestFeedIsStaleAfterStaleAfter checks a feed whose connected agent reports nothing for some
// time.
func TestFeedIsStaleAfterStaleAfter(t *testing.T) {
	world := shopWorld(t)
	cfg := configOf(world)
	cfg.StaleAfter = time.Nanosecond
	if got := getJSON[objectList](serve(t, cfg), "/objects?account=dev&kind=pods"); !got.Stale {
		t.Errorf("got %+v", got.Freshness)
	}
}

func TestFleetIsListedAndFiltered(t *testing.T) {
	world := shopWorld(t)
	world.Fleet.SetAgents(api.Agent{ID: "a1", Version: "v1", Server: "s1", Connected: time.Now(), LastHeartbeat: time.Now(),
		Accounts: []api.AgentAccount{{Name: "dev", Role: api.Cacher}, {Name: "prod-1", Role: api.Refused, Message: "why"}}}, api.Agent{ID: "a2", Version: "v1", Server: "s1"})
	w := serve(t, configOf(world))
	type items struct {
		Items []struct {
			ID, Name, Kind, Account, State string
			Objects                        int
			Accounts                       []any
		}
		Total int
	}
	if got := getJSON[items](w, "/agents"); got.Total != 2 || got.Items[0].ID != "a1" || len(got.Items[0].Accounts) != 2 {
		t.Errorf("agents %+v", got)
	}
	if got := getJSON[items](w, "/agents?account=d*"); got.Total != 1 {
		t.Errorf("agents of d*: got %+v", got)
	}
	if got := getJSON[items](w, "/accounts?account=prod-*"); got.Total != 2 || got.Items[0].Name != "prod-1" || got.Items[0].Objects != 5 {
		t.Errorf("accounts %+v", got)
	}
	if got := getJSON[items](w, "/feeds?account=dev&kind=po"); got.Total != 1 || got.Items[0].Kind != "Pod" || got.Items[0].Objects != 1 {
		t.Errorf("feeds %+v", got)
	}
	if got := getJSON[items](w, "/kinds"); got.Total != 3 || got.Items[2].Kind != "Pod" || got.Items[2].Objects != 5 || len(got.Items[2].Accounts) != 3 {
		t.Errorf("kinds %+v", got)
	}
	if got := getJSON[struct{ Version string }](w, "/version"); got.Version != "v1.2.3" {
		t.Errorf("version %+v", got)
	}
	world.Account("new", "pods") // new accounts are found at once
	if got := getJSON[struct{ Name string }](w, "/accounts/new"); got.Name != "new" {
		t.Errorf("a new account: got %+v", got)
	}
}

// TestConfigOfAgents checks how the configurations of agents are shown, and that those of older agents
// are not.
func TestConfigOfAgents(t *testing.T) {
	world, since := shopWorld(t), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	world.Fleet.SetAgents(api.Agent{ID: "a1", Config: api.AgentConfig{Since: since, Current: true, Reason: "InEffect", Message: "/a.yml"}},
		api.Agent{ID: "a2", Config: api.AgentConfig{Since: since, Reason: "Rejected", Message: "agent.yml:1:1: why"}}, api.Agent{ID: "a3"})
	got := getJSON[struct {
		Items []struct {
			ID         string
			Conditions []map[string]string
		}
	}](serve(t, configOf(world)), "/agents")
	want := []map[string]string{
		{"type": "ConfigCurrent", "status": "True", "reason": "InEffect", "message": "/a.yml", "since": "2026-01-02T03:04:05.000Z", "lastTransitionTime": "2026-01-02T03:04:05.000Z"},
		{"type": "ConfigCurrent", "status": "False", "reason": "Rejected", "message": "agent.yml:1:1: why", "since": "2026-01-02T03:04:05.000Z", "lastTransitionTime": "2026-01-02T03:04:05.000Z"},
		nil,
	}
	for i, agent := range got.Items {
		if want[i] == nil && agent.Conditions != nil || want[i] != nil && (len(agent.Conditions) != 1 || !maps.Equal(agent.Conditions[0], want[i])) {
			t.Errorf("%s: got %v, want %v", agent.ID, agent.Conditions, want[i])
		}
	}
}

// TestAccountMessageIncludesOtherAgents checks that an account's message includes conflicting
// registrations of other agents, but not their other errors.
func TestAccountMessageIncludesOtherAgents(t *testing.T) {
	world := shopWorld(t)
	agent := func(id vedette.AgentID, role api.Role, message, notice string) api.Agent {
		return api.Agent{ID: id, Accounts: []api.AgentAccount{{Name: "dev", Role: role, Message: message, Notice: notice}}}
	}
	world.Fleet.SetAgents(agent("agent-dev", api.Cacher, "the cluster is slow", ""), agent("a2", api.Standby, "other permissions", "other permissions"),
		agent("a3", api.Refused, "another cluster", "another cluster"), agent("a4", "reaching", "I say what I like", ""))
	got := getJSON[struct{ Message string }](serve(t, configOf(world)), "/accounts/dev").Message
	if want := "the cluster is slow; agent a2: other permissions; agent a3: another cluster"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUnchangedAnswersAreNotSent(t *testing.T) {
	world := shopWorld(t)
	w := serve(t, configOf(world))
	first, _ := w.get("/objects?kind=nodes")
	tag := first.Header.Get("ETag")
	world.Fleet.Connect("dev") // only time passes
	second, body := w.get("/objects?kind=nodes", "If-None-Match", tag)
	if second.StatusCode != http.StatusNotModified || len(body) > 0 || second.Header.Get("Vedette-Stale") != "false" || second.Header.Get("Vedette-Watermark") == "" {
		t.Errorf("got %d with %d bytes, %v", second.StatusCode, len(body), second.Header)
	}
	world.Fleet.Disconnect("dev")
	if third, _ := w.get("/objects?kind=nodes", "If-None-Match", tag); third.StatusCode != http.StatusOK || third.Header.Get("Vedette-Stale") != "true" {
		t.Errorf("after the agent was lost: got %d", third.StatusCode)
	}
}

func TestAnswersAreCompressed(t *testing.T) {
	w := serve(t, configOf(shopWorld(t)))
	response, body := w.get("/objects", "Accept-Encoding", "gzip")
	if response.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("got headers %v", response.Header)
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil || !json.Valid(plain) || len(plain) <= len(body) {
		t.Errorf("got %d bytes from %d: %v", len(plain), len(body), err)
	}
}

// TestRoutesMatchOpenAPI checks that openapi.yaml and the server have the same paths.
func TestRoutesMatchOpenAPI(t *testing.T) {
	w := serve(t, configOf(shopWorld(t)))
	served := api.Paths()
	for _, path := range served {
		if w.doc.Paths.Value(path) == nil {
			t.Errorf("%s is served but missing in openapi.yaml", path)
		}
	}
	for path := range w.doc.Paths.Map() {
		if !slices.Contains(served, path) {
			t.Errorf("%s is in openapi.yaml but not served", path)
		}
	}
	for _, path := range []string{"/operations", "/accounts", "/accounts/dev", "/agents", "/feeds", "/kinds", "/names?of=accounts", "/served-kinds", "/objects", "/objects/dev/pods/shop/web-0", "/version", "/openapi.yaml", "/openapi.json"} {
		if response, body := w.get(path); response.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d %s, want %d", path, response.StatusCode, body, http.StatusOK)
		}
	}
	for _, path := range served {
		hasOwnTest := strings.HasPrefix(path, "/vedette/v1/operations/") || slices.Contains([]string{"/vedette/v1/changes", "/vedette/v1/logs",
			"/vedette/v1/accounts/{name}/accept", "/vedette/v1/accounts/{name}/release"}, path)
		if !w.answered[path] && !hasOwnTest { // those have tests of their own
			t.Errorf("%s was not requested by any test", path)
		}
	}
}

// failingListStore is a store whose database driver fails.
type failingListStore struct {
	*store.Store
	err error
}

func (b failingListStore) Objects(context.Context, read.Query) (read.Page, error) {
	return read.Page{}, b.err
}

func TestInternalErrorsAreNotShown(t *testing.T) {
	world := shopWorld(t)
	var log bytes.Buffer
	cfg := configOf(world)
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	cfg.Store = failingListStore{world.Store, errors.New("password of the database is hunter2")}
	response, body := serve(t, cfg).get("/objects")
	var got struct {
		Error struct{ Kind, Message, ID string }
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != 500 || got.Error.Kind != "internal" || got.Error.Message != "internal error" {
		t.Errorf("got %d %s, want %d", response.StatusCode, body, 500)
	}
	if !strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), got.Error.ID) {
		t.Errorf("got log %s", log.String())
	}
	cfg.Store = failingListStore{world.Store, vedette.Errorf(vedette.Unavailable, "the database does not answer")}
	if response, body := serve(t, cfg).get("/objects"); response.StatusCode != 503 {
		t.Errorf("got %d %s, want %d", response.StatusCode, body, 503)
	}
}
