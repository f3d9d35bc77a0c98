package clouddriver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/readtest"
)

// FuzzViews requests arbitrary paths. Every answer must be JSON or empty, and no request may fail
// inside the server or keep memory.
func FuzzViews(f *testing.F) {
	requests, err := os.ReadFile("testdata/views/requests.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(requests)) {
		path, query, _ := strings.Cut(strings.TrimSpace(line), "?")
		f.Add(path, query)
	}
	f.Add("/applications/%2F/clusters/%00/%ff/kubernetes", "expand=%zz")
	f.Add("/applications/shop/clusters/prod/deployment%20web/kubernetes/shop/serverGroups/target/%F0%9F%98%80/x", "onlyEnabled&validateOldest")
	w := viewWorld(f)
	limiter := readlimit.New(readlimit.Config{})
	handler := clouddriver.New(clouddriver.Config{Store: w.Store, Projects: fakeProjects{}, ReadLimiter: limiter})
	free, release := readtest.Exhaust(limiter)
	release()
	f.Fuzz(func(t *testing.T, path, query string) {
		escaped := "/" + strings.TrimLeft(path, "/")
		target, err := url.ParseRequestURI(escaped)
		if err != nil {
			t.Skip()
		}
		target.RawQuery = query
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.URL = target
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r)
		body := recorder.Body.Bytes()
		if code := recorder.Code; code >= 500 && code != http.StatusServiceUnavailable && !strings.HasPrefix(path, "/manifests") || len(body) > 0 && !json.Valid(body) {
			t.Errorf("%s?%s: got %d %s", path, query, code, body)
		}
		after, release := readtest.Exhaust(limiter)
		release()
		if after != free {
			t.Errorf("%s?%s: got %d bytes free, want %d as before", path, query, after, free)
		}
	})
}
