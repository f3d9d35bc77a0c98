package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// repeatText returns n different values, separated by commas.
func repeatText(n int, format string) string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(values, ",")
}

// TestListsInQueriesAreLimited checks that a request names a limited number of accounts, kinds and labels,
// and that the error names the parameter and its limit. Each of these took seconds, or failed in the database.
func TestListsInQueriesAreLimited(t *testing.T) {
	w := serve(t, configOf(shopWorld(t)))
	for _, path := range []string{"/objects", "/changes", "/feeds"} {
		for _, tt := range []struct{ parameter, value, want string }{
			{"kind", repeatText(101, "kind%d"), "the parameter kind has more than 100 values"},
			{"kind", repeatText(90_000, "k%d"), "the parameter kind has more than 100 values"},
			{"kind", strings.Repeat("k", 513), "a value of the parameter kind has 513 bytes"},
			{"account", repeatText(1001, "account-%d"), "the parameter account has more than 1000 values"},
			{"account", repeatText(21, "l*%d"), "the parameter account has more than 20 patterns"},
			{"account", strings.Repeat("l*,", 100_000), "the parameter account has more than 1000 values"},
		} {
			wantInvalid(t, w, path, url.Values{tt.parameter: {tt.value}, "limit": {"1"}}, tt.want)
		}
	}
	for _, path := range []string{"/objects", "/changes"} {
		for _, selector := range []string{"a in (" + repeatText(501, "x%d") + ")", "a in (" + repeatText(50_000, "x%d") + ")", repeatText(51, "a!=b%d")} {
			wantInvalid(t, w, path, url.Values{"selector": {selector}}, "more than the limit")
		}
	}
	for _, path := range []string{"/accounts", "/agents", "/operations", "/kinds"} {
		wantInvalid(t, w, path, url.Values{"account": {repeatText(1001, "account-%d")}}, "the parameter account has more than 1000 values")
	}
	query := url.Values{"account": {repeatText(20, "*%d")}, "kind": {"pods"}, "selector": {"app in (" + repeatText(500, "x%d") + ")"}}
	if response, body := w.get("/objects?" + query.Encode()); response.StatusCode != http.StatusOK {
		t.Errorf("at the limits: got %d %s, want 200", response.StatusCode, body)
	}
}

func wantInvalid(t *testing.T, w *validatingClient, path string, query url.Values, want string) {
	t.Helper()
	if path != "/objects" && path != "/feeds" {
		query.Del("limit")
	}
	response, body := w.get(path + "?" + query.Encode())
	if response.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), want) {
		t.Errorf("%s with %.40s: got %d %.300s, want 400 and %q", path, query.Encode(), response.StatusCode, body, want)
	}
}
