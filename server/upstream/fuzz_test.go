package upstream

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/vedette-io/vedette"
)

// FuzzMerge merges any two answers of every kind. Nothing may panic; a result is valid JSON, and has
// no account of agents from the upstream Clouddriver.
func FuzzMerge(f *testing.F) {
	for _, tt := range mergeCases {
		f.Add([]byte(tt.own), []byte(tt.theirs))
	}
	f.Add([]byte(`[]`), []byte(`[{"account":"agents","account":"x"}]`))
	f.Add([]byte(`{}`), []byte("{\"\xff\":1}"))
	merges := map[string]mergeFunc{}
	for _, e := range Table() {
		if e.merge != nil {
			merges[e.Pattern] = e.merge
		}
	}
	f.Fuzz(func(t *testing.T, own, theirs []byte) {
		if len(own) > 0 && !json.Valid(own) {
			return // this server writes valid JSON
		}
		for pattern, merge := range merges {
			p := pair{accounts: newAccountSet([]vedette.AccountName{ourAccount}), own: &capture{status: http.StatusOK, body: own}, theirs: answer{body: theirs}}
			if len(own) == 0 {
				p.own = &capture{status: http.StatusNotFound}
			}
			merged, err := mergeAnswers(merge, p)
			if err == nil && merged != nil && !json.Valid(merged) {
				t.Errorf("%s of %q and %q: got %q, want JSON", pattern, own, theirs, merged)
			}
			checkAccounts(t, pattern, p, merged)
		}
	})
}

// checkAccounts checks merged lists that should have nothing of this server.
func checkAccounts(t *testing.T, pattern string, p pair, merged []byte) {
	if p.own.status == http.StatusOK || pattern != "serverGroups" {
		return
	}
	var list []map[string]any
	if json.Unmarshal(merged, &list) != nil {
		return
	}
	for _, element := range list {
		// Of two members with one name, jsontext finds the first and encoding/json the last.
		if first, err := new(merger).stringMember(mustMarshal(t, element), accountKey); err == nil && first == ourAccount && !hasTwice(p.theirs.body) {
			t.Errorf("%q: got %q, want it without the account of agents", p.theirs.body, merged)
		}
	}
}

func mustMarshal(t *testing.T, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// hasTwice reports whether a document may name a member twice.
func hasTwice(body []byte) bool {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) != nil {
		return true
	}
	for _, element := range list {
		count := 0
		m := &merger{}
		_ = m.eachMember(element, func(name string, _ []byte) error {
			if name == accountKey {
				count++
			}
			return nil
		})
		if count > 1 {
			return true
		}
	}
	return false
}

// FuzzRoute decides about any method and path. The decision depends on nothing else, and no path
// leaves that of the base URL.
func FuzzRoute(f *testing.F) {
	for _, e := range Table() {
		f.Add(e.method(), "/"+e.path())
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
		if found.Mode == "" || found.merges() && found.merge == nil {
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
	w.own.answer = answerJSON(http.StatusOK, `[]`)
	f.Fuzz(func(t *testing.T, method string, body []byte) {
		paths := []string{"/kubernetes/ops", "/ops/x", "/cache/kubernetes/x"}
		if method == http.MethodPut {
			paths = []string{"/artifacts/fetch"}
		}
		for _, path := range paths {
			w.own.requests()
			w.theirs.requests()
			response, _ := w.send(t, map[bool]string{true: "PUT", false: "POST"}[method == http.MethodPut], path, string(body))
			own, theirs := 0, len(w.theirs.requests())
			for _, r := range w.own.requests() {
				if r.URL.Path == path {
					own++
				}
			}
			if own+theirs != 1 || response.StatusCode != http.StatusOK {
				t.Errorf("%s %q: got %d, asked this server %d times and the other %d times, want one of them", path, body, response.StatusCode, own, theirs)
			}
		}
	})
}
