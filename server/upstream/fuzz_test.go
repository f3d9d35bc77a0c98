package upstream

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/vedette-io/vedette/server/upstream/merging"
)

// FuzzMerge merges any two answers of every kind. Nothing may panic; a result is valid JSON, and has
// no account of agents from the upstream Clouddriver.
func FuzzMerge(f *testing.F) {
	for _, tt := range mergeCases {
		f.Add([]byte(tt.local), []byte(tt.theirs))
	}
	f.Add([]byte(`[]`), []byte(`[{"account":"agents","account":"x"}]`))
	f.Add([]byte(`{}`), []byte("{\"\xff\":1}"))
	f.Fuzz(func(t *testing.T, local, theirs []byte) {
		if len(local) > 0 && !json.Valid(local) {
			return // this server writes valid JSON
		}
		if len(local) == 0 {
			local = nil
		}
		for _, e := range Table() {
			if e.Policy == "" {
				continue
			}
			merged, err := join(t, e, local, theirs)
			if err == nil && merged != nil && !json.Valid(merged) {
				t.Errorf("%s of %q and %q: got %q, want JSON", e.Pattern, local, theirs, merged)
			}
			if err == nil && local == nil && e.Pattern == "serverGroups" {
				checkAccounts(t, theirs, merged)
			}
		}
	})
}

// checkAccounts checks a list of objects that should have nothing of this server.
func checkAccounts(t *testing.T, theirs, merged []byte) {
	var list []map[string]any
	if json.Unmarshal(merged, &list) != nil {
		return
	}
	for _, element := range list {
		if element[merging.AccountKey] == ourAccount {
			t.Errorf("%q: got %q, want it without the account of agents", theirs, merged)
		}
	}
}

// FuzzRoute decides about any method and path. The decision depends on nothing else, and no path
// leaves that of the base URL.
func FuzzRoute(f *testing.F) {
	for _, e := range Table() {
		f.Add(e.Method(), "/"+e.Path())
	}
	f.Add("GET", "//manifests/a//b%2F..%2f")
	f.Add("POST", "/task/x:resume:resume")
	base, err := url.Parse("http://clouddriver/base%2Fpath")
	if err != nil {
		f.Fatal(err)
	}
	c := &client{base: base}
	table := Table()
	f.Fuzz(func(t *testing.T, method, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" || u.Opaque != "" {
			return
		}
		found := findRoute(table, method, u.EscapedPath())
		if found.Mode == "" || found.merges() && found.Policy == "" {
			t.Errorf("%s %s: got %+v", method, path, found)
		}
		if checkPath(u) != nil {
			return
		}
		sent := c.url(u, u.RawQuery)
		if sent.Host != base.Host || sent.EscapedPath() != base.EscapedPath()+u.EscapedPath() {
			t.Errorf("%s: got %s", path, sent)
		}
	})
}

// FuzzBody sends any operation, refresh or artifact. One side answers.
func FuzzBody(f *testing.F) {
	f.Add("POST", []byte(`[{"deployManifest":{"account":"agents"}}]`))
	f.Add("PUT", []byte(`{"artifactAccount":"x","type":{}}`))
	f.Add("POST", []byte(`{"account":["agents"]}`))
	w := newWorld(f, nil)
	w.local.answer = answerJSON(http.StatusOK, `[]`)
	f.Fuzz(func(t *testing.T, method string, body []byte) {
		paths := []string{"/kubernetes/ops", "/ops/x", "/cache/kubernetes/x"}
		if method == http.MethodPut {
			paths = []string{"/artifacts/fetch"}
		}
		for _, path := range paths {
			w.local.requests()
			w.theirs.requests()
			response, _ := w.send(t, map[bool]string{true: "PUT", false: "POST"}[method == http.MethodPut], path, string(body))
			local, theirs := 0, len(w.theirs.requests())
			for _, r := range w.local.requests() {
				if r.URL.Path == path {
					local++
				}
			}
			if local+theirs != 1 || response.StatusCode != http.StatusOK {
				t.Errorf("%s %q: got %d, asked this server %d times and the other %d times, want one of them", path, body, response.StatusCode, local, theirs)
			}
		}
	})
}
