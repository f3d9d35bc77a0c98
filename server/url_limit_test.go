package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/middleware"
)

// TestLongURLsAreRejected checks the limit of URLs for both APIs, and that the largest headers that Gate
// sends pass.
func TestLongURLsAreRejected(t *testing.T) {
	server := newRESTServer(middleware.LimitURLs(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	test := httptest.NewUnstartedServer(nil)
	test.Config = server
	test.Start()
	defer test.Close()
	for _, tt := range []struct {
		name, path, accounts string
		want                 int
	}{
		{"a URL at the limit", "/vedette/v1/objects?kind=" + strings.Repeat("k", middleware.MaxURLBytes-len("/vedette/v1/objects?kind=")), "", http.StatusOK},
		{"a longer URL", "/vedette/v1/objects?kind=" + strings.Repeat("k", middleware.MaxURLBytes), "", http.StatusRequestURITooLong},
		{"a longer URL of Clouddriver's API", "/credentials/" + strings.Repeat("k", middleware.MaxURLBytes), "", http.StatusRequestURITooLong},
		{"3,000 accounts", "/credentials", strings.Repeat("kubernetes-production-some-region-1,", 3000), http.StatusOK},
		{"headers of 900 KB", "/credentials", strings.Repeat("x", 900_000), http.StatusRequestHeaderFieldsTooLarge},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.URL+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-SPINNAKER-ACCOUNTS", tt.accounts)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if response.Body.Close(); response.StatusCode != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, response.StatusCode, tt.want)
		}
	}
	w := httptest.NewRecorder()
	middleware.LimitURLs(nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/vedette/v1/changes?account="+strings.Repeat("l*,", 20_000), nil))
	if want := "the URL has 60028 bytes, more than the limit of 32768"; !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %s, want %q", w.Body, want)
	}
}
