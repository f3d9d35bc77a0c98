package upstream

import (
	"net/http"
	"strings"
	"testing"
)

// mergeCase is both answers to a request, and the merged one. A body that is empty stands for 404.
type mergeCase struct{ name, pattern, path, local, theirs, want string }

// mergeCases has at least one case for each endpoint that is merged.
var mergeCases = []mergeCase{
	{"accounts", "credentials", "/credentials?expand=true",
		`[{"name":"agents","type":"kubernetes","cacheThreads":1.0}]`,
		`[{"name":"agents","type":"kubernetes","environment":"stale"},{"name":"theirs","type":"aws","x":[1.50,{"name":"agents"}]}]`,
		`[{"name":"agents","type":"kubernetes","cacheThreads":1.0},{"name":"theirs","type":"aws","x":[1.50,{"name":"agents"}]}]`},
	{"accounts of which this server has none", "credentials", "/credentials", `[]`, `[ {"name":"theirs"} ]`, `[{"name":"theirs"}]`},
	{"stored accounts, by name", "credentials/type/{type}", "/credentials/type/kubernetes", `[{"name":"agents"}]`,
		`[{"name":"B"},{"name":"agents"},{"name":"z"}]`, `[{"name":"agents"},{"name":"B"},{"name":"z"}]`},
	{"stored accounts, which this server does not list", "credentials/type/{type}", "/credentials/type/aws", ``, `[{"name":"a"},{"name":"agents"}]`,
		`[{"name":"a"}]`},
	{"agents", "armory/agents", "/armory/agents", `[{"agentId":"a","accounts":["moved"]}]`, `[{"agentId":"b","accounts":["moved","theirs"]},{"agentId":"a"}]`,
		`[{"agentId":"a","accounts":["moved"]},{"agentId":"b","accounts":["moved","theirs"]},{"agentId":"a"}]`},
	{"agents in front of a Clouddriver without the plugin", "armory/agents", "/armory/agents", `[{"agentId":"a"}]`, ``, `[{"agentId":"a"}]`},
	{"agents, with a slash", "armory/agents", "/armory/agents/", `[{"agentId":"a"}]`, `[{"agentId":"b"}]`, `[{"agentId":"a"},{"agentId":"b"}]`},
	{"servers, of which both list one", "armory/clouddrivers", "/armory/clouddrivers", `[{"id":"a","ready":true},{"id":"b"}]`,
		`[{"id":"spin-clouddriver-1"},{"id":"a","ready":false},{"x":1},{"x":2}]`, `[{"id":"a","ready":true},{"id":"b"},{"id":"spin-clouddriver-1"},{"x":1},{"x":2}]`},
	{"servers in front of a Clouddriver without the plugin", "armory/clouddrivers", "/armory/clouddrivers", `[{"id":"a"}]`, ``, `[{"id":"a"}]`},
	{"operations, the newest first", "armory/agent/operations", "/armory/agent/operations?items=3&page=1",
		`[{"operationId":"4","startTime":1700000000400},{"operationId":"1","startTime":1700000000100}]`,
		`[{"operationId":"3","startTime":1700000000300},{"operationId":"1b","startTime":1700000000100},{"operationId":"odd","startTime":6502796751},{"operationId":"x"}]`,
		`[{"operationId":"4","startTime":1700000000400},{"operationId":"3","startTime":1700000000300},{"operationId":"1","startTime":1700000000100},` +
			`{"operationId":"1b","startTime":1700000000100},{"operationId":"odd","startTime":6502796751},{"operationId":"x"}]`},
	{"operations in front of a Clouddriver without the plugin", "armory/agent/operations", "/armory/agent/operations", `[{"startTime":2}]`, ``, `[{"startTime":2}]`},
	{"accounts with their agents", "armory/accounts", "/armory/accounts?limit=100",
		`{"items":[{"name":"agents","status":"ACTIVE"}],"page":1,"limit":100,"total":1}`,
		`{"items":[{"name":"agents","status":"ORPHANED"},{"name":"theirs","status":"ACTIVE"}],"page":1,"limit":100,"total":342}`,
		`{"items":[{"name":"agents","status":"ACTIVE"},{"name":"theirs","status":"ACTIVE"}],"page":1,"limit":100,"total":343}`},
	{"accounts with their agents, which only this server has", "armory/accounts", "/armory/accounts", `{"items":[],"page":1,"limit":100,"total":0}`, ``,
		`{"items":[],"page":1,"limit":100,"total":0}`},
	{"running tasks", "task", "/task", `[{"id":"1"}]`, `[{"id":"2"}]`, `[{"id":"1"},{"id":"2"}]`},
	{"stages", "features/stages", "/features/stages", `[{"name":"deployManifest","enabled":true}]`,
		`[{"name":"deployManifest","enabled":false},{"name":"upsertEntityTags","enabled":true}]`,
		`[{"name":"deployManifest","enabled":true},{"name":"upsertEntityTags","enabled":true}]`},
	{"pending refreshes", "cache/{provider}/{type}", "/cache/kubernetes/manifest", `[]`, `[{"id":"x"}]`, `[{"id":"x"}]`},
	{"applications, by name", "applications", "/applications?restricted=false",
		`[{"name":"web","attributes":{"name":"web"},"clusterNames":{"agents":["deployment web"]}}]`,
		`[{"name":"Api","attributes":{"name":"Api"},"clusterNames":{"theirs":["api"]}},` +
			`{"name":"web","attributes":{"name":"web","email":"a@b"},"clusterNames":{"agents":["stale"],"theirs":["web-v1"]}},` +
			`{"name":"moved","attributes":{"name":"moved"},"clusterNames":{"agents":["deployment moved"]}},` +
			`{"name":"zero","attributes":{"name":"zero"},"clusterNames":{}}]`,
		`[{"name":"Api","attributes":{"name":"Api"},"clusterNames":{"theirs":["api"]}},` +
			`{"name":"web","attributes":{"email":"a@b","name":"web"},"clusterNames":{"agents":["deployment web"],"theirs":["web-v1"]}},` +
			`{"name":"zero","attributes":{"name":"zero"},"clusterNames":{}}]`},
	{"applications that several providers know", "applications", "/applications", `[]`,
		`[{"name":"web","attributes":{"name":"web"},"clusterNames":{"a":["x"]}},{"name":"web","attributes":{},"clusterNames":{"b":["y"]}}]`,
		`[{"name":"web","attributes":{"name":"web"},"clusterNames":{"a":["x"],"b":["y"]}}]`},
	{"an application", "applications/{app}", "/applications/web",
		`{"name":"web","attributes":{"name":"web","cloudProviders":"kubernetes"},"clusters":{"agents":[{"name":"deployment web"}]}}`,
		`{"name":"web","attributes":{"name":"web","cloudProviders":"aws,kubernetes"},"clusters":{"agents":[{"name":"stale"}],"theirs":[{"name":"web"}]}}`,
		`{"name":"web","attributes":{"cloudProviders":"aws,kubernetes","name":"web"},"clusters":{"agents":[{"name":"deployment web"}],"theirs":[{"name":"web"}]}}`},
	{"an application that only this server knows", "applications/{app}", "/applications/web", `{"name":"web","clusters":{"agents":[]}}`, ``,
		`{"name":"web","clusters":{"agents":[]}}`},
	{"an application that only the other knows", "applications/{app}", "/applications/web", ``,
		`{"name":"web","attributes":{"cloudProviders":"aws"},"clusters":{"theirs":[]}}`,
		`{"name":"web","attributes":{"cloudProviders":"aws"},"clusters":{"theirs":[]}}`},
	{"an application whose clusters moved to agents and are gone", "applications/{app}", "/applications/web", ``,
		`{"name":"web","attributes":{},"clusters":{"agents":[{"name":"stale"}]}}`, ``},
	{"an application that nobody knows", "applications/{app}", "/applications/web", ``, ``, ``},
	{"clusters", "applications/{app}/clusters", "/applications/web/clusters", `{"agents":["deployment web"]}`, `{"agents":["stale"],"theirs":["web"]}`,
		`{"agents":["deployment web"],"theirs":["web"]}`},
	{"no clusters", "applications/{app}/clusters", "/applications/web/clusters", `{}`, `{ }`, `{}`},
	{"server groups", "applications/{app}/serverGroups", "/applications/web/serverGroups?expand=false",
		`[{"name":"replicaSet a","account":"agents"}]`, `[{"name":"replicaSet b","account":"agents"},{"account":"theirs","name":"a-v001"},{"name":"none"}]`,
		`[{"name":"replicaSet a","account":"agents"},{"account":"theirs","name":"a-v001"},{"name":"none"}]`},
	{"server groups of several applications", "serverGroups", "/serverGroups?applications=a,b", `[{"account":"agents"}]`, `[{"account":"theirs"},{"account":7}]`,
		`[{"account":"agents"},{"account":"theirs"},{"account":7}]`},
	{"server groups that are there twice", "applications/{app}/serverGroups", "/applications/web/serverGroups", `[]`,
		`[{"account":"theirs","name":"a"},{"account":"theirs","name":"b"},{"account":"theirs","name":"a"},{"account":"theirs","name":"a","x":1}]`,
		`[{"account":"theirs","name":"a"},{"account":"theirs","name":"b"},{"account":"theirs","name":"a","x":1}]`},
	{"accounts that are there twice", "credentials", "/credentials", `[]`, `[{"name":"theirs"},{"name":"theirs","type":"aws"}]`, `[{"name":"theirs"}]`},
	{"managers", "applications/{app}/serverGroupManagers", "/applications/web/serverGroupManagers", `[{"account":"agents"}]`, `[{"account":"agents","x":1}]`,
		`[{"account":"agents"}]`},
	{"load balancers, by name", "applications/{app}/loadBalancers", "/applications/web/loadBalancers", `[{"name":"service web","account":"agents"}]`,
		`[{"name":"Elb","account":"theirs"},{"name":"z","account":"theirs"}]`,
		`[{"name":"Elb","account":"theirs"},{"name":"service web","account":"agents"},{"name":"z","account":"theirs"}]`},
	{"load balancers of the provider", "{provider}/loadBalancers", "/kubernetes/loadBalancers", `[]`, `[{"account":"theirs"}]`, `[{"account":"theirs"}]`},
	{"raw resources", "applications/{app}/rawResources", "/applications/web/rawResources", `[{"account":"agents"}]`, `[{"account":"theirs"}]`,
		`[{"account":"agents"},{"account":"theirs"}]`},
	{"security groups", "securityGroups", "/securityGroups", `{"agents":{"kubernetes":{"shop":[]}}}`, `{"agents":{},"theirs":{"aws":{"eu":[{"id":"sg"}]}}}`,
		`{"agents":{"kubernetes":{"shop":[]}},"theirs":{"aws":{"eu":[{"id":"sg"}]}}}`},
	{"a project, in the order of its configuration", "projects/{project}/clusters", "/projects/shop/clusters",
		`[{"account":"theirs","stack":"*","detail":"*","applications":[]},{"account":"agents","stack":"*","detail":"*","x":1}]`,
		`[{"account":"theirs","stack":"*","detail":"*","applications":[1]},{"account":"agents","stack":"*","detail":"*","x":2},{"account":"theirs","stack":"a","detail":"*"}]`,
		`[{"account":"theirs","stack":"*","detail":"*","applications":[1]},{"account":"agents","stack":"*","detail":"*","x":1},{"account":"theirs","stack":"a","detail":"*"}]`},
	{"search", "search", "/search?q=web&type=serverGroups&pageSize=500",
		`[{"totalMatches":2,"pageNumber":1,"pageSize":500,"platform":"aws","query":"web","results":[{"type":"serverGroups","account":"agents"},{"type":"applications","application":"web"}]}]`,
		`[{"totalMatches":7,"pageNumber":1,"pageSize":500,"platform":"aws","query":"web","results":[{"type":"serverGroups","account":"agents","stale":1},{"type":"applications","application":"web"},{"type":"clusters","account":"theirs"}]}]`,
		`[{"totalMatches":7,"pageNumber":1,"pageSize":500,"platform":"aws","query":"web","results":[{"type":"serverGroups","account":"agents"},{"type":"applications","application":"web"},{"type":"clusters","account":"theirs"}]}]`},
	{"search for applications", "search", "/search?q=web&type=applications",
		`[{"totalMatches":1,"pageNumber":1,"pageSize":10,"query":"web","results":[{"provider":"kubernetes","type":"applications","application":"web"}]}]`,
		`[{"totalMatches":2,"pageNumber":1,"pageSize":10,"query":"web","results":[{"type":"applications","application":"web","x":1},{"type":"applications","application":"webb"}]}]`,
		`[{"totalMatches":2,"pageNumber":1,"pageSize":10,"query":"web","results":[{"provider":"kubernetes","type":"applications","application":"web"},{"type":"applications","application":"webb"}]}]`},
	{"search that only the other has", "search", "/search?q=web", ``,
		`[{"totalMatches":2,"pageNumber":1,"pageSize":10,"query":"web","results":[{"account":"agents"},{"account":"theirs"}]}]`,
		`[{"totalMatches":1,"pageNumber":1,"pageSize":10,"query":"web","results":[{"account":"theirs"}]}]`},
	{"artifact accounts", "artifacts/credentials", "/artifacts/credentials",
		`[{"name":"embedded-artifact","types":["embedded/base64"],"type":"artifacts-embedded"},{"name":"helm","types":["helm/chart"]}]`,
		`[{"name":"embedded-artifact","types":["embedded/base64","remote/base64"],"type":"artifacts-embedded"},{"name":"helm","types":["helm/chart"]},{"name":"s3","types":["s3/object"]}]`,
		`[{"name":"embedded-artifact","types":["embedded/base64"],"type":"artifacts-embedded"},{"name":"helm","types":["helm/chart"]},` +
			`{"name":"embedded-artifact","type":"artifacts-embedded","types":["remote/base64"]},{"name":"s3","types":["s3/object"]}]`},
	{"artifact accounts that are there twice", "artifacts/credentials", "/artifacts/credentials", `[]`,
		`[{"name":"s3","types":["s3/object"]},{"name":"s3","types":["s3/object"]},{"name":"s3","types":["s3/object","gcs/object"]},{"name":"empty","types":[]},{"name":"empty","types":[]}]`,
		`[{"name":"s3","types":["s3/object"]},{"name":"s3","types":["gcs/object"]},{"name":"empty","types":[]}]`},
}

const notFoundBody = `{"status":404}`

// answers sets the answers of both sides.
func (w *world) answers(local, theirs string) {
	for _, s := range []struct {
		side *side
		body string
	}{{w.local, local}, {w.theirs, theirs}} {
		answer := answerJSON(http.StatusOK, s.body)
		if s.body == "" {
			answer = answerJSON(http.StatusNotFound, notFoundBody)
		}
		s.side.mu.Lock()
		s.side.answer = answer
		s.side.mu.Unlock()
	}
}

func TestAnswersOfBothSidesAreMerged(t *testing.T) {
	for _, tt := range mergeCases {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.answers(tt.local, tt.theirs)
			response, body := w.send(t, http.MethodGet, tt.path, "")
			want, code := tt.want, http.StatusOK
			if want == "" {
				want, code = notFoundBody, http.StatusNotFound
			}
			if response.StatusCode != code || body != want || response.Header.Get(incompleteHeader) != "" {
				t.Errorf("got %d %s %q\n%s\nwant %d\n%s", response.StatusCode, response.Status, response.Header.Get(incompleteHeader), body, code, want)
			}
			path, _, _ := strings.Cut(tt.path, "?")
			if got := string(findRoute(Table(), http.MethodGet, path).Pattern); got != tt.pattern {
				t.Errorf("%s belongs to %q, want %q", tt.path, got, tt.pattern)
			}
		})
	}
}

// TestEachMergeHasACase checks that the cases above are complete.
func TestEachMergeHasACase(t *testing.T) {
	covered := map[string]bool{}
	for _, tt := range mergeCases {
		covered[tt.pattern] = true
	}
	for _, e := range Table() {
		if e.Policy != "" && !covered[string(e.Pattern)] {
			t.Errorf("%s has no case in mergeCases", e.Pattern)
		}
	}
}

// TestMergedAnswersHaveAnETag checks 304, and that conditions do not reach either side.
func TestMergedAnswersHaveAnETag(t *testing.T) {
	w := newWorld(t, nil)
	w.answers(`[{"name":"agents"}]`, `[{"name":"theirs"}]`)
	first, _ := w.send(t, http.MethodGet, "/task", "")
	w.local.requests()
	w.theirs.requests()
	second, body := w.send(t, http.MethodGet, "/task", "", "If-None-Match", first.Header.Get("ETag"))
	if second.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("got %d %s, want %d", second.StatusCode, body, http.StatusNotModified)
	}
	for _, s := range []*side{w.local, w.theirs} {
		for _, r := range s.requests() {
			if r.Header.Get("If-None-Match") != "" {
				t.Errorf("%s got the condition of the caller, want a whole answer", s.name)
			}
		}
	}
	w.answers(`[{"name":"agents"}]`, `[{"name":"theirs","changed":true}]`)
	if third, body := w.send(t, http.MethodGet, "/task", "", "If-None-Match", first.Header.Get("ETag")); third.StatusCode != http.StatusOK {
		t.Errorf("after a change got %d %s, want %d", third.StatusCode, body, http.StatusOK)
	}
	head, body := w.send(t, http.MethodHead, "/task", "")
	if head.StatusCode != http.StatusOK || body != "" || head.Header.Get("ETag") == "" {
		t.Errorf("HEAD: got %d %s with the ETag %q", head.StatusCode, body, head.Header.Get("ETag"))
	}
}
