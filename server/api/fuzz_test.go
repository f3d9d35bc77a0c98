package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/api"
)

// FuzzObjects checks that no query causes an internal error: it succeeds or is rejected with a
// reason.
func FuzzObjects(f *testing.F) {
	handler := api.New(configOf(shopWorld(f)))
	for _, query := range []string{"kind=pods&limit=1", "cursor=WyJkZXYiLCJQb2QiLCIiLCJzaG9wIiwid2ViLTAiXQ", "selector=app in (a,b),!c", "account=*?*&kind=deploy.apps",
		"selector=a%3Db%3Dc", "cursor=%00", "kind=..", "as=table&kind=po", "name=%ff", "limit=-1", "limit=99999999999999999999"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest(http.MethodGet, "/vedette/v1/objects", nil)
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != 200 && w.Code != 400 && w.Code != 404 {
			t.Errorf("%q: got %d %s, want %d", query, w.Code, w.Body, 200)
		}
	})
}

// FuzzListQueries sends arbitrary parameters to the lists of the fleet.
func FuzzListQueries(f *testing.F) {
	handler := api.New(configOf(shopWorld(f)))
	for _, query := range []string{"limit=1&cursor=WyJkZXYiXQ", "cursor=WyJkZXYiLCJQb2QiLCIiLCIiXQ&kind=po", "account=prod-*,dev&limit=5000", "cursor=bnVsbA"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"accounts", "agents", "feeds", "kinds"} {
			r := httptest.NewRequest(http.MethodGet, "/vedette/v1/"+path, nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != 200 && w.Code != 400 && w.Code != 404 {
				t.Errorf("%s?%q: got %d %s, want 200, 400 or 404", path, query, w.Code, w.Body)
			}
		}
	})
}

func FuzzObjectPath(f *testing.F) {
	handler := api.New(configOf(shopWorld(f)))
	f.Add("dev", "pods", "shop", "web-0")
	f.Add("dev", "Node.", "_", "..")
	f.Fuzz(func(t *testing.T, account, kind, namespace, name string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		escaped := "/vedette/v1/objects/" + url.PathEscape(account) + "/" + url.PathEscape(kind) + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
		u, err := url.Parse(escaped)
		if err != nil {
			return // clients cannot send such a path
		}
		r.URL = u
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s: got %d %s", escaped, w.Code, w.Body)
		}
	})
}

func TestGlobMatchesTheWholeText(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"prod-*", "prod-1", true}, {"prod-*", "prod-", true}, {"prod-*", "prod", false}, {"*", "", true}, {"*-eu", "prod-eu", true},
		{"*-eu", "prod-eu-1", false}, {"p?od", "prod", true}, {"p?od", "pod", false}, {"*a*b*", "xaxxbx", true}, {"*a*b*", "xbxxax", false},
		{"[a]", "a", false}, {"[a]", "[a]", true}, {"", "", true}, {"", "a", false}, {"a**b", "ab", true},
	} {
		if got := api.MatchGlob(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%q of %q: got %v", tt.pattern, tt.text, got)
		}
	}
}

// FuzzGlob compares glob with path.Match, without the latter's other special characters.
func FuzzGlob(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add("**", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		plain := strings.NewReplacer("[", "x", "]", "x", `\`, "x", "/", "x", "-", "x", "^", "x")
		pattern, text = plain.Replace(pattern), plain.Replace(text)
		for i := range len(pattern + text) {
			if (pattern + text)[i] >= 0x80 {
				return // "?" matches one byte, because account names are ASCII in practice
			}
		}
		want, err := path.Match(pattern, text)
		if got := api.MatchGlob(pattern, text); err == nil && got != want {
			t.Errorf("%q of %q: got %v, want %v", pattern, text, got, want)
		}
	})
}
