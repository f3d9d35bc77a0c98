package middleware_test

import (
	"net/http/httptest"
	"testing"

	"github.com/vedette-io/vedette/server/middleware"
)

func TestSemicolonsBelongToValues(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "q=a": "a", "q=a;b": "a;b", "x=1;q=2&q=a%3Bb;": "a;b;", "x=;;&q=a%20b": "a b",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/search?"+query, nil)
		got := middleware.LiteralSemicolons(r)
		if q := got.URL.Query().Get("q"); q != want {
			t.Errorf("%s: got %q, want %q", query, q, want)
		}
		if r.URL.RawQuery != query {
			t.Errorf("%s: the caller's request changed to %s", query, r.URL.RawQuery)
		}
	}
}
