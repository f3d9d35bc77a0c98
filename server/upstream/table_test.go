package upstream

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
)

// request is one request to an endpoint, and who must get it.
type request struct {
	path, body string
	local      bool
	theirs     bool
}

// deployTo returns an operation in an account.
func deployTo(account string) string { return `{"scaleManifest":{"account":"` + account + `"}}` }

// requestsTo returns the requests that show the mode of an endpoint.
func requestsTo(t *testing.T, e Endpoint) []request {
	t.Helper()
	path := func(pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			pairs[i] = "{" + pairs[i] + "}"
		}
		filled := strings.NewReplacer(pairs...).Replace("/" + e.Path())
		return regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(filled, "some%20$1")
	}
	const kubernetes, aws = "kubernetes", "aws"
	switch e.Mode {
	case Local:
		return []request{{path: path(), local: true}}
	case PassedOn:
		return []request{{path: path(), theirs: true}, {path: path(accountParam, ourAccount), theirs: true}}
	case Merged:
		return []request{{path: path(), local: true, theirs: true}}
	case ByAccount:
		return []request{{path: path(accountParam, ourAccount), local: true}, {path: path(accountParam, theirAccount), theirs: true}}
	case ByProvider:
		return []request{{path: path(providerParam, kubernetes), local: true, theirs: true}, {path: path(providerParam, aws), theirs: true}}
	case ByTask:
		requests := []request{{path: path(providerParam, kubernetes, taskParam, ourTask), local: true},
			{path: path(providerParam, kubernetes, taskParam, "01JOTHER"), theirs: true}}
		if strings.Contains(string(e.Pattern), providerParam) {
			requests = append(requests, request{path: path(providerParam, aws, taskParam, ourTask), theirs: true})
		}
		return requests
	case ByID:
		return []request{{path: path(idParam, "our-id"), local: true}, {path: path(idParam, theirID), theirs: true}}
	case ByBody:
		return []request{{path: path(providerParam, kubernetes), body: `{"account":"agents"}`, local: true},
			{path: path(providerParam, kubernetes), body: `{"account":"theirs"}`, theirs: true},
			{path: path(providerParam, kubernetes), body: `{}`, local: true},
			{path: path(providerParam, aws), body: `{"account":"agents"}`, theirs: true}}
	case ByArtifact:
		return artifactRequests(e, path)
	case ByOperations:
		return operationRequests(e, path)
	}
	t.Fatalf("%s: the test knows no requests for the mode %q", e.Pattern, e.Mode)
	return nil
}

func artifactRequests(e Endpoint, path func(...string) string) []request {
	if e.Method() == http.MethodPut {
		return []request{{path: path(), body: `{"type":"http/file","artifactAccount":"ours"}`, local: true},
			{path: path(), body: `{"type":"s3/object","artifactAccount":"ours"}`, theirs: true},
			{path: path(), body: `{"type":"http/file","artifactAccount":"other"}`, theirs: true},
			{path: path(), body: `{"type":"http/file"}`, local: true},
			{path: path(), body: `[`, local: true}}
	}
	return []request{{path: path(nameParam, "ours") + "?type=http%2Ffile", local: true}, {path: path(nameParam, "ours"), local: true},
		{path: path(nameParam, "ours") + "?type=helm%2Fchart", theirs: true}, {path: path(nameParam, "other"), theirs: true}}
}

func operationRequests(e Endpoint, path func(...string) string) []request {
	filled := path(providerParam, "kubernetes")
	if strings.Contains(string(e.Pattern), "{name}") {
		requests := []request{{path: filled, body: `{"account":"agents"}`, local: true}, {path: filled, body: `{"credentials":"theirs"}`, theirs: true},
			{path: filled, body: `{}`, local: true}}
		return append(requests, otherProvider(e, path, `{"account":"agents"}`, `{"account":"agents","cloudProvider":"aws"}`)...)
	}
	requests := []request{{path: filled, body: "[" + deployTo(ourAccount) + "]", local: true},
		{path: filled, body: "[" + deployTo(theirAccount) + "," + deployTo("unknown") + "]", theirs: true},
		{path: filled, body: "[" + deployTo(ourAccount) + "," + deployTo(theirAccount) + "]", local: true}, // it submits a part
		{path: filled, body: "[]", local: true}, {path: filled, body: "[", local: true}}
	return append(requests, otherProvider(e, path, "["+deployTo(ourAccount)+"]", `[{"resize":{"account":"agents","cloudProvider":"aws"}}]`)...)
}

// otherProvider returns a request for another cloud provider, which the path or the body names.
func otherProvider(e Endpoint, path func(...string) string, body, bodyWithProvider string) []request {
	if strings.Contains(string(e.Pattern), providerParam) {
		return []request{{path: path(providerParam, "aws"), body: body, theirs: true}}
	}
	return []request{{path: path(), body: bodyWithProvider, theirs: true}}
}

// TestEachEndpointReachesItsSide sends requests to each endpoint of the table, and checks who gets them, unchanged.
func TestEachEndpointReachesItsSide(t *testing.T) {
	w := newWorld(t, nil)
	w.local.answer = func(rw http.ResponseWriter, r *http.Request) {
		body := `[{"name":"ours","types":["http/file"]}]`
		if found := findRoute(Table(), r.Method, r.URL.EscapedPath()); found.stream != nil && found.stream.byAccount {
			body = `{}`
		}
		answerJSON(http.StatusOK, body)(rw, r)
	}
	for _, e := range Table() {
		t.Run(string(e.Pattern), func(t *testing.T) {
			for _, tt := range requestsTo(t, e) {
				w.local.requests()
				w.theirs.requests()
				_, _ = w.send(t, e.Method(), tt.path, tt.body)
				checkSide(t, w.local, e, tt, tt.local)
				checkSide(t, w.theirs, e, tt, tt.theirs)
			}
		})
	}
}

// checkSide checks that a side got the request once, or not at all.
func checkSide(t *testing.T, s *side, e Endpoint, tt request, want bool) {
	t.Helper()
	seen := s.requests()
	if s.name == "own" { // it is also asked for its artifact accounts, and whether it has a task
		seen = slices.DeleteFunc(seen, func(r *http.Request) bool {
			return e.Mode == ByArtifact && r.URL.Path == "/artifacts/credentials" || (e.Mode == ByTask || e.Mode == ByID) && (r.Method != e.Method() || isMissing(r))
		})
	}
	if len(seen) != map[bool]int{true: 1, false: 0}[want] {
		t.Errorf("%s %s %s: the side %s got %d requests, want it asked: %t", e.Method(), tt.path, tt.body, s.name, len(seen), want)
		return
	}
	for _, r := range seen {
		if r.Method != e.Method() || r.URL.RequestURI() != tt.path || r.Header.Get("Test-Body") != tt.body {
			t.Errorf("%s got %s %s with the body %s, want %s %s with %s", s.name, r.Method, r.URL.RequestURI(), r.Header.Get("Test-Body"),
				e.Method(), tt.path, tt.body)
		}
		if s.name == "theirs" && e.Policy == LastAnswer && resourceOf(r) != nil {
			continue // one request for all callers
		}
		if r.Header.Get("X-Spinnaker-User") != "ann@example.com" || r.Header.Get("X-Spinnaker-Accounts") != "agents,theirs" {
			t.Errorf("%s got the headers %v, want those of the caller", s.name, r.Header)
		}
	}
}

// TestEachOwnRouteIsInTheTable checks that no route of package clouddriver is passed on because the
// table lacks it.
func TestEachOwnRouteIsInTheTable(t *testing.T) {
	parameter := regexp.MustCompile(`\{\w+\}`)
	normalize := func(method, path string) string { return method + " " + parameter.ReplaceAllString(path, "{}") }
	modes := map[string]Mode{}
	for _, e := range Table() {
		key := normalize(e.Method(), e.Path())
		if modes[key] != "" {
			t.Errorf("%s is in the table twice", e.Pattern)
		}
		modes[key] = e.Mode
	}
	for _, pattern := range clouddriver.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		key := normalize(method, path)
		mode, ok := modes[key]
		if !ok || mode == PassedOn && !slices.Contains(deliberatelyPassedOn, key) {
			t.Errorf("the route %q has the mode %q: add it to the table, so that this server answers for agents' accounts", pattern, mode)
		}
	}
}

// deliberatelyPassedOn are routes, with {} for parameters, that package clouddriver has or may have
// and that the upstream Clouddriver answers if there is one.
var deliberatelyPassedOn = []string{"PUT admin/db/truncate/{}", "PUT admin/db/drop_version/{}", "GET artifacts/content-address/{}/{}",
	"GET {}/loadBalancers/{}", "GET cache/introspection", "PUT admin/db/drop/{}",
	// Stored accounts.
	"POST credentials", "PUT credentials", "PUT credentials/{}", "DELETE credentials/{}", "GET credentials/{}/history",
	// Questions about other providers, which are empty without an upstream Clouddriver.
	"GET networks", "GET networks/{}", "GET subnets", "GET subnets/{}", "GET vpcs", "GET instanceTypes", "GET keyPairs", "GET certificates",
	"GET certificates/{}", "GET roles/{}", "GET storage", "GET reports/reservation", "GET installedPlugins", "GET ecs/cloudMetrics/alarms",
	"GET ecs/{}", "GET aws/cloudFormation/stacks", "GET functions", "GET applications/{}/functions", "GET {}/images/find", "GET {}/images/tags",
	"GET {}/charts/find", "GET images/{}/{}", "GET tags", "GET tags/{}", "GET v1/data/static/{}"}

// TestEachMergedEndpointHasAMerge checks the table itself.
func TestEachMergedEndpointHasAMerge(t *testing.T) {
	for _, e := range Table() {
		isMerged := e.Mode == Merged || e.Mode == ByProvider
		if isMerged != (e.merge != nil || e.stream != nil) || e.merge != nil && e.stream != nil || isMerged != (e.Policy != "") {
			t.Errorf("%s has the mode %s, the policy %q, a merge: %t, and a stream: %t", e.Pattern, e.Mode, e.Policy, e.merge != nil, e.stream != nil)
		}
	}
}

// TestPathsBesideTheTable checks requests that no entry stands for.
func TestPathsBesideTheTable(t *testing.T) {
	w := newWorld(t, nil)
	for _, tt := range []struct{ name, method, path, want string }{
		{"an unknown path", "GET", "/ecs/serviceDiscovery?x=1&y=%20", "theirs"},
		{"the root", "GET", "/", "theirs"},
		{"a wrong method of an account's path", "POST", "/manifests/agents/ns/pod%20a", "own"},
		{"a wrong method of another account's path", "POST", "/manifests/theirs/ns/pod%20a", "theirs"},
		{"a wrong method of an own path", "POST", "/health", "own"},
		{"a trailing slash", "GET", "/manifests/agents/ns/pod%20a/", "own"},
		{"an empty segment", "GET", "/manifests/agents//node%20a", "own"},
		{"an empty segment, passed on", "GET", "/manifests/theirs//node%20a", "theirs"},
		{"an escaped slash in the account", "GET", "/manifests/agents%2Fx/ns/pod%20a", "theirs"},
		{"an escaped account", "GET", "/manifests/%61gents/ns/pod%20a", "own"},
		{"a colon", "POST", "/task/" + ourTask + ":resume", "own"},
		{"an operation that is forwarded", "POST", "/armory/agent/operations", "own"},
		{"a wrong method of an operation that is forwarded", "PUT", "/armory/agent/operations", "own"},
		{"what only the plugin has", "GET", "/armory/clouddrivers/sql/pool/settings", "theirs"},
		{"an account of agents that is to be deleted", "DELETE", "/armory/accounts/agents", "own"},
		{"another account that is to be deleted", "DELETE", "/armory/accounts/theirs", "theirs"},
		{"an account that is called dynamic", "GET", "/armory/accounts/dynamic", "theirs"},
		{"another case of the account", "GET", "/credentials/AGENTS", "theirs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, body := w.send(t, tt.method, tt.path, "")
			if body != "answer of "+tt.want {
				t.Errorf("got %d %s, want the answer of %s", response.StatusCode, body, tt.want)
			}
			for _, s := range []*side{w.local, w.theirs} {
				for _, r := range s.requests() {
					if r.Method == tt.method && r.URL.RequestURI() != tt.path { // own is also asked whether it has a task
						t.Errorf("%s got the path %s, want %s", s.name, r.URL.RequestURI(), tt.path)
					}
				}
			}
		})
	}
}
