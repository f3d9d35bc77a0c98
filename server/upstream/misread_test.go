package upstream

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMisreadPathsStayHere sends paths that Spring reads in another way than this server. None may reach the
// upstream Clouddriver as a request about an account of agents.
func TestMisreadPathsStayHere(t *testing.T) {
	for _, tt := range []struct {
		method, path, body string
		status             int // that is not 400
	}{
		{"GET", "/credentials/agents;x=1", "", 0}, {"GET", "/credentials/agents%3Bx=1", "", 0}, {"GET", "/credentials/agents;", "", 0},
		{"GET", "/credentials;x/agents", "", 0}, {"GET", "//credentials/agents", "", 0}, {"GET", "/credentials//agents", "", 0},
		{"GET", "/credentials%2Fagents", "", 0}, {"GET", "/credentials/agents//", "", 0}, {"GET", "/credentials%5Cagents", "", 0},
		{"GET", "/manifests/agents;x/shop/pod%20web", "", 0}, {"GET", "/manifests//agents/shop/pod%20web", "", 0},
		{"GET", "/manifests/agents%2Fshop/pod%20web", "", 0}, {"DELETE", "/applications/web/jobs/agents;x/shop/job%20web", "", 0},
		{"POST", "/kubernetes/ops;x", "[" + deployTo(ourAccount) + "]", 0}, {"POST", "/kubernetes//ops", "[" + deployTo(ourAccount) + "]", 0},

		{"GET", "/credentials/agents.json", "", 0}, {"GET", "/securityGroups/agents.xml", "", 0}, {"GET", "/credentials/agents.json;x", "", 0},
		{"POST", "/kubernetes/ops.json", "[" + deployTo(ourAccount) + "]", 0}, {"GET", "/task/" + ourTask + ".json", "", 0},
		{"GET", "/manifests/theirs/shop/configMap%20app.json", "", 200}, {"GET", "/credentials/theirs.eu", "", 200},
		{"GET", "/task/" + ourTask + ";x", "", 0}, {"PUT", "/artifacts/fetch;x", "{}", 0},
		// as Orca sends them
		{"GET", "/manifests/theirs//pod%20web", "", 200}, {"GET", "/manifests/agents//pod%20web", "", 200}, {"GET", "/credentials/theirs", "", 200},
		{"POST", "//ops", "[" + deployTo(ourAccount) + "]", 200}, {"GET", "/applications/a%2Fb/functions", "", 200}, {"GET", "/credentials/agents/", "", 200},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			f := newWorld(t, nil)
			r := httptest.NewRequest(tt.method, "http://server"+tt.path, strings.NewReader(tt.body))
			w := httptest.NewRecorder()
			f.handler.ServeHTTP(w, r)
			if tt.status == 0 {
				tt.status = http.StatusBadRequest
			}
			if w.Code != tt.status {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, tt.status)
			}
			if theirs := f.theirs.requests(); len(theirs) > 0 && (tt.status == http.StatusBadRequest || tt.method == http.MethodPost) {
				t.Errorf("the upstream Clouddriver got %s", theirs[0].URL)
			}
		})
	}
}

// TestMisreadBodiesStayHere sends bodies that Jackson reads in another way than encoding/json.
func TestMisreadBodiesStayHere(t *testing.T) {
	for name, description := range map[string]string{
		"another member in another case": `{"account":"agents","Account":"theirs"}`, "a member twice": `{"account":"agents","account":"theirs"}`,
		"a member twice, reversed":         `{"account":"theirs","account":"agents"}`,
		"a member twice, once escaped":     `{"account":"theirs","\u0061ccount":"agents"}`,
		"two members for the account":      `{"account":"theirs","credentials":"agents"}`,
		"a member that folds to account's": `{"account":"agents","ACCOUNT":"theirs"}`,
		"a member in another case only":    `{"Account":"theirs"}`,
	} {
		for _, path := range []string{"/kubernetes/ops", "/ops", "/kubernetes/ops/scaleManifest"} {
			t.Run(name+" "+path, func(t *testing.T) {
				f := newWorld(t, nil)
				body := `[{"scaleManifest":` + description + "}]"
				if strings.HasSuffix(path, "scaleManifest") {
					body = description
				}
				f.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://server"+path, strings.NewReader(body)))
				if theirs := f.theirs.requests(); len(theirs) > 0 {
					t.Errorf("the upstream Clouddriver got %s", theirs[0].Header.Get("Test-Body"))
				}
			})
		}
	}
}

// TestForgedAccountsAreNotShown merges answers in which the upstream Clouddriver names an account of agents in a
// way that some readers find and others do not.
func TestForgedAccountsAreNotShown(t *testing.T) {
	for path, forged := range map[string][]string{
		"/credentials": {`[{"name":"theirs","name":"agents","permissions":{}}]`, `[{"name":"theirs","n\u0061me":"agents"}]`, `[{"name":"AGENTS"}]`,
			`[{"name":"agénts"}]`, `[{"name":"agents"}]`, `[{"name":"theirs","x":{"a":1,"a":2}}]`},
		"/serverGroups?application=web":  {`[{"account":"theirs","account":"agents"}]`, `[{"account":"AGENTS"}]`},
		"/applications/web/serverGroups": {`[{"account":"theirs","account":"agents"}]`},
		"/applications/web/clusters":     {`{"theirs":["a"],"theirs":["b"]}`, `{"AGENTS":["a"]}`, `{"agents":["a"]}`},
		"/applications":                  {`[{"name":"web","clusterNames":{"theirs":["a"]},"clusterNames":{"agents":["a"]}}]`},
		"/projects/p/clusters":           {`[{"account":"theirs","account":"agents"}]`, `[{"account":"AGENTS"}]`},
	} {
		for _, answer := range forged {
			t.Run(path+" "+answer, func(t *testing.T) {
				f := newWorld(t, nil)
				empty := "[]"
				if strings.HasPrefix(answer, "{") {
					empty = "{}"
				}
				f.local.answer, f.theirs.answer = answerJSON(200, empty), answerJSON(200, answer)
				w := httptest.NewRecorder()
				f.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://server"+path, nil))
				if got := strings.ToLower(w.Body.String()); w.Code != 200 && w.Code != 503 || strings.Contains(got, `"agents"`) || strings.Contains(got, "agénts") {
					t.Errorf("got %d %s, want no account of agents", w.Code, w.Body)
				}
			})
		}
	}
}
